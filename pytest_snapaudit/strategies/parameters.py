"""Parameters of private pipelines: partitions, experts, dimensions, clipping bounds, K."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from pytest_snapaudit.strategies._arguments import integer, positive

_COMMON_DIMENSIONS = (2, 3, 384, 768, 1024)
_LISTED = 256


def _counts(edges: Iterable[int], low: int, high: int) -> st.SearchStrategy[int]:
    """Half the draws from ``edges``; shrinks to the smallest that will do, edge or not."""
    kept = sorted({low, *(e for e in edges if low <= e <= high)})
    if high - low > _LISTED:
        return st.one_of(st.integers(low, high), st.sampled_from(kept))
    weight = max(1, round((high - low + 1) / len(kept)))
    return st.sampled_from(sorted([*range(low, high + 1), *kept * weight]))


def partitions(max_partitions: int | None = None, *, exemplars: int | None = None) -> st.SearchStrategy[int]:
    """Numbers of disjoint partitions T, shrinking to T=1.

    T=1 (where a sensitivity of 1 in place of 2/T shows) and the largest T are always likely; with
    ``exemplars`` so are T = exemplars and, unless ``max_partitions`` forbids it, T > exemplars (some
    partitions are then empty).

    Args:
        max_partitions: largest T; by default 16, or twice the exemplars if that is more.
        exemplars: how many exemplars are partitioned.

    Raises:
        TypeError, ValueError: if ``max_partitions`` is not an integer of at least 1, or ``exemplars`` not one
            of at least 0.
    """
    known = 0 if exemplars is None else integer("partitions", "exemplars", exemplars, 0)
    high = (
        max(16, 2 * known)
        if max_partitions is None
        else integer("partitions", "max_partitions", max_partitions, 1)
    )
    around = [] if exemplars is None else [known - 1, known, known + 1, 2 * known]
    return _counts([1, 2, *around, high], 1, high)


def expert_counts(max_experts: int = 16) -> st.SearchStrategy[int]:
    """Numbers of experts J of a product of experts, shrinking to 1; 1, 2 and the largest are always likely.

    Raises:
        TypeError, ValueError: if ``max_experts`` is not an integer of at least 1.
    """
    high = integer("expert_counts", "max_experts", max_experts, 1)
    return _counts([1, 2, high], 1, high)


def dimensions(max_dimension: int = 1024) -> st.SearchStrategy[int]:
    """Dimensions of vectors, shrinking to 1; 1, 2, 3, those of common embedding models, and the largest.

    Raises:
        TypeError, ValueError: if ``max_dimension`` is not an integer of at least 1.
    """
    high = integer("dimensions", "max_dimension", max_dimension, 1)
    return _counts([1, *_COMMON_DIMENSIONS, high], 1, high)


def clipping_bounds(*, magnitude: float = 1e6) -> st.SearchStrategy[tuple[float, float]]:
    """Clipping bounds (lower, upper) with lower < upper, shrinking to (0, 1).

    Likely: symmetric, asymmetric around zero (a scale read from one end only), away from zero (where the
    width is not the largest magnitude), all negative, very narrow and very wide ones.

    Args:
        magnitude: largest absolute value of a bound.

    Raises:
        TypeError, ValueError: if ``magnitude`` is not a finite number above 0.
    """
    largest = positive("clipping_bounds", "magnitude", magnitude)
    edges = [
        (0.0, 1.0),
        (-1.0, 1.0),
        (2.0, 3.0),
        (-1.0, 3.0),
        (-3.0, -2.0),
        (-1.0, 0.0),
        (0.0, 1e-6),
        (0.0, 100.0),
        (0.0, largest),
        (-largest, largest),
    ]
    kept = list(dict.fromkeys(edge for edge in edges if max(abs(edge[0]), abs(edge[1])) <= largest))
    ends = st.floats(-largest, largest)
    distinct = st.tuples(ends, ends).filter(lambda pair: pair[0] != pair[1])
    return st.one_of(st.sampled_from(kept), distinct.map(lambda pair: (min(pair), max(pair))))


def top_k(max_k: int | None = None, *, candidates: int | None = None) -> st.SearchStrategy[int]:
    """Numbers K of selected candidates, shrinking to 1.

    With ``candidates``, K = candidates and, unless ``max_k`` forbids it, K > candidates are always likely.

    Args:
        max_k: largest K; by default 16, or candidates + 1.
        candidates: how many candidates there are to select from.

    Raises:
        TypeError, ValueError: if ``max_k`` is not an integer of at least 1, or ``candidates`` not one of at
            least 0.
    """
    known = 0 if candidates is None else integer("top_k", "candidates", candidates, 0)
    default = 16 if candidates is None else known + 1
    high = default if max_k is None else integer("top_k", "max_k", max_k, 1)
    around = [] if candidates is None else [known - 1, known, known + 1]
    return _counts([1, 2, *around, high], 1, high)
