"""Where the true ε is infinite: an event that one side shows often and the other never, or unequal tails."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from .catalogue import BUGS
from .entry import Outputs

Event = Callable[[Outputs], NDArray[np.bool_]]
BUG = {bug.id: bug for bug in BUGS}


def equals(value: float, column: int | None = None) -> Event:
    """The output, or one of its columns, is exactly ``value``."""

    def event(outputs: Outputs) -> NDArray[np.bool_]:
        compared = outputs if column is None else outputs[:, column]
        return np.asarray(compared == value, bool)

    return event


def finer_than_one(outputs: Outputs) -> NDArray[np.bool_]:
    """Below ¼ and no multiple of 2⁻⁵³: out of reach of noise that was added to 1."""
    scaled = outputs * 2.0**53
    return np.asarray((np.abs(outputs) < 0.25) & (np.rint(scaled) != scaled), bool)


WITNESSES: dict[str, tuple[int, float, Event]] = {
    "synthcity-privbayes-K": (0, 1.0, equals(2.0)),
    "svt5-stoddard": (0, 0.1, equals(2.0)),
    "nvflare-svt-passthrough": (0, 0.4, equals(0.8, column=1)),
    "dpl-wishart": (0, 0.6, lambda outputs: outputs < 1.0),
    "sncore-geometric-range": (0, 0.02, equals(1.0)),
    "domain-from-data": (0, 1.0, lambda outputs: np.isnan(outputs[:, 1])),
    "nan-propagates": (1, 1.0, np.isnan),
    "quantile-underflow-crash": (1, 1.0, np.isnan),
    "snsql-none-sensitivity": (1, 1.0, equals(8.0)),
    "mironov-laplace-double": (0, 0.1, finer_than_one),
    "gauss-precision": (0, 0.03, finer_than_one),
    "timing-geometric": (0, 0.5, lambda outputs: outputs[:, 0] == -outputs[:, 1]),
}
"""Entry → side that shows the event, how often at least, the event."""

UNEQUAL_TAILS = {"sncore-mean-private-n", "synthcity-public-n", "bounds-from-data"}


def test_every_infinite_epsilon_has_its_reason() -> None:
    infinite = {bug.id for bug in BUGS if math.isinf(bug.true_epsilon)}
    assert infinite == set(WITNESSES) | UNEQUAL_TAILS


@pytest.mark.parametrize("name", WITNESSES)
def test_an_event_is_possible_on_one_side_only(name: str) -> None:
    bug = BUG[name]
    side, at_least, event = WITNESSES[name]
    outputs = [bug.broken.sample(dataset, 50_000, np.random.default_rng(8)) for dataset in bug.neighbours]
    assert at_least > bug.delta
    assert np.mean(event(outputs[side])) >= at_least
    assert not event(outputs[1 - side]).any()


@pytest.mark.parametrize("name", sorted(UNEQUAL_TAILS))
def test_the_tails_have_unequal_scales(name: str) -> None:
    bug = BUG[name]
    first, second = bug.neighbours
    states = [bug.broken.clean(dataset) for dataset in (first, second)]
    scales = [1 / divisor if name == "synthcity-public-n" else divisor for _, divisor in states]
    assert bug.delta == 0.0
    assert scales[0] != scales[1]
    n = 100_000
    spread = [
        np.median(np.abs(draws - np.median(draws)))
        for draws in (bug.broken.sample(dataset, n, np.random.default_rng(9)) for dataset in (first, second))
    ]
    assert spread[0] / spread[1] == pytest.approx(scales[0] / scales[1], rel=0.05)
