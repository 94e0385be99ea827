"""Directions along which the two sides spread unequally: exact relations between coordinates, random signs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, eigh

from pytest_snapaudit.engine.attacks.scores import Score, finite
from pytest_snapaudit.engine.outcomes import Rows

_ROWS, _ROWS_PER_COLUMN = 2_000, 16
_CLEARLY = 6.0
"""Chance spreads two sides apart by about 2 sqrt(d / n) of their variance; this many are more than that."""


@dataclass(frozen=True)
class AlongDirection(Score):
    """Distance from the centre along one direction.

    Attributes:
        direction: (d,) weights of the coordinates.
        centre: inner product of the direction with the centre.
    """

    direction: NDArray[np.float64]
    centre: float

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        return np.asarray(np.abs(finite(rows).astype(np.float64, copy=False) @ self.direction - self.centre))

    @property
    def name(self) -> str:
        return "distance of the output from its centre along the direction in which the sides spread most unequally"


def fit_directions(reference: Rows, canary: Rows, varying: NDArray[np.intp]) -> list[AlongDirection]:
    """The directions of the largest and of the smallest quotient of the two sides' variances, if they are unequal.

    They solve the generalised eigenvalue problem of the two covariances ("common spatial patterns": Koles, Lazar and
    Zhou, Brain Topography 1990), of outputs within their central 99.8 %.

    Args:
        reference, canary: (h, d) finite tuning outputs.
        varying: indices of the columns to combine.
    """
    d = len(varying)
    a, b = (
        rows[: _ROWS + _ROWS_PER_COLUMN * d][:, varying].astype(np.float64) for rows in (reference, canary)
    )
    if min(len(a), len(b)) < 4 * d:
        return []
    lower, upper = np.quantile(np.concatenate([a, b]), [0.001, 0.999], axis=0)
    a, b = (rows[((rows >= lower) & (rows <= upper)).all(axis=1)] for rows in (a, b))
    if min(len(a), len(b)) < 4 * d:
        return []
    spread = np.maximum(np.concatenate([a, b]).std(axis=0), 1e-300)
    scaled = a / spread, b / spread
    first, second = (np.atleast_2d(np.cov(rows.T)) + 1e-9 * np.eye(d) for rows in scaled)
    try:
        quotients, directions = eigh(first, second)
    except (LinAlgError, ValueError):
        return []
    apart = _CLEARLY * math.sqrt(d / min(len(a), len(b)))
    found = []
    for k, sides in ((0, scaled[0]), (-1, scaled[1])):  # the side that spreads less has its centre there
        if not abs(math.log(max(float(quotients[k]), 1e-300))) > apart:
            continue
        direction = np.zeros(reference.shape[1])
        direction[varying] = directions[:, k] / spread
        found.append(AlongDirection(direction, float(np.median(sides @ directions[:, k]))))
    return found
