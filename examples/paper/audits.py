"""The audits behind the cells, each small, independent and picklable, so that processes can share them."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from clean_outputs import Clean
from designs import Decided, Flipping
from printed import CONFIDENCE

from dp_icl.membership import membership_attacks
from pytest_snapaudit import PrivacyClaim, Snapshot, SnapshotPair, audit, passive_audit

PASSIVE_RUNS, TUNING_RUNS = 2_000, 500
ATTEMPTS = 2
"""The test of the declared noise, without which rates are not read as Gaussian, rejects correct noise now and then; it
is repeated once, on other draws."""
VECTOR, GATE = -1, -2
"""Pair numbers of the audits at the clean outputs that the paper prints, and of the plugin's own bound."""


class Key(NamedTuple):
    """Which cell an audit belongs to, and which of the pairs it is."""

    table: str
    row: str
    column: str
    pair: int = 0


@dataclass(frozen=True)
class Job:
    """One audit.

    Attributes:
        key: the cell.
        mechanism: what is audited.
        clean: clean outputs.
        view: ``"black-box"`` or ``"white-box"``.
        mode: ``"active"`` (one snapshot, many draws of the noise; one look, Clopper-Pearson), ``"passive"``
            (end-to-end runs) or ``"gate"`` (the plugin's own bound).
        gaussian: convert rates by the Gaussian trade-off.
        n_trials: per side, for active audits.
        flips: rate at which the clean output is that of the other side.
    """

    key: Key
    mechanism: Any
    clean: Clean
    view: str
    mode: str
    gaussian: bool
    n_trials: int
    flips: float = 0.0


class Finding(NamedTuple):
    """A lower bound on ε, and what it cost."""

    epsilon_lower: float
    cpu_seconds: float


def run(job: Job) -> Finding:
    """The bound of one audit; 0 where both sides have the same clean output and nothing can be told apart."""
    started = time.process_time()
    if not job.clean.distance:
        return Finding(0.0, 0.0)
    bound = {"active": _active, "passive": _passive, "gate": _gate}[job.mode](job)
    return Finding(bound, time.process_time() - started)


def run_all(jobs: Sequence[Job], processes: int = 1) -> dict[Key, Finding]:
    """All findings by key; they do not depend on the number of processes."""
    if processes == 1:
        return {job.key: run(job) for job in jobs}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        return dict(zip([job.key for job in jobs], pool.map(run, jobs, chunksize=8), strict=True))


def _active(job: Job) -> float:
    mechanism, view = job.mechanism, job.view
    attacks: Any = membership_attacks(mechanism, job.clean.reference, job.clean.canary)
    neighbours: Any = _recorded(job.clean, 1)
    if job.flips:
        mechanism = Flipping(mechanism, (job.clean.reference, job.clean.canary), job.flips)
        neighbours = (0, 1)
    elif job.gaussian and view == "white-box":
        mechanism, view = Decided(mechanism, attacks[list(attacks)[-1]]), "black-box"
        attacks = {}
    for attempt in range(ATTEMPTS):
        result = audit(
            mechanism,
            neighbours,
            PrivacyClaim(*job.mechanism.claim),
            confidence=CONFIDENCE,
            n_trials=job.n_trials,
            views={view},
            correction="clopper-pearson",
            estimator="gdp" if job.gaussian else "dp",
            attacks=attacks,
            seed=[*_seed(job.key), attempt],
        )
        if not job.gaussian or not result.views[0].refusals:
            break
    return result.epsilon_lower


def _gate(job: Job) -> float:
    covered = job.mechanism.claimed_views
    result = audit(
        job.mechanism,
        _recorded(job.clean, 1),
        PrivacyClaim(*job.mechanism.claim),
        confidence=CONFIDENCE,
        n_trials=job.n_trials,
        views=covered,
        attacks=membership_attacks(job.mechanism, job.clean.reference, job.clean.canary),
        seed=_seed(job.key),
    )
    return result.epsilon_lower


def _passive(job: Job) -> float:
    attacks = membership_attacks(job.mechanism, job.clean.reference, job.clean.canary)
    attack = next(attack for attack in attacks.values() if attack.view == job.view)
    decided = job.gaussian or job.view == "black-box"
    result = passive_audit(
        job.mechanism,
        _recorded(job.clean, PASSIVE_RUNS),
        attack=attack.decide if decided else attack,
        runs=PASSIVE_RUNS,
        tuning_runs=0 if decided else TUNING_RUNS,
        confidence=CONFIDENCE,
        estimator="gdp" if job.gaussian else "dp",
        view=job.view,
        seed=_seed(job.key),
    )
    return result.epsilon_lower


def _recorded(clean: Clean, evaluations: int) -> SnapshotPair:
    """One recorded evaluation per side, standing for as many as are asked for."""
    return SnapshotPair(
        *(Snapshot(side[None], np.array([evaluations])) for side in (clean.reference, clean.canary))
    )


def _seed(key: Key) -> list[int]:
    return [*(zlib.crc32(part.encode()) for part in key[:3]), key.pair - GATE]
