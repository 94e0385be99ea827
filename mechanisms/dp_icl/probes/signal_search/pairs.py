"""Pairs of signal sentences with the distance of their embeddings, in memory and as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dp_icl.models.protocols import JSON, EmbeddingModel

FORMAT = 1


@dataclass(frozen=True)
class SignalPair:
    """Two sentences that a model is told to answer with, and how far apart their embeddings are.

    Args:
        first: answer y1 of the context that holds the canary.
        second: answer y2 of the context that does not.
        distance: Euclidean distance of the two embeddings, in [0, 2] for unit vectors.
        method: the search that found the pair.
        details: parameters of that search; JSON values.

    Raises:
        TypeError: a sentence is not a string.
        ValueError: a sentence is empty, or the distance is not in [0, 2].
    """

    first: str
    second: str
    distance: float
    method: str
    details: Mapping[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("first", "second", "method"):
            value = getattr(self, name)
            if not isinstance(value, str):
                msg = f"SignalPair: {name} must be a string, got {value!r} of type {type(value).__name__}."
                raise TypeError(msg)
            if not value.strip():
                msg = f"SignalPair: {name} is empty."
                raise ValueError(msg)
        if not 0 <= self.distance <= 2 + 1e-6:
            msg = f"SignalPair: distance of unit vectors lies in [0, 2], got {self.distance!r}."
            raise ValueError(msg)

    @property
    def sentences(self) -> tuple[str, str]:
        """Both sentences, y1 first."""
        return self.first, self.second


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Args:
        best: the pair furthest apart.
        found: the pair of every start, in the order of the starts.
        evaluations: how many sentences were embedded.
    """

    best: SignalPair
    found: tuple[SignalPair, ...]
    evaluations: int


def embedding_distance(first: ArrayLike, second: ArrayLike) -> float:
    """Euclidean distance of two vectors, computed in double precision."""
    return float(np.linalg.norm(np.asarray(first, np.float64) - np.asarray(second, np.float64)))


def measured_pair(
    model: EmbeddingModel, sentences: tuple[str, str], method: str, details: Mapping[str, JSON]
) -> SignalPair:
    """A pair with the distance that ``model`` gives to its texts."""
    rows = model.embed(list(sentences))
    return SignalPair(*sentences, embedding_distance(rows[0], rows[1]), method, details)


def furthest(pairs: Sequence[SignalPair]) -> SignalPair:
    """The pair with the largest distance; the first of equals."""
    return max(pairs, key=lambda pair: pair.distance)


def write_pairs(path: str | os.PathLike[str], pairs: Sequence[SignalPair], model: str) -> None:
    """Write pairs as JSON.

    Args:
        path: the file; replaced if it exists.
        pairs: at least one pair.
        model: name of the embedding model that the distances belong to.
    """
    content = {
        "format": FORMAT,
        "embedding_model": model,
        "pairs": [
            {
                "method": pair.method,
                "distance": pair.distance,
                "first": pair.first,
                "second": pair.second,
                "details": dict(pair.details),
            }
            for pair in pairs
        ],
    }
    Path(path).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_pairs(path: str | os.PathLike[str]) -> tuple[SignalPair, ...]:
    """Read what :func:`write_pairs` wrote.

    Raises:
        ValueError: the file is not of that form; the message names it.
    """
    try:
        content: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            msg = f"format is {content['format']!r}, not {FORMAT}"
            raise ValueError(msg)
        return tuple(
            SignalPair(entry["first"], entry["second"], entry["distance"], entry["method"], entry["details"])
            for entry in content["pairs"]
        )
    except (KeyError, TypeError, ValueError) as error:
        msg = f"{path} is not a file of signal pairs ({error}); write it with write_pairs."
        raise ValueError(msg) from error


def load_signal_pairs() -> tuple[SignalPair, ...]:
    """The pairs that come with this package, found for all-MiniLM-L6-v2: the best of every method."""
    return read_pairs(Path(__file__).with_name("signal_pairs.json"))
