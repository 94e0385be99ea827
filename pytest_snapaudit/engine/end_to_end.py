"""End-to-end runs: the clean stage anew, one draw of noise, and what an attack says of the output."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pytest_snapaudit.engine.attacks.event import comparable
from pytest_snapaudit.engine.batches import as_batch, is_numeric, iterate_outputs, numeric_parts
from pytest_snapaudit.engine.clean_stage import SIDES, as_clean_array
from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.mechanism import VIEWS, WHITE_BOX, Sampler
from pytest_snapaudit.engine.seeding import BLOCK, block_generator, legacy_generators_seeded
from pytest_snapaudit.engine.settings import validate_choice
from pytest_snapaudit.engine.simulation import noise_stage
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair
from pytest_snapaudit.engine.subject import neighbouring_pair, require_mechanism

PassiveAttack = Callable[[Any], Any]
"""n outputs in; n booleans (an event) or n numbers (a score) out, each a function of its own output alone."""

_PHASE = 1_000


Source = Callable[[int, int, Generator], Any]
"""(first run, number of runs, generator) to their outputs."""


def end_to_end(
    mechanism: Any, neighbours: Any, label: str, runs: int, view: str, entropy: tuple[int, ...]
) -> list[Source]:
    """Where the runs of the reference and of the canary side come from.

    Raises:
        TypeError, ValueError: a mechanism, pair or view of the wrong form, or fewer recorded outputs than runs.
        VacuousAudit: equal neighbouring datasets.
    """
    validate_choice("view", view, VIEWS)
    if isinstance(mechanism, Sampler):
        if view == WHITE_BOX:
            msg = f'{label}: a sampler has only a black-box view, got view={view!r}; use "black-box".'
            raise ValueError(msg)
        return [partial(_sampled, mechanism, dataset) for dataset in neighbouring_pair(neighbours)]
    require_mechanism(mechanism)
    if isinstance(neighbours, SnapshotPair):
        recorded = (neighbours.reference, neighbours.canary)
        rows = [_recorded(mechanism, each, side, label, runs, entropy) for side, each in enumerate(recorded)]
        return [partial(_from_rows, mechanism, each, view) for each in rows]
    return [
        partial(_from_dataset, mechanism, dataset, view, label) for dataset in neighbouring_pair(neighbours)
    ]


def _recorded(
    mechanism: Any, side: Snapshot, index: int, label: str, runs: int, entropy: tuple[int, ...]
) -> NDArray[Any]:
    """(runs, *shape) recorded clean outputs, one for each run."""
    if side.size >= runs:
        chosen = block_generator(entropy, _PHASE + 1, index, 0).permutation(side.size)[:runs]
        return np.asarray(side.rows[np.searchsorted(np.cumsum(side.counts), chosen, side="right")])
    if getattr(mechanism, "deterministic", False) and len(side.rows) == 1:
        return np.broadcast_to(side.rows[0], (runs, *side.rows.shape[1:]))
    msg = (
        f"{label}: {runs} runs need as many recorded clean outputs, the {SIDES[index]} side has {side.size}; use "
        f"runs={side.size}, or record more."
    )
    raise ValueError(msg)


def _sampled(sampler: Sampler[Any], dataset: Any, first: int, n: int, rng: Generator) -> Any:
    return sampler.sample(dataset, n, rng)


def _from_rows(mechanism: Any, rows: NDArray[Any], view: str, first: int, n: int, rng: Generator) -> Any:
    return noise_stage(mechanism, rows[first : first + n], rng)[view]


def _from_dataset(
    mechanism: Any, dataset: Any, view: str, label: str, first: int, n: int, rng: Generator
) -> Any:
    batched = getattr(mechanism, "clean_batch", None)
    if batched is not None:
        rows = np.asarray(batched(dataset, n, rng))
    else:
        evaluated = [as_clean_array(mechanism.clean(dataset, rng), label) for _ in range(n)]
        if len({row.shape for row in evaluated}) > 1:
            msg = f"{label}: clean returned arrays of different shapes for one dataset; wrap it with from_callable."
            raise MechanismError(msg)
        rows = np.stack(evaluated)
    return noise_stage(mechanism, rows, rng)[view]


def judge(
    attack: PassiveAttack, source: Source, runs: int, entropy: tuple[int, ...], side: int, label: str
) -> tuple[NDArray[np.float64], str]:
    """(runs,) scores of one side and whether they are an event's (``"b"``) or numbers (``"f"``)."""
    scores, kinds = [], set()
    for first in range(0, runs, BLOCK):
        n = min(BLOCK, runs - first)
        rng = block_generator(entropy, _PHASE, side, first // BLOCK)
        with legacy_generators_seeded(rng):
            try:
                raw = source(first, n, rng)
            except MechanismError:
                raise
            except Exception as error:
                msg = (
                    f"{label} raises on the {SIDES[side]} side ({error!r}); check how it is called, or wrap it with "
                    "from_callable, for which an exception is an output."
                )
                raise MechanismError(msg) from error
        found = np.asarray(attack(_outputs(raw, n)))
        if found.shape != (n,) or found.dtype.kind not in "biuf":
            msg = (
                f"attack must return one boolean or number per output: expected shape ({n},), got shape "
                f"{found.shape} of dtype {found.dtype}."
            )
            raise ValueError(msg)
        kinds.add("b" if found.dtype.kind == "b" else "f")
        scores.append(comparable(found.astype(np.float64)))
    return np.concatenate(scores), max(kinds)


def _outputs(raw: Any, n: int) -> Any:
    batch = as_batch(raw, n)
    if isinstance(batch, np.ndarray) and batch.dtype.kind not in "biuf":
        return batch
    if is_numeric(batch):
        return np.concatenate(list(numeric_parts(batch, n).values()), axis=1)
    outputs = list(iterate_outputs(batch, n))
    if all(type(output) in (int, float, bool) for output in outputs):
        return np.asarray(outputs, dtype=np.float64)[:, None]
    return outputs
