"""Embedding Space Aggregation: text generation by a noisy mean of response embeddings.

Wu et al., "Privacy-Preserving In-Context Learning for Large Language Models" (2023); in the SnapAudit paper
Algorithm 5, with the sensitivity 2/T of its Lemma C.1. The stages, apart from one another:

- recorded: the embeddings of what the model said, one per partition, shape (T, d);
- :meth:`EmbeddingSpaceAggregation.aggregate`: the mean of the embeddings scaled to unit length, shape (d,);
- :meth:`EmbeddingSpaceAggregation.privatize`: independent N(0, σ²) on every coordinate;
- :attr:`EmbeddingSpaceAggregation.release`: the zero-shot candidate nearest to the noisy mean.

A neighbouring dataset changes one partition (:mod:`dp_icl.partition`), hence one embedding. Scaling puts every
embedding in the unit ball, where two points are at most 2 apart, so the mean moves by at most 2/T. That holds for
replacing an exemplar and, dealt by content, for adding or removing one: its partition then responds differently,
zero-shot if nothing is left in it, but T and the number of terms stay the same.

The Gaussian vector itself satisfies the claim, so the claim covers the noisy mean (white-box) as well as the
released candidate (black-box).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from dp_icl.calibration import GaussianNoise, analytic_gaussian_sigma, validate_delta, validate_epsilon
from dp_icl.partition import Adjacency, split, validate_adjacency, validate_partitions, validate_seed

ResponseModel = Callable[[tuple[Any, ...]], ArrayLike]
Release = Callable[[ArrayLike, Generator], NDArray[np.intp]]


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddingSpaceAggregation:
    """(ε, δ)-differentially private generation for one query.

    Args:
        partitions: number T ≥ 1 of disjoint partitions.
        epsilon: claimed ε, finite and at least 0.
        delta: claimed δ, in (0, 1).
        candidates: (m, d) embeddings of zero-shot responses, which depend on no exemplar. They are compared
            at unit length, so the nearest by Euclidean distance is the nearest by cosine. Without candidates
            there is no ``release``, and the noisy mean is the output.
        seed: deals the exemplars to the partitions.
        model: ``model(partition)`` embeds, as a vector (d,), the response to the query from the exemplars
            of one partition (none of them, when there are more partitions than exemplars: a zero-shot
            response). It must be deterministic and is never shown two partitions at once, on which the
            sensitivity rests. Without a model, datasets are recorded embeddings.
        adjacency: ``"replace-one"`` or ``"add-remove"`` (of one exemplar); it decides how exemplars are dealt
            to the partitions.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument is out of range, or a candidate is zero or not finite.
    """

    partitions: int
    epsilon: float
    delta: float
    candidates: NDArray[np.floating[Any]] | None = None
    seed: int = 0
    model: ResponseModel | None = None
    adjacency: Adjacency = "replace-one"
    noise: GaussianNoise = field(init=False)

    deterministic: ClassVar[bool] = True
    norm: ClassVar[str] = "l2"
    claimed_views: ClassVar[frozenset[str]] = frozenset({"black-box", "white-box"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", validate_partitions(self.partitions))
        object.__setattr__(self, "epsilon", validate_epsilon(self.epsilon))
        object.__setattr__(self, "delta", validate_delta(self.delta))
        object.__setattr__(self, "seed", validate_seed(self.seed))
        if self.model is not None and not callable(self.model):
            msg = f"model must be callable or None, got {self.model!r} of type {type(self.model).__name__}."
            raise TypeError(msg)
        object.__setattr__(self, "adjacency", validate_adjacency(self.adjacency))
        if self.candidates is not None:
            object.__setattr__(self, "candidates", _validate_candidates(self.candidates))
        object.__setattr__(self, "noise", GaussianNoise(self._sigma()))

    def __repr__(self) -> str:
        text = f"partitions={self.partitions}, epsilon={self.epsilon}, delta={self.delta}"
        if self.candidates is not None:
            text += f", candidates=<{len(self.candidates)} embeddings>"
        if self.seed:
            text += f", seed={self.seed}"
        if self.adjacency != "replace-one":
            text += f", adjacency={self.adjacency!r}"
        return f"{type(self).__name__}({text})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EmbeddingSpaceAggregation) or type(self) is not type(other):
            return NotImplemented
        return self._key() == other._key() and self.model == other.model

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def _sigma(self) -> float:
        return analytic_gaussian_sigma(self.epsilon, self.delta, self.sensitivity)

    def _key(self) -> tuple[object, ...]:
        candidates = None if self.candidates is None else (self.candidates.shape, self.candidates.tobytes())
        return self.partitions, self.epsilon, self.delta, self.seed, self.adjacency, candidates

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity 2/T of the mean embedding."""
        return 2.0 / self.partitions

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on each coordinate; embeddings have length 1."""
        return self.noise.sigma

    @property
    def claim(self) -> tuple[float, float]:
        """The claimed (ε, δ)."""
        return self.epsilon, self.delta

    def responses(self, exemplars: Sequence[Any]) -> NDArray[np.floating[Any]]:
        """Embeddings of what the model says, asked once per partition; the part worth recording.

        Args:
            exemplars: n exemplars of any kind.

        Returns:
            (T, d) embeddings as the model gave them.

        Raises:
            ValueError: the mechanism has no model, or its vectors differ in length.
            TypeError: ``exemplars`` is not a sequence, or the model did not answer with numbers.
        """
        if self.model is None:
            msg = (
                "EmbeddingSpaceAggregation has no model to ask; construct it with model=..., "
                "or use recorded embeddings."
            )
            raise ValueError(msg)
        parts = split(exemplars, self.partitions, self.seed, self.adjacency)
        said = [np.asarray(self.model(part)) for part in parts]
        shapes = sorted({vector.shape for vector in said})
        if len(shapes) > 1 or len(shapes[0]) != 1:
            msg = (
                f"model must return one vector of shape (d,) per partition, all of one length, got {shapes}."
            )
            raise ValueError(msg)
        return _numbers("embeddings", np.stack(said))

    def record(self, exemplars: Sequence[Any], size: int, rng: Generator) -> NDArray[np.floating[Any]]:
        """``size`` evaluations of :meth:`responses`, (size, T, d), in the form a snapshot records."""
        return np.stack([self.responses(exemplars) for _ in range(size)])

    def aggregate(self, embeddings: ArrayLike) -> NDArray[np.float64]:
        """Average the embeddings, each scaled to unit length.

        A zero vector has no direction and stays zero. A vector with an infinite or undefined coordinate
        counts as zero: an error would tell the attacker about the data. Either way every term stays in the
        unit ball.

        Args:
            embeddings: (T, d) one per partition, of any length.

        Returns:
            (d,) mean embedding, of length at most 1.

        Raises:
            TypeError: the embeddings are not real numbers.
            ValueError: there is not one vector per partition, or vectors have no coordinates.
        """
        vectors = _numbers("embeddings", np.asarray(embeddings))
        if vectors.ndim != 2 or len(vectors) != self.partitions or vectors.shape[1] == 0:
            msg = (
                f"embeddings must hold one vector per partition, shape ({self.partitions}, d), "
                f"got shape {vectors.shape}."
            )
            raise ValueError(msg)
        mean: NDArray[np.float64] = unit_vectors(vectors).mean(axis=0)
        return mean

    def clean(self, dataset: Any, rng: Generator) -> NDArray[np.float64]:
        """Mean embedding without noise.

        Args:
            dataset: the exemplars when there is a model, else the recorded embeddings, (T, d).
            rng: unused; the clean stage is deterministic.

        Returns:
            (d,) mean embedding.
        """
        return self.aggregate(dataset if self.model is None else self.responses(dataset))

    def privatize(self, clean_rows: ArrayLike, rng: Generator) -> NDArray[np.float64]:
        """Add independent N(0, σ²) to every coordinate.

        Args:
            clean_rows: (n, d) mean embeddings; never modified.
            rng: source of the noise.

        Returns:
            (n, d) noisy means.

        Raises:
            ValueError: the rows are not vectors, or not as long as the candidates.
        """
        rows = _rows("clean_rows", clean_rows, self.candidates)
        noisy = rng.standard_normal(rows.shape)
        noisy *= self.sigma
        noisy += rows
        return noisy

    @property
    def release(self) -> Release:
        """``release(noisy, rng)``: (n, d) noisy means to the (n,) indices of their nearest candidates.

        Absent (reading it raises :class:`AttributeError`) without candidates. Of equally near candidates
        the first wins; ``rng`` is unused.
        """
        if self.candidates is None:
            msg = f"{self!r} has no release: the noisy mean is its output; construct it with candidates=..."
            raise AttributeError(msg)
        return partial(_nearest, unit_vectors(self.candidates))


def _nearest(candidates: NDArray[np.float64], noisy: ArrayLike, rng: Generator) -> NDArray[np.intp]:
    # Candidates have length 1, so the smallest distance is the largest inner product.
    nearest: NDArray[np.intp] = np.argmax(_rows("noisy", noisy, candidates) @ candidates.T, axis=1)
    return nearest


def _rows(
    name: str, value: ArrayLike, candidates: NDArray[np.floating[Any]] | None
) -> NDArray[np.floating[Any]]:
    rows = np.asarray(value)
    dimension = "d" if candidates is None else candidates.shape[1]
    if rows.ndim != 2 or dimension not in ("d", rows.shape[1]):
        msg = f"{name} must have shape (n, {dimension}), one mean embedding per row, got {rows.shape}."
        raise ValueError(msg)
    return rows


def unit_vectors(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """(n, d) vectors scaled to length 1; zero and non-finite ones become zero."""
    with np.errstate(over="ignore"):
        scaled = vectors.astype(np.float64)
    scaled[~np.isfinite(scaled).all(axis=1)] = 0.0
    # Dividing by the largest coordinate first keeps the squares of huge and tiny vectors in range.
    scaled = _divide(scaled, np.abs(scaled).max(axis=1, keepdims=True))
    return _divide(scaled, np.linalg.norm(scaled, axis=1, keepdims=True))


def _divide(vectors: NDArray[np.float64], lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0.0)


def _numbers(name: str, array: NDArray[Any]) -> NDArray[np.floating[Any]]:
    if array.dtype.kind not in "fiu":
        msg = f"{name} must be an array of real numbers, got dtype {array.dtype}."
        raise TypeError(msg)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _validate_candidates(candidates: object) -> NDArray[np.float64]:
    vectors = _numbers("candidates", np.asarray(candidates))
    if vectors.ndim != 2 or 0 in vectors.shape:
        msg = f"candidates must have shape (m, d) with m and d at least 1, got shape {vectors.shape}."
        raise ValueError(msg)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1) | ~vectors.any(axis=1))
    if len(bad):
        msg = f"candidates must be finite and not zero, got such a vector at row {bad[0]}."
        raise ValueError(msg)
    kept = vectors.astype(np.float64)
    kept.flags.writeable = False
    return kept
