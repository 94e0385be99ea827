"""What an audit draws from: a mechanism and a neighbouring pair, as one source of trials per side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.clean_stage import (
    all_nan,
    check_shapes,
    evaluate_many,
    feasible_pair,
    first_clean,
    refuse_if_both_raised,
    same_array,
    verify_determinism,
)
from pytest_snapaudit.engine.datasets import refuse_iterators
from pytest_snapaudit.engine.errors import DeclarationMismatch, VacuousAudit
from pytest_snapaudit.engine.mechanism import (
    BLACK_BOX,
    WHITE_BOX,
    Sampler,
    claimed_views,
    declared_noise,
    mechanism_name,
    validate_views,
)
from pytest_snapaudit.engine.noise import NoiseDeclaration
from pytest_snapaudit.engine.outcomes import Raised
from pytest_snapaudit.engine.seeding import digest
from pytest_snapaudit.engine.simulation import (
    ConstantSource,
    FixedCleanSource,
    LiveCleanSource,
    MixedCleanSource,
    SamplerSource,
    Source,
    TimedSource,
)
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair

CleanKind = Literal["none", "fixed", "live", "rows"]


@dataclass(frozen=True)
class Subject:
    """A mechanism and a neighbouring pair, ready to be drawn from.

    Attributes:
        mechanism: as given by the user.
        name: for reports.
        sources: reference and canary.
        clean: how clean outputs are obtained: ``"none"`` (a sampler), ``"fixed"`` (one per side),
            ``"live"`` (re-drawn per trial) or ``"rows"`` (a finite sample of a random clean stage).
        clean_rows: (k, *shape) clean outputs per side, where there are any.
        snapshots: clean outputs per side the audit may rest on.
        declared_deterministic: whether the mechanism says its clean stage is deterministic.
        views: views to audit, the white-box view first.
        covered: the views the claim covers.
        noise: the declaration, if any.
        has_release: whether the black-box view differs from the white-box view.
        recorded: the snapshots the clean outputs come from, if any.
    """

    mechanism: Any
    name: str
    sources: tuple[Source, Source]
    clean: CleanKind
    clean_rows: tuple[NDArray[Any], NDArray[Any]] | None
    snapshots: int
    declared_deterministic: bool
    views: tuple[str, ...]
    covered: frozenset[str]
    noise: NoiseDeclaration | None
    has_release: bool
    recorded: SnapshotPair | None = None

    @property
    def noise_stage_covered(self) -> bool:
        """Whether a bound on the noise stage speaks about a view that is audited and covered."""
        return self.noise_stage_claimed and (WHITE_BOX in self.views or not self.has_release)

    @property
    def noise_stage_claimed(self) -> bool:
        """Whether the claim covers what the noise stage shows, audited or not."""
        return WHITE_BOX in self.covered or (not self.has_release and bool(self.covered & set(self.views)))

    @property
    def noise_view(self) -> str:
        """The view that shows the output of the noise stage."""
        return WHITE_BOX if self.has_release else self.views[0]

    @property
    def clean_direction(self) -> NDArray[np.float64] | None:
        """(d,) difference of the (mean) clean outputs, canary minus reference, if both are numeric."""
        if self.clean_rows is None:
            return None
        a, b = (rows.reshape(len(rows), -1) for rows in self.clean_rows)
        if a.dtype.kind not in "biuf" or b.dtype.kind not in "biuf":
            return None
        difference = b.mean(axis=0, dtype=np.float64) - a.mean(axis=0, dtype=np.float64)
        return difference if np.isfinite(difference).all() else None


def resolve_subject(
    mechanism: Any,
    neighbours: Any,
    *,
    scope: str,
    views: Any,
    n_snapshots: int,
    entropy: tuple[int, ...],
    name: str | None,
    timed: bool = False,
) -> Subject:
    """Resolve what was given to :func:`~pytest_snapaudit.engine.audit.audit`.

    Raises:
        TypeError, ValueError: a mechanism or pair of the wrong form.
        MechanismError: a clean stage that always raises, or whose shapes differ between sides.
        VacuousAudit: equal neighbouring datasets, or equal clean outputs.
        DeclarationMismatch: a clean stage that is declared deterministic and is not.
    """
    label = name or mechanism_name(mechanism)
    if isinstance(mechanism, Sampler):
        if scope == "noise":
            msg = (
                f'{label}: a sampler has no noise stage of its own, so scope="noise" has nothing to speak of; use '
                'scope="pipeline", or a mechanism with clean and privatize.'
            )
            raise ValueError(msg)
        return _sampler_subject(mechanism, neighbours, views, label, timed)
    require_mechanism(mechanism)
    _check_sensitivity(label, mechanism)
    if timed:
        msg = f'{label}: side_channels="timing" needs one call per output; wrap the mechanism with from_callable.'
        raise ValueError(msg)
    covered = frozenset(claimed_views(mechanism))
    has_release = getattr(mechanism, "release", None) is not None
    if not has_release:
        covered = covered | ({WHITE_BOX, BLACK_BOX} if covered else frozenset())
    chosen = validate_views("views", views) if views is not None else claimed_views(mechanism)
    if not has_release and len(chosen) > 1:
        chosen = (BLACK_BOX,)
    base = Subject(
        mechanism=mechanism,
        name=label,
        sources=(ConstantSource(None), ConstantSource(None)),
        clean="fixed",
        clean_rows=None,
        snapshots=1,
        declared_deterministic=_declared_deterministic(mechanism, label),
        views=chosen,
        covered=covered,
        noise=declared_noise(mechanism),
        has_release=has_release,
    )
    if isinstance(neighbours, SnapshotPair):
        return _from_snapshots(replace(base, recorded=neighbours), neighbours, scope)
    datasets = neighbouring_pair(neighbours)
    if scope == "noise":
        return _fixed(base, feasible_pair(mechanism, datasets, label, entropy))
    if base.declared_deterministic:
        rows = [first_clean(mechanism, dataset, label, entropy) for dataset in datasets]
        verify_determinism(mechanism, datasets, rows, label, entropy)
        return _fixed(base, rows)
    if getattr(mechanism, "clean_batch", None) is not None:
        sources = (LiveCleanSource(mechanism, datasets[0]), LiveCleanSource(mechanism, datasets[1]))
        return replace(base, sources=sources, clean="live", snapshots=0)
    sides = [evaluate_many(mechanism, dataset, label, entropy, n_snapshots) for dataset in datasets]
    return _from_sides(base, sides, n_snapshots)


def require_mechanism(mechanism: Any) -> None:
    """TypeError unless ``mechanism`` has the two stages; it says how to wrap a function."""
    if callable(getattr(mechanism, "clean", None)) and callable(getattr(mechanism, "privatize", None)):
        return
    what = getattr(mechanism, "__qualname__", type(mechanism).__name__)
    if callable(mechanism):
        msg = (
            f"{what} is a bare function: wrap it with from_sampler (fn(dataset, n, rng) returns n outputs) or "
            "from_callable (fn(dataset) returns one output)."
        )
    else:
        msg = (
            f"{what} is not a mechanism: it needs clean(dataset, rng) and privatize(clean, rng); wrap plain "
            "functions with from_sampler or from_callable."
        )
    raise TypeError(msg)


def _check_sensitivity(label: str, mechanism: Any) -> None:
    sensitivity = getattr(mechanism, "sensitivity", None)
    if sensitivity is None or callable(sensitivity):
        return
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, Real) or not float(sensitivity) > 0:
        msg = f"{label}: sensitivity must be a number above 0, got {sensitivity!r}."
        raise TypeError(msg)


def _declared_deterministic(mechanism: Any, label: str) -> bool:
    declared = getattr(mechanism, "deterministic", False)
    if not isinstance(declared, bool | np.bool_):
        msg = f"{label}: deterministic must be True or False, got {declared!r}."
        raise TypeError(msg)
    return bool(declared)


def neighbouring_pair(neighbours: Any) -> tuple[Any, Any]:
    """The two datasets; TypeError for anything but a pair, VacuousAudit for equal ones."""
    if not isinstance(neighbours, tuple | list) or len(neighbours) != 2:
        what = f"{len(neighbours)} items" if isinstance(neighbours, tuple | list) else repr(type(neighbours))
        msg = f"neighbours must be a (reference, canary) pair of datasets or a SnapshotPair, got {what}."
        raise TypeError(msg)
    reference, canary = neighbours
    refuse_iterators((reference, canary))
    first, second = digest(reference), digest(canary)
    if reference is canary or (first.exact and second.exact and first.value == second.value):
        msg = (
            "the neighbouring datasets are equal, so nothing can tell them apart and nothing is tested; give a "
            "(reference, canary) pair that differs in one record."
        )
        raise VacuousAudit(msg)
    return reference, canary


def _sampler_subject(sampler: Sampler[Any], neighbours: Any, views: Any, label: str, timed: bool) -> Subject:
    if isinstance(neighbours, SnapshotPair):
        msg = (
            f"{label}: a sampler has no clean stage, so it cannot take a SnapshotPair; give a "
            "(reference, canary) pair of datasets, or a mechanism with clean and privatize."
        )
        raise TypeError(msg)
    if views is not None and WHITE_BOX in validate_views("views", views):
        msg = f'{label}: a sampler has only a black-box view, got views={views!r}; use {{"black-box"}}.'
        raise ValueError(msg)
    if timed and sampler.batched:
        msg = (
            f'{label}: side_channels="timing" needs one call per output; use from_callable, not from_sampler.'
        )
        raise ValueError(msg)
    reference, canary = neighbouring_pair(neighbours)
    kind: Callable[[Sampler[Any], Any], Source] = TimedSource if timed else SamplerSource
    return Subject(
        mechanism=sampler,
        name=label,
        sources=(kind(sampler, reference), kind(sampler, canary)),
        clean="none",
        clean_rows=None,
        snapshots=0,
        declared_deterministic=False,
        views=(BLACK_BOX,),
        covered=frozenset({BLACK_BOX}),
        noise=None,
        has_release=True,
    )


def _fixed(base: Subject, rows: list[Any]) -> Subject:
    refuse_if_both_raised(base.name, rows)
    if any(isinstance(row, Raised) for row in rows):
        sources = tuple(
            ConstantSource(row) if isinstance(row, Raised) else FixedCleanSource(base.mechanism, row)
            for row in rows
        )
        return replace(base, sources=(sources[0], sources[1]))
    check_shapes(base.name, [row.shape for row in rows])
    if same_array(rows[0], rows[1]):
        what = "consist of NaN" if all_nan(rows[0]) else "are equal"
        msg = (
            f"{base.name}: the clean outputs of both sides {what}, so the noise stage is the same and nothing "
            "is tested; choose neighbouring datasets on which the clean stage differs."
        )
        raise VacuousAudit(msg)
    return replace(
        base,
        sources=(FixedCleanSource(base.mechanism, rows[0]), FixedCleanSource(base.mechanism, rows[1])),
        clean_rows=(rows[0][None], rows[1][None]),
    )


def _from_sides(base: Subject, sides: list[Any], snapshots: int) -> Subject:
    refuse_if_both_raised(base.name, sides)
    if any(isinstance(side, Raised) for side in sides):
        return _fixed(base, [side if isinstance(side, Raised) else side[0] for side in sides])
    check_shapes(base.name, [side.shape[1:] for side in sides])
    if all(same_array(side, np.broadcast_to(side[:1], side.shape)) for side in sides):
        first, second = sides[0][0], sides[1][0]
        if same_array(first, second):
            return _fixed(base, [first, second])
    return _of_rows(base, (sides[0], sides[1]), snapshots)


def _of_rows(base: Subject, rows: tuple[NDArray[Any], NDArray[Any]], snapshots: int) -> Subject:
    sources = (MixedCleanSource(base.mechanism, rows[0]), MixedCleanSource(base.mechanism, rows[1]))
    return replace(base, sources=sources, clean="rows", clean_rows=rows, snapshots=snapshots)


def _from_snapshots(base: Subject, pair: SnapshotPair, scope: str) -> Subject:
    sides = (pair.reference, pair.canary)
    distinct = [len(side.rows) for side in sides]
    if scope == "noise":
        return _fixed(base, list(_frequent_pair(*sides)))
    if base.declared_deterministic:
        if max(distinct) > 1:
            msg = (
                f"{base.name}: declared deterministic, but the snapshot holds {distinct[0]} and {distinct[1]} "
                'distinct clean outputs; remove deterministic = True, or audit with scope="noise".'
            )
            raise DeclarationMismatch(msg)
        return _fixed(base, [side.rows[0] for side in sides])
    if max(distinct) == 1 and same_array(sides[0].rows[0], sides[1].rows[0]):
        return _fixed(base, [side.rows[0] for side in sides])
    expanded = sides[0].expand(), sides[1].expand()
    return _of_rows(base, expanded, min(map(len, expanded)))


def _frequent_pair(reference: Snapshot, canary: Snapshot) -> tuple[NDArray[Any], NDArray[Any]]:
    """The most frequent clean outputs of the two sides that differ."""
    by_count = [np.argsort(-side.counts, kind="stable") for side in (reference, canary)]
    for i in by_count[0]:
        for j in by_count[1]:
            if not same_array(reference.rows[i], canary.rows[j]):
                return reference.rows[i], canary.rows[j]
    return reference.rows[0], canary.rows[0]
