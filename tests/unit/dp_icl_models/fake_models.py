"""Small deterministic models that count their calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dp_icl.models import JSON


class CountingLanguage:
    """Answers a prompt with its reverse; dies at the call number ``dies_at``."""

    def __init__(self, name: str = "reverse", dies_at: int | None = None) -> None:
        self.calls: list[list[str]] = []
        self.dies_at = dies_at
        self.provenance: Mapping[str, JSON] = {"model": name, "versions": {"reverse": "1"}}

    def _count(self, prompts: Sequence[str]) -> None:
        if len(self.calls) == self.dies_at:
            raise KeyboardInterrupt
        self.calls.append(list(prompts))

    def complete(
        self, prompts: Sequence[str], *, temperature: float = 0.0, seed: int | Sequence[int] | None = None
    ) -> list[str]:
        self._count(prompts)
        if seed is None:
            return [prompt[::-1] for prompt in prompts]
        seeds = seed if isinstance(seed, Sequence) else [seed] * len(prompts)
        return [f"{prompt[::-1]} {one} {temperature}" for prompt, one in zip(prompts, seeds, strict=True)]

    def label_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        self._count(prompts)
        return np.asarray([[-len(p) / 3 - len(c) for c in continuations] for p in prompts], np.float64)

    def continuation_log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> NDArray[np.float64]:
        self._count(prompts)
        pairs = zip(prompts, continuations, strict=True)
        return np.asarray([-len(p) / 3 - len(c) for p, c in pairs], np.float64)


class CountingEmbedding:
    """Embeds a text on the circle, by its length."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.provenance: Mapping[str, JSON] = {"model": "circle"}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(list(texts))
        angles = np.asarray([len(text) / 7 for text in texts], np.float32)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
