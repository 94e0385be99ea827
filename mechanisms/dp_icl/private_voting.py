"""Private Voting: classification by a noisy vote of language models over disjoint partitions.

Wu et al., "Privacy-Preserving In-Context Learning for Large Language Models" (2023); in the SnapAudit paper
Algorithm 3. The stages, apart from one another:

- recorded: what the model said, one answer per partition, shape (T,);
- :meth:`PrivateVoting.aggregate`: answers to vote counts, shape (K,);
- :meth:`PrivateVoting.privatize`: independent N(0, σ²) on every count;
- :meth:`PrivateVoting.release`: the label with the largest noisy count.

A neighbouring dataset changes one partition (:mod:`dp_icl.partition`), hence one answer, hence moves at most
one vote: from one label to another (L2 distance √2), to or from no label (distance 1), or not at all. That
holds for replacing an exemplar and, dealt by content, for adding or removing one. Adding one does not add a
vote: it changes what its partition is shown, and a partition left without exemplars answers zero-shot. So the
sensitivity is √2 under either adjacency; 1 would be right only if a removed exemplar silenced its partition.

The Gaussian vector itself satisfies the claim, so the claim covers the noisy counts (white-box) as well as the
released label (black-box).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from dp_icl.calibration import Calibration, GaussianNoise, gaussian_sigma, validate_delta, validate_epsilon
from dp_icl.labels import answers_array, validate_labels
from dp_icl.partition import Adjacency, split, validate_adjacency, validate_partitions, validate_seed

VoterModel = Callable[[tuple[Any, ...]], str | int | None]


@dataclass(frozen=True, repr=False)
class PrivateVoting:
    """(ε, δ)-differentially private label of one query.

    Args:
        labels: the K ≥ 2 labels: distinct, non-empty, without surrounding whitespace.
        partitions: number T ≥ 1 of disjoint partitions.
        epsilon: claimed ε, finite and at least 0.
        delta: claimed δ, in (0, 1).
        calibration: ``"analytic"`` (Balle & Wang 2018), or ``"classical"`` where it is proven (ε below 1).
        seed: deals the exemplars to the partitions.
        model: ``model(partition)`` answers the query from the exemplars of one partition (none of them,
            when there are more partitions than exemplars: a zero-shot answer) with a label, the index of a
            label, or None. It must be deterministic and is never shown two partitions at once, on which the
            sensitivity rests. Without a model, datasets are recorded answers.
        adjacency: ``"replace-one"`` or ``"add-remove"`` (of one exemplar); it decides how exemplars are dealt
            to the partitions.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument is out of range.
    """

    labels: tuple[str, ...]
    partitions: int
    epsilon: float
    delta: float
    calibration: Calibration = "analytic"
    seed: int = 0
    model: VoterModel | None = field(default=None, hash=False)
    adjacency: Adjacency = "replace-one"
    noise: GaussianNoise = field(init=False, compare=False)

    deterministic: ClassVar[bool] = True
    sensitivity: ClassVar[float] = math.sqrt(2.0)
    norm: ClassVar[str] = "l2"
    claimed_views: ClassVar[frozenset[str]] = frozenset({"black-box", "white-box"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", validate_labels(self.labels))
        object.__setattr__(self, "partitions", validate_partitions(self.partitions))
        object.__setattr__(self, "epsilon", validate_epsilon(self.epsilon))
        object.__setattr__(self, "delta", validate_delta(self.delta))
        object.__setattr__(self, "seed", validate_seed(self.seed))
        if self.model is not None and not callable(self.model):
            msg = f"model must be callable or None, got {self.model!r} of type {type(self.model).__name__}."
            raise TypeError(msg)
        object.__setattr__(self, "adjacency", validate_adjacency(self.adjacency))
        object.__setattr__(self, "noise", GaussianNoise(self._sigma()))

    def __repr__(self) -> str:
        text = (
            f"labels={self.labels!r}, partitions={self.partitions}, epsilon={self.epsilon}, delta={self.delta}, "
            f"calibration={self.calibration!r}, seed={self.seed}"
        )
        if self.adjacency != "replace-one":
            text += f", adjacency={self.adjacency!r}"
        return f"{type(self).__name__}({text})"

    def _sigma(self) -> float:
        return gaussian_sigma(self.epsilon, self.delta, self.sensitivity, self.calibration)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on each vote count, in votes."""
        return self.noise.sigma

    @property
    def claim(self) -> tuple[float, float]:
        """The claimed (ε, δ)."""
        return self.epsilon, self.delta

    def answers(self, exemplars: Sequence[Any]) -> NDArray[np.str_]:
        """What the model says, asked once per partition; the part worth recording.

        Args:
            exemplars: n exemplars of any kind.

        Returns:
            (T,) texts: the answers as given, an index replaced by its label, and "" for no answer.

        Raises:
            ValueError: the mechanism has no model.
            TypeError: ``exemplars`` is not a sequence, or the model answered with neither text, index nor
                None.
        """
        if self.model is None:
            msg = "PrivateVoting has no model to ask; construct it with model=..., or use recorded answers."
            raise ValueError(msg)
        parts = split(exemplars, self.partitions, self.seed, self.adjacency)
        said = [self.model(part) for part in parts]
        return np.array([answer if isinstance(answer, str) else self._text(answer) for answer in said])

    def record(self, exemplars: Sequence[Any], size: int, rng: Generator) -> NDArray[np.str_]:
        """``size`` evaluations of :meth:`answers`, (size, T), in the form a snapshot records."""
        return np.stack([self.answers(exemplars) for _ in range(size)])

    def aggregate(self, answers: ArrayLike) -> NDArray[np.int64]:
        """Count the votes.

        Args:
            answers: (T,) what the model said: texts, or indices into ``labels``. Whitespace around a text
                is ignored, its case is not. An answer that names no label counts for none.

        Returns:
            (K,) votes per label; their sum is T less the answers that named no label.

        Raises:
            TypeError: the answers are neither texts nor integers.
            ValueError: there is not one answer per partition.
        """
        said = answers_array(answers)
        if said.shape != (self.partitions,):
            msg = (
                f"answers must hold one answer per partition, shape ({self.partitions},), "
                f"got shape {said.shape}."
            )
            raise ValueError(msg)
        votes = np.array([self._vote(answer) for answer in said.tolist()], np.int64)
        return np.bincount(votes[votes >= 0], minlength=len(self.labels)).astype(np.int64, copy=False)

    def clean(self, dataset: Any, rng: Generator) -> NDArray[np.int64]:
        """Vote counts without noise.

        Args:
            dataset: the exemplars when there is a model, else the recorded answers, (T,).
            rng: unused; the clean stage is deterministic.

        Returns:
            (K,) votes per label.
        """
        return self.aggregate(dataset if self.model is None else self.answers(dataset))

    def privatize(self, clean_rows: ArrayLike, rng: Generator) -> NDArray[np.float64]:
        """Add independent N(0, σ²) to every count.

        Args:
            clean_rows: (n, K) vote counts; never modified.
            rng: source of the noise.

        Returns:
            (n, K) noisy counts.

        Raises:
            ValueError: the rows are not of length K.
        """
        rows = np.asarray(clean_rows)
        if rows.ndim != 2 or rows.shape[1] != len(self.labels):
            msg = (
                f"clean_rows must have shape (n, {len(self.labels)}), one count per label, got {rows.shape}."
            )
            raise ValueError(msg)
        noisy = rng.standard_normal(rows.shape)
        noisy *= self.sigma
        noisy += rows
        return noisy

    def release(self, noisy: ArrayLike, rng: Generator) -> NDArray[np.intp]:
        """The winning label of every row.

        Tied clean counts are decided by the noise; should noisy counts be equal, the first label wins.

        Args:
            noisy: (n, K) noisy counts.
            rng: unused; post-processing adds no randomness.

        Returns:
            (n,) indices into ``labels``.
        """
        winners: NDArray[np.intp] = np.argmax(np.asarray(noisy), axis=1)
        return winners

    def _text(self, answer: object) -> str:
        vote = self._vote(answer)
        return self.labels[vote] if vote >= 0 else ""

    def _vote(self, answer: object) -> int:
        if answer is None:
            return -1
        if isinstance(answer, str):
            text = answer.strip()
            return self.labels.index(text) if text in self.labels else -1
        if isinstance(answer, int | np.integer) and not isinstance(answer, bool):
            return int(answer) if 0 <= answer < len(self.labels) else -1
        msg = (
            f"an answer must be a text, an index into labels, or None, "
            f"got {answer!r} of type {type(answer).__name__}."
        )
        raise TypeError(msg)
