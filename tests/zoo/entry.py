"""What the zoo holds: real bugs beside their repaired twins, and correct mechanisms that look wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pytest_snapaudit.engine.claim import PrivacyClaim

Outputs = NDArray[np.float64]
"""(n,) or (n, d); NaN stands for a suppressed value, a missing key, ``None`` or a crash."""

CleanStage = Callable[[Any], Any]
NoiseStage = Callable[[Any, int, Generator], Outputs]


@dataclass(frozen=True)
class TwoStageMechanism:
    """A deterministic stage followed by a noise stage that draws many outputs at once.

    Args:
        clean: dataset -> state, everything that needs no randomness.
        noise: (state, n, rng) -> n independent outputs.
        declared_noise_sigma: standard deviation, in units of the output, of the Gaussian noise added to a
            real-valued state; set only where an auditor may be told it.
    """

    clean: CleanStage
    noise: NoiseStage
    declared_noise_sigma: float | None = None

    def sample(self, dataset: Any, n: int, rng: Generator) -> Outputs:
        """Draw ``n`` independent outputs of the whole mechanism on ``dataset``."""
        return self.noise(self.clean(dataset), n, rng)

    def __repr__(self) -> str:
        """Both stages by name and parameters, the same in every process."""
        return f"TwoStageMechanism({_stage_in_words(self.clean)}, {_stage_in_words(self.noise)})"


def _stage_in_words(stage: Callable[..., Any]) -> str:
    if not isinstance(stage, partial):
        return stage.__name__
    parameters = ", ".join(f"{name}={value!r}" for name, value in stage.keywords.items())
    return f"{stage.func.__name__}({parameters})"


@dataclass(frozen=True)
class ZooEntry:
    """One public bug, restated on one pair of neighbouring datasets, with its repaired twin.

    Args:
        id: short unique name.
        library: where the bug lived.
        link: the issue, pull request or paper that reports it.
        summary: what went wrong in the real library.
        evidence: how firmly the report ties this restatement to released code.
        epsilon: claimed ε.
        delta: claimed δ.
        pair: how the two datasets differ.
        neighbours: the two datasets.
        broken: the mechanism as it was.
        fixed: a repaired mechanism that meets the claim on ``neighbours``.
        true_epsilon: the smallest ε for which ``broken`` is (ε, ``delta``)-private on ``neighbours``,
            both directions; infinite where no ε is large enough.
        why: where ``true_epsilon`` comes from.
        side_channels: features beyond the value of the output without which the bug cannot be seen:
            ``"low-bit"`` (lowest set bit of a float), ``"timing"`` (the last output column is a run time).
        see_also: further sources.
    """

    id: str
    library: str
    link: str
    summary: str
    evidence: str
    epsilon: float
    pair: str
    neighbours: tuple[Any, Any]
    broken: TwoStageMechanism
    fixed: TwoStageMechanism
    true_epsilon: float
    why: str
    delta: float = 0.0
    side_channels: tuple[str, ...] = ()
    see_also: tuple[str, ...] = ()

    @property
    def claim(self) -> PrivacyClaim:
        """The claim that ``broken`` violates and ``fixed`` meets."""
        return PrivacyClaim(self.epsilon, self.delta)

    @property
    def declared_noise_sigma(self) -> float | None:
        """Standard deviation an auditor of ``broken`` may be told; ``fixed`` carries its own."""
        return self.broken.declared_noise_sigma

    def __str__(self) -> str:
        """The entry's id, which names its test."""
        return self.id


@dataclass(frozen=True)
class Hazard:
    """A correct mechanism that careless auditing flags.

    Args:
        id: short unique name.
        trap: the mistake that makes it look broken.
        epsilon: claimed ε; the claim holds on ``neighbours``.
        delta: claimed δ.
        neighbours: the two datasets.
        mechanism: the mechanism.
        true_epsilon: the smallest ε for which it is (ε, ``delta``)-private on ``neighbours``.
        why: why the claim holds, and why it looks as if it did not.
        see_also: where the confusion is on record.
    """

    id: str
    trap: str
    epsilon: float
    neighbours: tuple[Any, Any]
    mechanism: TwoStageMechanism
    true_epsilon: float
    why: str
    delta: float = 0.0
    see_also: tuple[str, ...] = ()

    @property
    def claim(self) -> PrivacyClaim:
        """The claim, which holds."""
        return PrivacyClaim(self.epsilon, self.delta)

    def __str__(self) -> str:
        """The hazard's id, which names its test."""
        return self.id
