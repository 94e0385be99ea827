"""The schedule of looks: fresh batches growing fivefold, each with its share of the error probability."""

from __future__ import annotations

from dataclasses import dataclass

PILOT = 500
"""Tuning trials per side before the first look; they are never counted."""

_FIRST, _GROWTH = 1000, 5


@dataclass(frozen=True)
class Look:
    """One look.

    Attributes:
        index: 0, 1, 2, ...
        trials: fresh trials per side, counted in this look.
        share: of the error probability of the event-count gate; the shares add up to 1.
        last: whether no look follows.
    """

    index: int
    trials: int
    share: float
    last: bool


def schedule(n_trials: int, *, single: bool = False) -> tuple[Look, ...]:
    """Looks whose trials add up to ``n_trials``; half of the error probability goes to the last.

    Args:
        n_trials: counted trials per side.
        single: one look with everything, as in the paper's tables.
    """
    sizes: list[int] = []
    size, left = _FIRST, n_trials
    while not single and left >= 2 * size:
        sizes.append(size)
        left -= size
        size *= _GROWTH
    sizes.append(left)
    count = len(sizes)
    shares = [0.5 ** (count - 1 - i) * (0.5 if i else 1.0) for i in range(count)]
    return tuple(
        Look(i, trials, share, i == count - 1)
        for i, (trials, share) in enumerate(zip(sizes, shares, strict=True))
    )
