"""Clean and noise stages that several entries share.

Clean stages map a dataset to a state; noise stages map (state, n, rng) to n independent outputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from .entry import Outputs


def statistics(dataset: Any) -> Any:
    """The dataset already is the tuple of true statistics."""
    return dataset


def count(rows: Sequence[Any]) -> float:
    """Number of rows."""
    return float(len(rows))


def total(rows: Sequence[float]) -> float:
    """Sum of scalar rows."""
    return float(sum(rows))


def mean_row(rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Mean of vector rows."""
    return np.asarray(np.mean(rows, axis=0), float)


def column_sums(rows: Sequence[Sequence[float]], *, width: int) -> NDArray[np.float64]:
    """Sum of rows with ``width`` columns; no rows sum to zeros."""
    table = np.reshape(np.asarray(rows, float), (-1, width))
    return np.asarray(table.sum(axis=0), float)


def histogram(labels: Sequence[int], *, bins: int) -> NDArray[np.float64]:
    """How many rows carry each label 0 … bins−1."""
    return np.asarray(np.bincount(labels, minlength=bins), float)


def release_exactly(state: float, n: int, rng: Generator) -> Outputs:
    """No noise at all."""
    return np.full(n, float(state))


def add_laplace(state: ArrayLike, n: int, rng: Generator, *, scale: ArrayLike) -> Outputs:
    """Independent Laplace noise on every coordinate; ``scale`` is common or one per coordinate."""
    centre = np.asarray(state, float)
    return np.asarray(centre + np.asarray(scale, float) * rng.laplace(size=(n, *centre.shape)), float)


def add_gaussian(state: ArrayLike, n: int, rng: Generator, *, sigma: ArrayLike) -> Outputs:
    """Independent Gaussian noise on every coordinate; ``sigma`` is common or one per coordinate."""
    centre = np.asarray(state, float)
    return np.asarray(centre + np.asarray(sigma, float) * rng.standard_normal((n, *centre.shape)), float)


def two_sided_geometric(shape: tuple[int, ...], rng: Generator, *, epsilon: float) -> Outputs:
    """Integers k with probability proportional to e^(−ε|k|): the difference of two geometric variables."""
    stop = -math.expm1(-epsilon)
    return (rng.geometric(stop, shape) - rng.geometric(stop, shape)).astype(float)


def add_geometric(state: ArrayLike, n: int, rng: Generator, *, epsilon: float) -> Outputs:
    """Independent two-sided geometric noise on every coordinate."""
    centre = np.asarray(state, float)
    return np.asarray(centre + two_sided_geometric((n, *centre.shape), rng, epsilon=epsilon), float)


def noisy_winner(votes: ArrayLike, n: int, rng: Generator, *, scale: float) -> Outputs:
    """Index of the largest Laplace-noised vote."""
    return np.asarray(add_laplace(votes, n, rng, scale=scale).argmax(axis=1), float)


def sparse_vector(
    answers: Sequence[float],
    n: int,
    rng: Generator,
    *,
    threshold_scale: float,
    query_scale: float,
    cutoff: int,
) -> Outputs:
    """Which queries lie above a noisy threshold 0, until ``cutoff`` of them did.

    One Laplace draw moves the threshold for the whole transcript, another each query (none if ``query_scale``
    is 0). The transcript is encoded as one number, bit i telling whether query i was answered "above".
    """
    queries = np.asarray(answers, float)
    threshold = rng.laplace(0.0, threshold_scale, (n, 1))
    noisy = queries + (rng.laplace(0.0, query_scale, (n, queries.size)) if query_scale else 0.0)
    above = noisy >= threshold
    answered_above_before = above.cumsum(axis=1) - above
    return encode_bits(above & (answered_above_before < cutoff))


def encode_bits(bits: NDArray[np.bool_]) -> Outputs:
    """Rows of booleans, (n, d), as one number each: bit i carries 2^i."""
    return np.asarray(bits @ 2.0 ** np.arange(bits.shape[1]), float)
