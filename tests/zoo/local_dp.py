"""Randomness added by each respondent."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.random import Generator

from .entry import Outputs, TwoStageMechanism, ZooEntry
from .stages import total

TRUTH = 0.75


def answer_or_flip(bit: float, n: int, rng: Generator, *, truth: float) -> Outputs:
    """The true answer with probability ``truth``, else the opposite."""
    return np.where(rng.random(n) < truth, bit, 1.0 - bit)


def answer_or_guess(bit: float, n: int, rng: Generator, *, truth: float) -> Outputs:
    """The true answer with probability ``truth``, else a coin that shows the truth just as often."""
    honest = rng.random(n) < truth
    guessed_right = rng.random(n) < truth
    return np.where(honest | guessed_right, bit, 1.0 - bit)


BUGS = (
    ZooEntry(
        id="odp-rr-bool",
        library="OpenDP",
        link="https://github.com/opendp/opendp/issues/480",
        summary=(
            "Randomised response of one bit claims ln(p/(1 − p)), but the random answer given in place of "
            "the truth may itself be the truth, so that the truth is told with probability p + (1 − p)p."
        ),
        evidence="issue by a maintainer",
        epsilon=math.log(TRUTH / (1 - TRUTH)),
        pair="the respondent's bit; p = ¾",
        neighbours=([0.0], [1.0]),
        broken=TwoStageMechanism(total, partial(answer_or_guess, truth=TRUTH)),
        fixed=TwoStageMechanism(total, partial(answer_or_flip, truth=TRUTH)),
        true_epsilon=math.log(15),
        why="15/16 against 1/16",
    ),
)
