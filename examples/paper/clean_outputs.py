"""Clean outputs of the recorded contexts: the mechanisms' own aggregation, run live on what the models said."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import experiments as ex
import numpy as np
from designs import KEYWORDS, embedding_space, keyword_space, private_voting, product_of_experts
from numpy.typing import NDArray
from printed import SIGNALS
from recordings import SIGNAL_EMBEDDINGS, Recording
from signal_table import signal_embeddings

Floats = NDArray[np.float64]


class Clean(NamedTuple):
    """Clean outputs of one pair, and the candidates for release where the mechanism has some."""

    reference: Floats
    canary: Floats
    candidates: Floats | None = None

    @property
    def known_candidates(self) -> Floats:
        """The candidates.

        Raises:
            ValueError: there are none.
        """
        if self.candidates is None:
            msg = "these clean outputs have no candidates; only mean embeddings do."
            raise ValueError(msg)
        return self.candidates

    @property
    def distance(self) -> float:
        """Euclidean distance."""
        return float(np.linalg.norm(self.canary - self.reference))


def calibrated(scores: Floats, public: int) -> Floats:
    """(T, K) log-probabilities over the labels, less what the last ``public`` rows (public exemplars) score on average.

    Args:
        scores: (T + public, K) log-probabilities of the labels among all texts.
    """
    rows = scores[: len(scores) - public] - scores[len(scores) - public :].mean(axis=0)
    relative: Floats = rows - np.logaddexp.reduce(rows, axis=1, keepdims=True)
    return relative


def _calibrated(recording: Recording, baseline: Recording) -> list[tuple[Floats, Floats]]:
    public = len(recording.labels)
    found = []
    for rows, base in zip(
        zip(*recording.sides(), strict=True), zip(*baseline.sides(), strict=True), strict=True
    ):
        together = [
            np.concatenate([row[: ex.EXPERTS], at[-public:]]) for row, at in zip(rows, base, strict=True)
        ]
        found.append((calibrated(together[0], public), calibrated(together[1], public)))
    return found


@cache
def votes(recording: Recording, partitions: int, baseline: Recording | None = None) -> list[Clean]:
    """Vote counts of the first partitions, one element per pair.

    Args:
        baseline: the recording that holds the public exemplars; the same one by default.
    """
    mechanism = private_voting(1.0, recording.labels, partitions)
    return [
        Clean(*(mechanism.aggregate(side[:partitions].argmax(axis=1)).astype(float) for side in sides))
        for sides in _calibrated(recording, baseline or recording)
    ]


@cache
def utilities(recording: Recording) -> list[Clean]:
    """Clipped and summed label log-probabilities of all experts, one element per pair."""
    mechanism = product_of_experts(1.0, recording.labels)
    return [
        Clean(*(mechanism.aggregate(side) for side in sides)) for sides in _calibrated(recording, recording)
    ]


@cache
def keyword_counts(recording: Recording) -> list[Clean]:
    """In how many responses each keyword occurs, one element per pair."""
    mechanism = keyword_space(1.0)
    return [
        Clean(
            *(
                mechanism.aggregate([KEYWORDS[best] for best in side.argmax(axis=1)]).astype(float)
                for side in sides
            )
        )
        for sides in _calibrated(recording, recording)
    ]


@cache
def mean_embeddings(recording: Recording, method: str, partitions: int = 1) -> list[Clean]:
    """Mean embeddings and candidates, one element per pair, in an orthonormal basis of the space that they span.

    Gaussian noise is the same in every orthonormal basis, and the released candidate and every attack depend on inner
    products with these four vectors alone, so nothing changes but the number of coordinates: 2 to 4 instead of 384.
    """
    candidates = signals(method)
    mechanism = embedding_space(1.0, candidates, partitions)
    found = []
    for reference, canary in zip(*recording.sides(), strict=True):
        means = [mechanism.aggregate(side[:partitions]) for side in (reference, canary)]
        low = in_their_span(np.vstack([*means, candidates]))
        found.append(Clean(low[0], low[1], low[2:]))
    return found


def signals(method: str) -> Floats:
    """(2, d) embeddings of the sentences y2 and y1 of Table 14."""
    which = list(SIGNALS).index(method)
    reference, canary = SIGNAL_EMBEDDINGS.sides()
    return np.stack([reference[which], canary[which]]).astype(np.float64)


@cache
def signal_outputs() -> dict[str, Clean]:
    """The recorded embeddings of the package's signal sentences, by the search that found them."""
    found = {}
    for method, pair in signal_embeddings().items():
        low = in_their_span(np.stack(pair).astype(np.float64))
        found[method] = Clean(low[0], low[1], low)
    return found


def in_their_span(vectors: Floats) -> Floats:
    """(n, r) coordinates of n vectors in an orthonormal basis of their span; inner products stay the same."""
    _, sizes, basis = np.linalg.svd(vectors, full_matrices=False)
    kept = sizes > 1e-9 * sizes[0]
    coordinates: Floats = vectors @ basis[kept].T
    return coordinates


def apart(distance: float) -> Clean:
    """Two unit vectors at a distance, themselves the candidates."""
    half = distance / 2.0
    first = np.array([np.sqrt(max(1.0 - half * half, 0.0)), -half])
    second = first * np.array([1.0, -1.0])
    return Clean(first, second, np.stack([first, second]))


def fixed(sides: Any) -> Clean:
    """A printed pair of vectors."""
    reference, canary = (np.asarray(side, np.float64) for side in sides)
    return Clean(reference, canary)
