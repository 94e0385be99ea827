"""Neighbouring histograms, and user-level neighbours: one user who owns many rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import DTypeLike

from pytest_snapaudit.strategies._arguments import ADD_REMOVE, ADJACENCIES, choice, integer
from pytest_snapaudit.strategies.content import Content, numeric_dtype
from pytest_snapaudit.strategies.neighbours import Draws, Recipe, pairs_of, references, repeated, row_content
from pytest_snapaudit.strategies.pairs import NeighbouringPair, same

GroupedRows = list[tuple[int, Any]]


def neighbouring_histograms(
    *,
    bins: int = 3,
    total: int | None = None,
    max_count: int = 20,
    dtype: DTypeLike | None = None,
    adjacency: str = ADD_REMOVE,
) -> st.SearchStrategy[NeighbouringPair[list[int]]]:
    """Lists of ``bins`` counts, one record apart.

    Under add-remove one bin of the canary side counts one more; under replace-one a record moves from one bin
    to another. Likely: no records at all, ties, everything in one bin and, with ``dtype``, counts at its
    maximum (so that sums of bins overflow).

    Args:
        bins: number of bins, at least 1 (2 under replace-one).
        total: number of records on the reference side, for example the number of voting partitions; any
            number when not given.
        max_count: largest count per bin drawn when ``total`` is not given.
        dtype: an integer NumPy dtype whose extremes are drawn; not together with ``total``.
        adjacency: ``"add-remove"`` or ``"replace-one"``.

    Raises:
        TypeError, ValueError: if an argument is of the wrong type or out of range.
    """
    given = locals()
    owner = "neighbouring_histograms"
    choice(owner, "adjacency", adjacency, ADJACENCIES)
    replace = adjacency != ADD_REMOVE
    width = integer(owner, "bins", bins, 2 if replace else 1)
    highest = integer(owner, "max_count", max_count, 1)
    if total is not None:
        votes = integer(owner, "total", total, 1 if replace else 0)
        if dtype is not None:
            msg = f"{owner}: give total or dtype, not both; got total={total!r} and dtype={dtype!r}."
            raise ValueError(msg)
        draws = _one_record_apart(_fixed_total(width, votes), adjacency, None)
        return pairs_of(Recipe(neighbouring_histograms, given, draws))
    ceiling = None
    counts: st.SearchStrategy[int] = st.integers(0, highest)
    if dtype is not None:
        resolved = numeric_dtype(owner, dtype)
        if resolved.kind not in "iu":
            msg = f"{owner}: dtype must be an integer NumPy dtype such as 'int32', got {dtype!r}."
            raise TypeError(msg)
        ceiling = int(np.iinfo(resolved).max)
        extremes = [0, 1, ceiling, ceiling - 1, ceiling // 2 + 1]
        counts = st.one_of(st.sampled_from(extremes), st.integers(0, min(highest, ceiling)))
    draws = _one_record_apart(_any_total(width, counts), adjacency, ceiling)
    return pairs_of(Recipe(neighbouring_histograms, given, draws))


def _any_total(bins: int, counts: st.SearchStrategy[int]) -> st.SearchStrategy[list[int]]:
    plain = st.lists(counts, min_size=bins, max_size=bins)
    tied = counts.map(lambda count: [count] * bins)
    single = st.tuples(counts, st.integers(0, bins - 1)).map(
        lambda drawn: [drawn[0] if i == drawn[1] else 0 for i in range(bins)]
    )
    return st.one_of(plain, tied, single)


def _fixed_total(bins: int, total: int) -> st.SearchStrategy[list[int]]:
    def tally(votes: list[int]) -> list[int]:
        return [votes.count(i) for i in range(bins)]

    def split(winners: tuple[int, int]) -> list[int]:
        return tally([winners[i % 2] for i in range(total)])

    label = st.integers(0, bins - 1)
    voted = st.lists(label, min_size=total, max_size=total).map(tally)
    return st.one_of(st.tuples(label, label).map(split), voted)


def _one_record_apart(
    histograms: st.SearchStrategy[list[int]], adjacency: str, ceiling: int | None
) -> Draws[int]:
    def pair(draw: st.DrawFn) -> NeighbouringPair[list[int]]:
        reference = list(draw(histograms))
        bins = range(len(reference))
        source = None
        if adjacency == ADD_REMOVE:
            into = draw(st.integers(0, len(reference) - 1))
        else:
            reference[0] += not any(reference)
            source = draw(st.sampled_from([i for i in bins if reference[i]]))
            into = draw(st.sampled_from([i for i in bins if i != source]))
        # One count more has to stay representable.
        reference[into] -= reference[into] == ceiling
        canary = [reference[i] + (i == into) - (i == source) for i in bins]
        return NeighbouringPair(reference, canary, adjacency)

    return pair


def neighbouring_grouped(
    *,
    adjacency: str = ADD_REMOVE,
    elements: st.SearchStrategy[Any] | Sequence[Any] | None = None,
    dtype: DTypeLike = "float64",
    bounds: Sequence[float] | None = None,
    beyond_bounds: bool = True,
    allow_nan: bool = True,
    allow_infinity: bool = True,
    max_users: int = 4,
    max_rows_per_user: int = 10,
) -> st.SearchStrategy[NeighbouringPair[GroupedRows]]:
    """Lists of (user, row) tuples that differ in everything one user owns.

    User 0 is the one who changes: absent on the reference side under add-remove, owner of other rows (and
    perhaps of another number of them) under replace-one. The pair's ``distance`` counts the rows involved.
    Likely: a user with the most rows allowed, all of one value; a dataset that this user owns alone; rows of
    equal value owned by different users; rows of one user scattered among the others'.

    Args:
        adjacency: ``"add-remove"`` or ``"replace-one"``, of users.
        elements, dtype, bounds, beyond_bounds, allow_nan, allow_infinity: what rows are made of, as in
            :func:`neighbouring_rows`.
        max_users: most other users.
        max_rows_per_user: most rows one user owns.

    Raises:
        TypeError, ValueError: if an argument is of the wrong type or out of range.
    """
    given = locals()
    owner = "neighbouring_grouped"
    choice(owner, "adjacency", adjacency, ADJACENCIES)
    users = integer(owner, "max_users", max_users, 0)
    most = integer(owner, "max_rows_per_user", max_rows_per_user, 1)
    options = {
        "dtype": dtype,
        "bounds": bounds,
        "beyond_bounds": beyond_bounds,
        "allow_nan": allow_nan,
        "allow_infinity": allow_infinity,
    }
    draws = _one_user_apart(row_content(owner, elements, options), adjacency, users, most)
    return pairs_of(Recipe(neighbouring_grouped, given, draws))


def _one_user_apart(content: Content[Any], adjacency: str, max_users: int, most: int) -> Draws[Any]:
    others = st.lists(references(content, 1, min(most, 3)), max_size=max_users)
    any_rows = st.one_of(references(content, 1, most), repeated(content.calm, most, most))

    def pair(draw: st.DrawFn) -> NeighbouringPair[GroupedRows]:
        rest: GroupedRows = [(user, row) for user, rows in enumerate(draw(others), start=1) for row in rows]
        owned = draw(any_rows)
        scattered = draw(st.booleans())
        if adjacency == ADD_REMOVE:
            return NeighbouringPair(rest, _among(rest, owned, scattered), adjacency, len(owned))
        before = draw(any_rows.filter(lambda rows: not same(rows, owned)))
        sides = (_among(rest, before, scattered), _among(rest, owned, scattered))
        return NeighbouringPair(*sides, adjacency, max(len(before), len(owned)))

    return pair


def _among(rest: GroupedRows, owned: list[Any], scattered: bool) -> GroupedRows:
    rows: GroupedRows = [(0, row) for row in owned]
    if not scattered:
        return [*rest, *rows]
    paired = min(len(rest), len(rows))
    woven = [entry for both in zip(rows[:paired], rest[:paired], strict=True) for entry in both]
    return [*woven, *rows[paired:], *rest[paired:]]
