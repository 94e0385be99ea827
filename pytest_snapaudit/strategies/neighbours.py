"""Strategies for neighbouring datasets, with the edge content that breaks clean stages.

Every strategy draws a :class:`~pytest_snapaudit.strategies.NeighbouringPair`. Under ``"add-remove"`` the
canary side holds one more record (or user); under ``"replace-one"`` one record (or user) differs, and never
by nothing. Drawn content is built-in Python only, so that what Hypothesis prints can be pasted. Arguments are
checked when the strategy is built. Shrinking leads to the fewest rows with the plainest content.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hypothesis import strategies as st
from numpy.typing import DTypeLike

from pytest_snapaudit.strategies._arguments import (
    ADD_REMOVE,
    ADJACENCIES,
    REPLACE_ONE,
    choice,
    flag,
    integer,
    positive,
    size_range,
)
from pytest_snapaudit.strategies.content import Content, numbers, texts, vectors
from pytest_snapaudit.strategies.pairs import NeighbouringPair, same
from pytest_snapaudit.strategies.parameters import dimensions

R = TypeVar("R")

_MAX_DRAWN_DIMENSION = 8
Rows = st.SearchStrategy[NeighbouringPair[list[R]]]
Draws = Callable[[st.DrawFn], NeighbouringPair[list[R]]]


@dataclass(frozen=True)
class Recipe(Generic[R]):
    """How to draw a pair, with the call that asked for it as its ``repr``."""

    function: Callable[..., object]
    arguments: Mapping[str, object]
    draws: Draws[R]

    def __repr__(self) -> str:
        defaults = {name: p.default for name, p in inspect.signature(self.function).parameters.items()}
        given = {name: value for name, value in self.arguments.items() if value is not defaults[name]}
        return f"{self.function.__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


@st.composite
def pairs_of(draw: st.DrawFn, recipe: Recipe[R]) -> NeighbouringPair[list[R]]:
    """The strategy of a recipe; its ``repr`` is short and says what was asked for."""
    return recipe.draws(draw)


def repeated(rows: st.SearchStrategy[R], min_size: int, max_size: int) -> st.SearchStrategy[list[R]]:
    """Lists of one row, duplicated."""
    spare = max_size - min_size
    # Two choices for the length, so that a list of one row drawn as such counts as simpler.
    more = st.tuples(st.integers(0, spare // 2), st.integers(0, spare - spare // 2)).map(sum)
    return st.tuples(rows, more).map(lambda drawn: [drawn[0]] * (min_size + drawn[1]))


def references(content: Content[R], min_size: int, max_size: int) -> st.SearchStrategy[list[R]]:
    """Reference datasets, most of them calm, so that what the changed row does is seldom masked."""
    few, filled = min(max_size, max(min_size, 3)), min(max_size, max(min_size, 1))
    brinks = [rows for rows in content.brink if min_size <= len(rows) <= max_size]
    return st.one_of(
        st.lists(content.calm, min_size=min_size, max_size=few),
        st.lists(content.calm, min_size=filled, max_size=max_size),
        repeated(content.wild, filled, max_size),
        st.lists(content.wild, min_size=filled, max_size=few),
        *(st.sampled_from(brinks).map(list) for _ in range(2 if brinks else 0)),
    )


def _one_row_apart(content: Content[R], adjacency: str, min_size: int, max_size: int) -> Draws[R]:
    if adjacency == ADD_REMOVE:
        return _row_added(references(content, min_size, max_size), content.wild)
    return _row_replaced(references(content, max(min_size, 1), max_size), content)


def _row_added(datasets: st.SearchStrategy[list[R]], rows: st.SearchStrategy[R]) -> Draws[R]:
    def pair(draw: st.DrawFn) -> NeighbouringPair[list[R]]:
        reference = draw(datasets)
        twin = draw(st.integers(0, 7)) == 7
        row = draw(rows)
        if twin and reference:
            row = reference[draw(st.integers(0, len(reference) - 1))]
        position = len(reference) - draw(st.integers(0, len(reference)))
        return NeighbouringPair(reference, [*reference[:position], row, *reference[position:]], ADD_REMOVE)

    return pair


def _row_replaced(datasets: st.SearchStrategy[list[R]], content: Content[R]) -> Draws[R]:
    def pair(draw: st.DrawFn) -> NeighbouringPair[list[R]]:
        reference = draw(datasets)
        position = len(reference) - 1 - draw(st.integers(0, len(reference) - 1))
        old = reference[position]
        turned = content.opposite is not None and draw(st.integers(0, 3)) == 3
        row = draw(content.wild)
        if turned and content.opposite:
            row = content.opposite(old)
        if same(row, old):
            row = draw(content.wild.filter(lambda drawn: not same(drawn, old)))
        canary = [*reference[:position], row, *reference[position + 1 :]]
        return NeighbouringPair(reference, canary, REPLACE_ONE)

    return pair


def _sizes(owner: str, adjacency: str, min_size: object, max_size: object) -> tuple[int, int]:
    choice(owner, "adjacency", adjacency, ADJACENCIES)
    low, high = size_range(owner, min_size, max_size, 0)
    if adjacency != ADD_REMOVE and high == 0:
        msg = f'{owner}: max_size must be at least 1 under adjacency="replace-one", got 0.'
        raise ValueError(msg)
    return low, high


def row_content(owner: str, elements: object, options: dict[str, Any]) -> Content[Any]:
    """What rows are made of: the caller's ``elements``, or numbers by ``options``; else TypeError."""
    if elements is None:
        return numbers(owner, **options)
    if isinstance(elements, st.SearchStrategy):
        return Content(elements, elements)
    if isinstance(elements, Sequence) and len(elements) >= 2:
        return Content(st.sampled_from(elements), st.sampled_from(elements))
    msg = (
        f"{owner}: elements must be a Hypothesis strategy or a sequence of at least 2 values, "
        f"got {elements!r}."
    )
    raise TypeError(msg)


def neighbouring_rows(
    *,
    adjacency: str = ADD_REMOVE,
    elements: st.SearchStrategy[Any] | Sequence[Any] | None = None,
    dtype: DTypeLike = "float64",
    bounds: Sequence[float] | None = None,
    beyond_bounds: bool = True,
    allow_nan: bool = True,
    allow_infinity: bool = True,
    min_size: int = 0,
    max_size: int = 10,
) -> Rows[Any]:
    """Lists of scalar rows, one row apart.

    Args:
        adjacency: ``"add-remove"`` or ``"replace-one"``.
        elements: what rows are drawn from in place of numbers: a strategy, or the categories themselves.
        dtype: the NumPy dtype whose extremes are drawn (integer sums then overflow it); rows stay Python
            numbers.
        bounds: the mechanism's clipping bounds; values on, next to and beyond them are then likely.
        beyond_bounds: False keeps every value within ``bounds``, and finite.
        allow_nan: whether floating rows may be NaN.
        allow_infinity: whether floating rows may be infinite.
        min_size: fewest rows of the reference side (at least 1 under replace-one).
        max_size: most rows of the reference side; the canary side may hold one more.

    Raises:
        TypeError, ValueError: if an argument is of the wrong type or out of range.
    """
    given = locals()
    owner = "neighbouring_rows"
    low, high = _sizes(owner, adjacency, min_size, max_size)
    options = {
        "dtype": dtype,
        "bounds": bounds,
        "beyond_bounds": beyond_bounds,
        "allow_nan": allow_nan,
        "allow_infinity": allow_infinity,
    }
    draws = _one_row_apart(row_content(owner, elements, options), adjacency, low, high)
    return pairs_of(Recipe(neighbouring_rows, given, draws))


def neighbouring_vectors(
    *,
    dimension: int | None = None,
    clip_norm: float = 1.0,
    norm: str = "l2",
    adjacency: str = ADD_REMOVE,
    beyond_bounds: bool = True,
    allow_nan: bool = True,
    allow_infinity: bool = True,
    min_size: int = 0,
    max_size: int = 5,
) -> Rows[list[float]]:
    """Lists of vectors of one length, one vector apart.

    Likely: zero, antipodal pairs on the clipping sphere along one axis and along the diagonal, vectors beyond
    it, NaN and infinite coordinates, norms that overflow or underflow.

    Args:
        dimension: coordinates per vector; drawn from 1 to 8 when not given.
        clip_norm: radius of the clipping ball.
        norm: the ball's norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        adjacency: ``"add-remove"`` or ``"replace-one"``.
        beyond_bounds: False keeps every vector within the ball, and finite.
        allow_nan: whether coordinates may be NaN.
        allow_infinity: whether coordinates may be infinite.
        min_size: fewest vectors of the reference side (at least 1 under replace-one).
        max_size: most vectors of the reference side.

    Raises:
        TypeError, ValueError: if an argument is of the wrong type or out of range.
    """
    given = locals()
    owner = "neighbouring_vectors"
    low, high = _sizes(owner, adjacency, min_size, max_size)
    choice(owner, "norm", norm, ("l1", "l2", "linf"))
    radius = positive(owner, "clip_norm", clip_norm)
    beyond = flag(owner, "beyond_bounds", beyond_bounds)
    nan = flag(owner, "allow_nan", allow_nan) and beyond
    infinite = flag(owner, "allow_infinity", allow_infinity) and beyond

    def of(length: int) -> Draws[list[float]]:
        content = vectors(length, radius, norm, beyond=beyond, nan=nan, infinite=infinite)
        return _one_row_apart(content, adjacency, low, high)

    if dimension is not None:
        draws = of(integer(owner, "dimension", dimension, 1))
        return pairs_of(Recipe(neighbouring_vectors, given, draws))
    lengths = dimensions(_MAX_DRAWN_DIMENSION)
    by_length = {length: of(length) for length in range(1, _MAX_DRAWN_DIMENSION + 1)}
    return pairs_of(Recipe(neighbouring_vectors, given, lambda draw: by_length[draw(lengths)](draw)))


def neighbouring_texts(
    *,
    labels: Sequence[str] | None = None,
    canary: str | None = None,
    adjacency: str = "replace-one",
    min_size: int = 1,
    max_size: int = 8,
) -> Rows[Any]:
    """Lists of text exemplars, one exemplar apart; with ``labels``, lists of (text, label) tuples.

    Likely: empty and blank texts, duplicates, twins that differ in case or Unicode form only, prompt
    separators, control characters, very long texts.

    Args:
        labels: the task's labels, at least one; each exemplar then carries one.
        canary: a text that the canary side always holds and the reference side never does.
        adjacency: ``"replace-one"`` (as in in-context learning) or ``"add-remove"``.
        min_size: fewest exemplars of the reference side (at least 1 under replace-one).
        max_size: most exemplars of the reference side.

    Raises:
        TypeError, ValueError: if an argument is of the wrong type or out of range.
    """
    given = locals()
    owner = "neighbouring_texts"
    low, high = _sizes(owner, adjacency, min_size, max_size)
    if canary is not None and not isinstance(canary, str):
        msg = f"{owner}: canary must be a string, got {canary!r} of type {type(canary).__name__}."
        raise TypeError(msg)
    if labels is not None and (
        isinstance(labels, str) or not labels or not all(isinstance(label, str) for label in labels)
    ):
        msg = f"{owner}: labels must be a sequence of at least one string, got {labels!r}."
        raise TypeError(msg)

    def exemplars(contents: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
        drawn = contents if canary is None else contents.filter(lambda text: text != canary)
        return drawn if labels is None else st.tuples(drawn, st.sampled_from(labels))

    plain = texts()
    content = Content(exemplars(plain.calm), exemplars(plain.wild))
    if canary is None:
        return pairs_of(Recipe(neighbouring_texts, given, _one_row_apart(content, adjacency, low, high)))
    rows = st.just(canary) if labels is None else st.tuples(st.just(canary), st.sampled_from(labels))
    replaced = 0 if adjacency == ADD_REMOVE else 1
    datasets = references(content, max(low, replaced), high)

    def with_canary(draw: st.DrawFn) -> NeighbouringPair[list[Any]]:
        reference = draw(datasets)
        position = len(reference) - replaced - draw(st.integers(0, len(reference) - replaced))
        changed = [*reference[:position], draw(rows), *reference[position + replaced :]]
        return NeighbouringPair(reference, changed, adjacency)

    return pairs_of(Recipe(neighbouring_texts, given, with_canary))


def neighbours(content: str = "rows", **options: Any) -> st.SearchStrategy[NeighbouringPair[Any]]:
    """Neighbouring datasets by kind of content; ``neighbours()`` draws lists of numbers.

    Args:
        content: ``"rows"``, ``"vectors"``, ``"histograms"``, ``"texts"`` or ``"grouped"``.
        options: the arguments of ``neighbouring_<content>``, for example ``adjacency``.

    Raises:
        TypeError, ValueError: if the kind or an option is unknown, or an option is out of range.
    """
    from pytest_snapaudit.strategies.counted import neighbouring_grouped, neighbouring_histograms  # noqa: PLC0415

    kinds: dict[str, Callable[..., st.SearchStrategy[NeighbouringPair[Any]]]] = {
        "rows": neighbouring_rows,
        "vectors": neighbouring_vectors,
        "histograms": neighbouring_histograms,
        "texts": neighbouring_texts,
        "grouped": neighbouring_grouped,
    }
    build = kinds[choice("neighbours", "content", content, tuple(kinds))]
    return build(**known_options(f'neighbours("{content}")', build, options))


def known_options(owner: str, build: Callable[..., object], options: dict[str, Any]) -> dict[str, Any]:
    """``options`` if ``build`` takes all of them, else TypeError listing those it takes."""
    accepted = list(inspect.signature(build).parameters)
    unknown = [name for name in options if name not in accepted]
    if unknown:
        msg = f"{owner}: unknown option {unknown[0]!r}; it takes {', '.join(accepted)}."
        raise TypeError(msg)
    return options
