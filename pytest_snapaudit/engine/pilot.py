"""The first draws of an audit: checked, laid out, and kept for choosing the event; they are never counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pytest_snapaudit.engine.outcomes import Layout, Raised, Rows, fit_layout
from pytest_snapaudit.engine.seeding import BLOCK, block_generator
from pytest_snapaudit.engine.simulation import (
    PROBE,
    ConstantSource,
    Source,
    SteadySource,
    block_tasks,
    draw_raw,
)
from pytest_snapaudit.engine.wiring import (
    check_not_empty,
    check_pilot,
    constant_in_words,
    exceptions_in_words,
)

TUNING_BYTES = 10 * 2**20
"""At most this much memory per side and view is kept for tuning."""

_CONFIRMATIONS, _FIRST_CONFIRMATION = 40, 16
_CONFIRMING_TRIALS = 16
_SECOND_LOOK = 60


@dataclass(frozen=True)
class Pilot:
    """Tuning draws of both sides.

    Attributes:
        rows: (h, d) draws per view, reference and canary.
        layouts: how every later draw of a view is encoded.
        sources: what later draws come from.
        remarks: what is unusual about the outputs, as (what, observation) pairs.
    """

    rows: dict[str, tuple[Rows, Rows]]
    layouts: dict[str, Layout]
    sources: tuple[Source, Source]
    remarks: tuple[tuple[str, str], ...] = ()


def draw_pilot(
    name: str,
    sources: tuple[Source, Source],
    entropy: tuple[int, ...],
    phase: int,
    trials: int,
    views: Sequence[str],
) -> Pilot:
    """Up to ``trials`` draws per side, fewer of wide outputs.

    Raises:
        MechanismError: outputs that can only be a wiring mistake, or calls that raise only sometimes.
    """
    first, *more = block_tasks(sources, entropy, phase, trials)
    raw, n = first.raw(), first.trials
    blocks, layouts = {}, {}
    for view in dict.fromkeys(views):
        sides = raw[0][view], raw[1][view]
        check_pilot(name, sides, n)
        check_not_empty(name, sides, n, partial(_many, sources, entropy, view))
        layouts[view] = layout = fit_layout([(side, n) for side in sides])
        blocks[view] = [(layout.encode(sides[0], n), layout.encode(sides[1], n))]
    raises = [all(isinstance(outputs, Raised) for outputs in side.values()) for side in raw]
    a, b = (_steady(name, source, failed) for source, failed in zip(sources, raises, strict=True))
    if raises[0] != raises[1]:
        _confirm((a, b), entropy)
    widest = max(of_view[0][0].nbytes for of_view in blocks.values()) / n
    affordable = max(int(TUNING_BYTES / (widest * BLOCK)) - 1, 0)
    shown = (raw[0][views[0]], raw[1][views[0]])
    observed = (
        ("exceptions", exceptions_in_words(shown, n)),
        ("noise", constant_in_words(blocks[views[0]][0], n)),
    )
    remarks = tuple((what, words) for what, words in observed if words)
    del raw, shown
    for task in block_tasks((a, b), entropy, phase, trials)[1 : 1 + min(affordable, len(more))]:
        reference, canary = task.encoded(layouts)
        for view, of_view in blocks.items():
            of_view.append((reference[view], canary[view]))
    return Pilot({view: joined(of_view) for view, of_view in blocks.items()}, layouts, (a, b), remarks)


def _many(sources: tuple[Source, Source], entropy: tuple[int, ...], view: str) -> tuple[tuple[Any, Any], int]:
    """A block of outputs of both sides, for another look, and its size."""
    reference, canary = (
        draw_raw(source, BLOCK, block_generator(entropy, PROBE, side, _SECOND_LOOK))[view]
        for side, source in enumerate(sources)
    )
    return (reference, canary), BLOCK


def joined(blocks: Sequence[tuple[Rows, Rows]]) -> tuple[Rows, Rows]:
    """Both sides' draws of several blocks."""
    reference, canary = zip(*blocks, strict=True)
    return np.concatenate(reference), np.concatenate(canary)


def _steady(name: str, source: Source, raises: bool) -> Source:
    return source if isinstance(source, ConstantSource) else SteadySource(name, source, raises)


def _confirm(sources: tuple[Source, Source], entropy: tuple[int, ...]) -> None:
    """Many calls, where one side alone raised: the draws of one call fail together and prove little."""
    for side, source in enumerate(sources):
        for i in range(_CONFIRMATIONS):
            rng = block_generator(entropy, PROBE, side, _FIRST_CONFIRMATION + i)
            draw_raw(source, _CONFIRMING_TRIALS, rng)
