"""Membership attacks: scores of an output that are larger the more it looks like the canary's.

An attack is called with n outputs and returns n numbers, so that an auditor can choose a threshold on them; what it
would say without one is :meth:`Attack.decide`, the paper's fixed decision. Outputs are arrays (n, d) of numbers, as
auditors give them, or texts. Of outputs that are not of its kind, such as a released label where it reads noisy
counts, an attack says nothing: its score is 0 and its decision "absent", so that one mapping of attacks serves
all views of a mechanism.

- black-box: :class:`LabelReleased`, :class:`KeywordReleased`, :class:`TextSays`;
- white-box: :class:`Projection`, :class:`GaussianLikelihoodRatio`, :class:`GumbelLikelihoodRatio`,
  :class:`KeywordLikelihoodRatio`.

:mod:`dp_icl.membership` makes those of the SnapAudit paper for a mechanism and a pair of clean outputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_icl.calibration import validate_positive
from dp_icl.joint_exponential import JointExponential
from dp_icl.words import tokenise

View = Literal["black-box", "white-box"]


class Attack(ABC):
    """A named score with a fixed threshold.

    Attributes:
        name: what the score says, as a noun phrase.
        view: the view it was made for.
        threshold: scores above it are decided "canary present".
    """

    name: str
    view: View
    threshold: float = 0.0

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        """The scores of n outputs, (n,)."""
        rows = _rows(outputs, self._width)
        return np.zeros(len(outputs)) if rows is None else self._score(rows)

    def decide(self, outputs: Any) -> NDArray[np.bool_]:
        """Whether the canary is present according to each of n outputs, (n,)."""
        return np.asarray(self(outputs) > self.threshold)

    @property
    @abstractmethod
    def _width(self) -> int:
        """How many numbers an output of its kind has."""

    @abstractmethod
    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores of (n, width) numbers."""


@dataclass(frozen=True)
class LabelReleased(Attack):
    """1 where a classifier released one particular label, or a generator one particular candidate, else 0.

    Args:
        index: of the label or candidate, at least 0.
        name: printed in reports.

    Raises:
        ValueError: ``index`` is not an integer of at least 0.
    """

    index: int
    name: str = "label released"
    view: View = "black-box"

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", _count("index", self.index, least=0))

    @property
    def _width(self) -> int:
        return 1

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(rows[:, 0] == self.index, np.float64)


@dataclass(frozen=True)
class KeywordReleased(Attack):
    """1 where a token is among the K keywords, else 0.

    Args:
        token: index in the vocabulary, at least 0.
        keywords: K, at least 1.
        name: printed in reports.

    Raises:
        ValueError: a number is not an integer, or below its minimum.
    """

    token: int
    keywords: int = 1
    name: str = "keyword released"
    view: View = "black-box"

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", _count("token", self.token, least=0))
        object.__setattr__(self, "keywords", _count("keywords", self.keywords, least=1))

    @property
    def _width(self) -> int:
        return self.keywords

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((rows == self.token).any(axis=1), np.float64)


@dataclass(frozen=True)
class TextSays(Attack):
    """1 where an answer contains the words of a phrase one after the other, whatever their case, else 0.

    For whole pipelines whose outputs are texts.

    Args:
        phrase: at least one word.
        name: printed in reports.

    Raises:
        ValueError: there is no word in the phrase.
    """

    phrase: str
    name: str = "phrase in the answer"
    view: View = "black-box"

    def __post_init__(self) -> None:
        if not tokenise(self.phrase):
            msg = f"phrase must contain a word, got {self.phrase!r}."
            raise ValueError(msg)

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        """The scores of n texts, (n,); 0 for what is no text."""
        wanted = f" {' '.join(tokenise(self.phrase))} "
        said = (str(each) if isinstance(each, str) else "" for each in outputs)
        return np.array([float(wanted in f" {' '.join(tokenise(each))} ") for each in said])

    @property
    def _width(self) -> int:
        return 0

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.zeros(len(rows))


@dataclass(frozen=True, eq=False)
class _OfCleanOutputs(Attack):
    """An attacker who knows both clean outputs and sees the noisy one.

    Args:
        reference, canary: (d,) clean outputs, finite and different.

    Raises:
        ValueError: they are not two different finite vectors of one length.
    """

    reference: NDArray[np.float64]
    canary: NDArray[np.float64]

    def __post_init__(self) -> None:
        first, second = (_vector(each) for each in (self.reference, self.canary))
        if first.shape != second.shape or (first == second).all():
            msg = (
                "reference and canary must be different clean outputs of one length, got shapes "
                f"{first.shape} and {second.shape}{'' if first.shape != second.shape else ' with equal values'}."
            )
            raise ValueError(msg)
        object.__setattr__(self, "reference", first)
        object.__setattr__(self, "canary", second)

    @property
    def _width(self) -> int:
        return len(self.reference)


@dataclass(frozen=True, eq=False)
class Projection(_OfCleanOutputs):
    """Where the output lies along the line from the reference's clean output to the canary's.

    −1/2 at the one, 1/2 at the other. For noise of one Gaussian law on every coordinate, a threshold on it is the
    most powerful test there is (Neyman & Pearson).
    """

    name: str = "projection on the difference of the clean outputs"
    view: View = "white-box"

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        direction = self.canary - self.reference
        middle = (self.canary + self.reference) / 2.0
        scores: NDArray[np.float64] = (rows @ direction - middle @ direction) / (direction @ direction)
        return scores


@dataclass(frozen=True, eq=False)
class GaussianLikelihoodRatio(_OfCleanOutputs):
    """Log of the ratio of the densities, canary over reference, of N(0, sigma²) noise on every coordinate.

    Args:
        reference, canary: (d,) clean outputs.
        sigma: of the noise, in their units.
    """

    sigma: float = 1.0
    name: str = "log-likelihood ratio of Gaussian noise"
    view: View = "white-box"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sigma", validate_positive("sigma", self.sigma))

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        direction = (self.canary - self.reference) / self.sigma
        middle = (self.canary + self.reference) / (2.0 * self.sigma)
        scores: NDArray[np.float64] = (rows / self.sigma - middle) @ direction
        return scores


@dataclass(frozen=True, eq=False)
class GumbelLikelihoodRatio(_OfCleanOutputs):
    """Log of the ratio of the densities, canary over reference, of Gumbel noise on every coordinate.

    With z = (x − u) / scale the log-density is −z − e^{−z}, up to a constant.

    Args:
        reference, canary: (d,) utilities or counts.
        scale: of the noise, in their units.
    """

    scale: float = 1.0
    name: str = "log-likelihood ratio of Gumbel noise"
    view: View = "white-box"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "scale", validate_positive("scale", self.scale))

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        shift = (self.canary - self.reference) / self.scale
        moved = shift != 0.0
        shift = shift[moved]
        z = (rows - self.reference)[:, moved] / self.scale
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.exp(-z) * np.expm1(shift)
            far = np.exp(shift - z) - np.exp(-z)  # where the exponential of a large shift overflows
            terms = shift - np.where(np.abs(shift) < 1.0, near, far)
            scores: NDArray[np.float64] = terms.sum(axis=1)
        return np.nan_to_num(scores, nan=0.0, posinf=np.inf, neginf=-np.inf)


@dataclass(frozen=True, eq=False)
class KeywordLikelihoodRatio(Attack):
    """Log of the ratio of the probabilities, canary over reference, of a sequence of keywords in the order drawn.

    Args:
        reference, canary: the mechanism's output distributions on the two histograms.
    """

    reference: JointExponential
    canary: JointExponential
    name: str = "log-likelihood ratio of the sequence of keywords"
    view: View = "white-box"

    @property
    def _width(self) -> int:
        return self.reference.keywords

    def _score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        tokens = len(self.reference.counts)
        ordered = np.sort(rows, axis=1)
        possible = (
            (ordered[:, 0] >= 0) & (ordered[:, -1] < tokens) & (np.diff(ordered, axis=1) > 0).all(axis=1)
        )
        possible &= (rows == np.floor(rows)).all(axis=1)
        scores = np.zeros(len(rows))
        sequences = rows[possible].astype(np.intp)
        scores[possible] = self.canary.log_probability(sequences) - self.reference.log_probability(sequences)
        return scores


def _rows(outputs: Any, width: int) -> NDArray[np.float64] | None:
    """(n, width) numbers, or None if the outputs are of another kind."""
    try:
        array = np.asarray(outputs)
    except ValueError:
        return None
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        return None
    flat = array.reshape(len(array), -1) if array.size else np.zeros((len(array), width))
    return flat.astype(np.float64, copy=False) if flat.shape[1] == width else None


def _count(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        msg = f"{name} must be an integer of at least {least}, got {value!r}."
        raise ValueError(msg)
    return int(value)


def _vector(value: ArrayLike) -> NDArray[np.float64]:
    vector = np.array(value, dtype=np.float64)
    if vector.ndim != 1 or not np.isfinite(vector).all():
        msg = f"a clean output must be a vector of finite numbers, got shape {vector.shape}: {value!r}."
        raise ValueError(msg)
    vector.flags.writeable = False
    return vector
