"""A GGUF file converted once to a directory that loads in seconds; needs the extra ``llm``."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from dp_icl.models.extras import require
from dp_icl.models.progress import quiet_unless_watched


def default_cache() -> Path:
    """Directory of converted weights: ``$XDG_CACHE_HOME/dp_icl``, or ``~/.cache/dp_icl``."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "dp_icl"


def converted(weights: Path, cache_dir: Path) -> Path:
    """Convert a GGUF file to a directory that loads in seconds, once.

    The directory's name holds a digest of the file and the version of transformers that converted it. It
    appears complete or not at all; two processes may convert at once.

    Args:
        weights: the GGUF file.
        cache_dir: where converted directories are kept.

    Returns:
        the directory, with float32 weights and the tokenizer.

    Raises:
        ImportError: torch, transformers, gguf or accelerate is not installed.
        FileNotFoundError: there is no file ``weights``.
    """
    owner = "converted"
    if not weights.is_file():
        msg = f"{owner}: there is no weights file {weights}; install the package that holds it again."
        raise FileNotFoundError(msg)
    torch = require("torch", extra="llm", owner=owner)
    transformers = require("transformers", extra="llm", owner=owner)
    with weights.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    target = cache_dir / f"{weights.stem}-{content}-transformers-{transformers.__version__}"
    if target.is_dir():
        return target
    for module in ("gguf", "accelerate"):
        require(module, extra="llm", owner=owner)
    cache_dir.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".converting-", dir=cache_dir))
    try:
        with quiet_unless_watched(transformers):
            _convert(torch, transformers, weights, work)
        try:
            work.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _convert(torch: ModuleType, transformers: ModuleType, weights: Path, out: Path) -> None:
    source = str(weights.parent)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(
        source, gguf_file=weights.name, dtype=torch.float32, local_files_only=True
    )
    # save_pretrained would write quantised weights back; these are float32 now
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(str(out))
    transformers.AutoTokenizer.from_pretrained(
        source, gguf_file=weights.name, local_files_only=True
    ).save_pretrained(str(out))
