"""The joint exponential mechanism for the K most frequent items, exactly, for any K.

Gillenwater, Joseph, Muñoz Medina & Ribero, "A Joint Exponential Mechanism for Differentially Private Top-k"
(ICML 2022). With counts c and their order c_(1) ≥ c_(2) ≥ …, a sequence s of K different items has the loss

    ℓ(s) = max_i (c_(i) − c_{s_i}) ≥ 0        (their utility is −ℓ)

and is drawn with probability e^{−ηℓ(s)} / Z. The number of sequences is about V^K, so they are never listed, and the
K·V loss terms are taken once per pair of *distinct* counts, of which T responses make at most T + 1. (Arbitrary
histograms with hundreds of distinct counts and hundreds of keywords take gigabytes.)

- a loss is a difference of two distinct counts, so with counts up to T there are at most T + 1 of them;
- position i of a sequence of loss at most ℓ may hold any of the n_i(ℓ) items with a count of at least
  c_(i) − ℓ. These sets grow with i, so there are N(ℓ) = Π_i (n_i(ℓ) − (i − 1)) such sequences, and drawing
  the positions in turn, each uniformly from what its set has left, draws one of them uniformly;
- with losses ℓ_1 < … < ℓ_m, e^{−ηℓ} is the sum of the steps w_j = e^{−ηℓ_j} − e^{−ηℓ_{j+1}} (the last one
  e^{−ηℓ_m}) over ℓ_j ≥ ℓ. So the mechanism is a mixture: bound the loss by ℓ_j with probability
  proportional to w_j N(ℓ_j), then draw uniformly among the sequences within the bound. Every term is
  positive; nothing is subtracted and nothing rejected.

All weights are kept as logarithms, exact to about 1e-9 (differences of log-gamma functions at V = 100,000). The cost
grows with V once, for sorting, and with the number of distinct counts. Privacy is the business of
:mod:`dp_icl.joint_exponential_privacy`.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from dp_icl.calibration import validate_epsilon

_MOST_INSERTED = 100
"""Up to so many keywords all draws are made at once, by K² operations; beyond, one by one."""


class JointExponential:
    """The distribution of the mechanism's output on one histogram.

    Args:
        counts: (V,) whole numbers, V ≥ 1.
        keywords: the length K of a sequence, 1 ≤ K ≤ V.
        rate: η, the log-probability lost per unit of loss; finite and at least 0 (0 is uniform).

    Attributes:
        counts: (V,) as int64, read-only.
        keywords: K.
        rate: η.
        losses: (m,) increasing from 0: all losses that sequences have, and maybe some that none has.
        log_sizes: (m,) logarithm of the number of sequences of at most each loss.
        log_normaliser: log Z.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument is out of range.
    """

    def __init__(self, counts: ArrayLike, keywords: int, rate: float) -> None:
        self.counts = validate_counts(counts)
        self.keywords = validate_keywords(keywords, len(self.counts))
        self.rate = validate_rate(rate)
        self._order = _descending(self.counts)
        self._ranked = self.counts[self._order]
        last = np.append(np.flatnonzero(np.diff(self._ranked)), len(self._ranked) - 1)
        values, at_least = self._ranked[last], last + 1
        # Positions with equal c_(i) form a run: the same set of items, one after the other.
        runs = int(np.searchsorted(at_least, self.keywords)) + 1
        self._ends = np.minimum(at_least[:runs], self.keywords)
        self._starts = np.concatenate([[0], self._ends[:-1]])
        self.losses = np.unique(np.maximum(values[:runs, None] - values[None, :], 0))
        lowest = values[None, :runs] - self.losses[:, None]
        # (m, runs): how many items have a count of at least `lowest`.
        self._admitted = at_least[len(values) - 1 - np.searchsorted(values[::-1], lowest)]
        self.log_sizes = (
            gammaln(self._admitted - self._starts + 1.0) - gammaln(self._admitted - self._ends + 1.0)
        ).sum(axis=1)
        log_weights = self.log_sizes - self.rate * self.losses
        with np.errstate(divide="ignore"):
            log_weights[:-1] += np.log(-np.expm1(-self.rate * np.diff(self.losses)))
        self.log_normaliser = float(logsumexp(log_weights))
        self._mixture = np.exp(log_weights - self.log_normaliser)

    def loss(self, sequences: ArrayLike) -> NDArray[np.int64]:
        """ℓ of each sequence: (n, K) item indices to (n,) losses.

        Raises:
            TypeError: the indices are not integers.
            ValueError: they do not have the shape (n, K), are out of range, or repeat within a row.
        """
        rows = self._sequences(sequences)
        terms: NDArray[np.int64] = (self._ranked[: self.keywords] - self.counts[rows]).max(axis=1)
        return terms

    def log_probability(self, sequences: ArrayLike) -> NDArray[np.float64]:
        """log P of each sequence: (n, K) item indices to (n,); errors as :meth:`loss`."""
        return self.loss(sequences) * np.float64(-self.rate) - np.float64(self.log_normaliser)

    def sample(self, size: int, rng: Generator) -> NDArray[np.intp]:
        """Independent draws.

        Args:
            size: how many, at least 0.
            rng: source of the randomness.

        Returns:
            (size, K) item indices, different within a row.
        """
        bound = self._draw_bounds(size, rng)
        if self.keywords > _MOST_INSERTED:
            ranks = np.array([self._draw_one(self._admitted[j], rng) for j in bound], np.int64)
            return self._order[ranks.reshape(size, self.keywords)]
        ranks = np.empty((self.keywords, size), np.int64)
        chosen: list[NDArray[np.int64]] = []  # ascending, row by row
        for run, (start, end) in enumerate(zip(self._starts, self._ends, strict=True)):
            admitted = self._admitted[bound, run]
            for i in range(start, end):
                rank = rng.integers(admitted - i)
                for earlier in chosen:
                    rank += earlier <= rank
                ranks[i] = rank
                for j, earlier in enumerate(chosen):
                    chosen[j], rank = np.minimum(earlier, rank), np.maximum(earlier, rank)
                chosen.append(rank)
        return np.ascontiguousarray(self._order[ranks].T)

    def _draw_bounds(self, size: int, rng: Generator) -> NDArray[np.intp]:
        # The rarest first, where the two uniform draws resolve probabilities down to 2^-106.
        rarest = np.argsort(self._mixture)
        cumulative = np.cumsum(self._mixture[rarest])
        uniform = (rng.random(size) + rng.random(size) * 2.0**-53) * cumulative[-1]
        found = np.searchsorted(cumulative, uniform, side="right")
        bounds: NDArray[np.intp] = rarest[np.minimum(found, len(rarest) - 1)]
        return bounds

    def _draw_one(self, admitted: NDArray[np.int64], rng: Generator) -> NDArray[np.int64]:
        left, seen = np.empty(0, np.int64), 0
        parts = []
        for n, start, end in zip(admitted, self._starts, self._ends, strict=True):
            left = rng.permutation(np.concatenate([left, np.arange(seen, n)]))
            seen = n
            parts.append(left[: end - start])
            left = left[end - start :]
        return np.concatenate(parts)

    def _sequences(self, sequences: ArrayLike) -> NDArray[np.integer]:
        rows = np.asarray(sequences)
        if rows.dtype.kind not in "iu":
            msg = f"sequences must hold item indices, got dtype {rows.dtype}."
            raise TypeError(msg)
        if rows.ndim != 2 or rows.shape[1] != self.keywords:
            msg = f"sequences must have shape (n, {self.keywords}), got {rows.shape}."
            raise ValueError(msg)
        ascending = np.sort(rows, axis=1)
        if rows.size and (
            ascending.min() < 0
            or ascending.max() >= len(self.counts)
            or (ascending[:, 1:] == ascending[:, :-1]).any()
        ):
            msg = f"sequences must hold different item indices in [0, {len(self.counts)}) in every row."
            raise ValueError(msg)
        return rows


def validate_counts(value: ArrayLike) -> NDArray[np.int64]:
    """Return counts as a read-only int64 array of shape (V,).

    Raises:
        TypeError: they are not real numbers.
        ValueError: they are not whole, not finite, not one-dimensional, or there are none.
    """
    given = np.asarray(value)
    if given.dtype.kind not in "iuf":
        msg = f"counts must be whole numbers, got dtype {given.dtype}."
        raise TypeError(msg)
    if given.ndim != 1 or not len(given):
        msg = f"counts must have shape (V,) with V at least 1, got shape {given.shape}."
        raise ValueError(msg)
    if given.dtype.kind == "f" or given.dtype.itemsize == np.dtype(np.uint64).itemsize:
        odd = given[~((given == np.floor(given)) & (abs(given.astype(np.float64)) <= 2.0**53))]
        if len(odd):
            msg = f"counts must be whole numbers of at most 2**53, got {odd[0]!r}."
            raise ValueError(msg)
    counts = given.astype(np.int64)
    counts.flags.writeable = False
    return counts


def validate_keywords(value: object, items: int) -> int:
    """Return the number of keywords K as an int.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is below 1, or above the number of items to choose from.
    """
    accepted = f"keywords must be an integer from 1 to the number of tokens, {items}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        msg = f"{accepted}, got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)
    keywords = int(value)
    if not 1 <= keywords <= items:
        msg = f"{accepted}, got {value!r}."
        raise ValueError(msg)
    return keywords


def validate_rate(value: object) -> float:
    """Return the rate η as a float.

    Raises:
        TypeError: it is not a real number.
        ValueError: it is negative or not finite.
    """
    try:
        return validate_epsilon(value)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("epsilon", "rate", 1)) from None


def _descending(counts: NDArray[np.int64]) -> NDArray[np.intp]:
    falling = counts.max() - counts
    if falling.max() <= np.iinfo(np.uint16).max:
        falling = falling.astype(np.uint16)  # sorted by radix
    return np.argsort(falling, kind="stable")
