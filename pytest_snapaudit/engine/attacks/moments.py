"""Sums over all trials counted so far: a direction in many dimensions, from more trials than are kept as rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.attacks.scores import Projection, finite
from pytest_snapaudit.engine.outcomes import Rows

LEAST_COLUMNS = 5
"""Narrower outputs are kept in such numbers that sums would add nothing."""


@dataclass(frozen=True)
class ColumnMoments:
    """Sums and sums of squares of every column, on either side.

    Attributes:
        n: trials per side.
        sums, squares: (2, d).
    """

    n: int
    sums: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, reference: Rows, canary: Rows) -> ColumnMoments:
        """Of (n, d) outputs per side."""
        sides = finite(reference), finite(canary)
        return cls(
            len(reference),
            np.stack([side.sum(axis=0, dtype=np.float64) for side in sides]),
            np.stack([np.einsum("ij,ij->j", side, side, dtype=np.float64) for side in sides]),
        )

    def __add__(self, more: ColumnMoments) -> ColumnMoments:
        return ColumnMoments(self.n + more.n, self.sums + more.sums, self.squares + more.squares)

    def discriminant(self) -> Projection | None:
        """The linear discriminant of independent columns; None where the sums overflow or show no difference."""
        with np.errstate(all="ignore"):
            means = self.sums / self.n
            variances = np.maximum(self.squares / self.n - means**2, 0.0).sum(axis=0)
            weights = (means[1] - means[0]) / (variances + 1e-9 * variances.mean() + 1e-300)
        if not np.isfinite(weights).all() or not weights.any():
            return None
        return Projection(weights, "linear discriminant of the output, from earlier trials")
