"""Privacy budgets weighted towards the values at which calibration proofs and code break."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import strategies as st

from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.strategies._arguments import integer, positive, real

# The classical Gaussian calibration is proven for epsilon < 1 only, and first under-noises near 8.4.
_EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 50.0, 0.1, 1e-3)
_DELTAS = (0.0, 1e-5, 1e-12, 0.1, 1e-9)


def edges_first(edges: Sequence[float], interior: st.SearchStrategy[float]) -> st.SearchStrategy[float]:
    """Half the draws from ``edges`` (shrinking to the first), half from ``interior``."""
    return st.one_of(st.sampled_from(edges), interior) if edges else interior


def _log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    def rounded(exponent: float) -> float:
        return min(max(float(f"{10.0**exponent:.3g}"), low), high)

    return st.floats(math.log10(low), math.log10(high)).map(rounded)


def epsilons(*, min_epsilon: float = 1e-3, max_epsilon: float = 50.0) -> st.SearchStrategy[float]:
    """Values of ε in [min_epsilon, max_epsilon]: 1, 8, 16, 0.1, 0.001, 50, ..., and values in between.

    Shrinks to 1 where that is allowed.

    Raises:
        TypeError, ValueError: if a limit is not a finite number above 0, or the interval is empty.
    """
    low = positive("epsilons", "min_epsilon", min_epsilon)
    high = positive("epsilons", "max_epsilon", max_epsilon)
    if low > high:
        msg = f"epsilons: min_epsilon must be at most max_epsilon, got {min_epsilon!r} > {max_epsilon!r}."
        raise ValueError(msg)
    edges = dict.fromkeys([e for e in _EPSILONS if low <= e <= high] + [high, low])
    return edges_first(list(edges), _log_uniform(low, high))


def deltas(
    *, n: int | None = None, min_delta: float = 0.0, max_delta: float = 0.1
) -> st.SearchStrategy[float]:
    """Values of δ in [min_delta, max_delta]: 0, 1e-5, 1e-12, 0.1, ..., and values in between.

    Shrinks to 0 where that is allowed.

    Args:
        n: number of records in the dataset; adds 1/n and its neighbourhood (its two adjacent floats,
            1/(2n), 1/n²): a claim with δ ≥ 1/n permits publishing a record.
        min_delta: smallest value; give a positive one for mechanisms that need δ > 0.
        max_delta: largest value, below 1; 0 for pure differential privacy.

    Raises:
        TypeError, ValueError: if a limit lies outside [0, 1), the interval is empty, or ``n`` is not a
            positive integer.
    """
    below_one = math.nextafter(1.0, 0.0)
    low = real("deltas", "min_delta", min_delta, "a number in [0, 1)", 0.0, below_one)
    high = real("deltas", "max_delta", max_delta, "a number in [0, 1)", 0.0, below_one)
    if low > high:
        msg = f"deltas: min_delta must be at most max_delta, got {min_delta!r} > {max_delta!r}."
        raise ValueError(msg)
    near_one_over_n: list[float] = []
    if n is not None:
        inverse = 1.0 / integer("deltas", "n", n, 1)
        near_one_over_n = [
            inverse,
            math.nextafter(inverse, 0.0),
            math.nextafter(inverse, 1.0),
            inverse / 2,
            inverse**2,
        ]
    candidates = [*_DELTAS[:2], *near_one_over_n, *_DELTAS[2:], high, low]
    edges = list(dict.fromkeys(d for d in candidates if low <= d <= high))
    smallest = max(low, 1e-15)
    return edges_first(edges, _log_uniform(smallest, high)) if smallest < high else st.sampled_from(edges)


def privacy_budgets(
    *,
    n: int | None = None,
    min_epsilon: float = 1e-3,
    max_epsilon: float = 50.0,
    min_delta: float = 0.0,
    max_delta: float = 0.1,
) -> st.SearchStrategy[tuple[float, float]]:
    """Pairs (ε, δ); see :func:`epsilons` and :func:`deltas` for arguments and errors. Shrinks to (1, 0)."""
    return st.tuples(
        epsilons(min_epsilon=min_epsilon, max_epsilon=max_epsilon),
        deltas(n=n, min_delta=min_delta, max_delta=max_delta),
    )


def claims(
    *,
    n: int | None = None,
    min_epsilon: float = 1e-3,
    max_epsilon: float = 50.0,
    min_delta: float = 0.0,
    max_delta: float = 0.1,
) -> st.SearchStrategy[PrivacyClaim]:
    """Privacy claims; see :func:`epsilons` and :func:`deltas` for arguments and errors. Shrinks to (1, 0).

    This is what ``st.from_type(PrivacyClaim)`` draws from.
    """
    epsilon = epsilons(min_epsilon=min_epsilon, max_epsilon=max_epsilon)
    return st.builds(
        PrivacyClaim, epsilon=epsilon, delta=deltas(n=n, min_delta=min_delta, max_delta=max_delta)
    )
