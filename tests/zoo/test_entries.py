"""The zoo is complete, documented and reproducible, and the broken really differ from the repaired."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from .catalogue import BUGS, CATEGORIES, HAZARDS
from .entry import Hazard, Outputs, TwoStageMechanism, ZooEntry

MECHANISMS: dict[str, tuple[TwoStageMechanism, tuple[Any, Any]]] = {
    **{f"{bug}-broken": (bug.broken, bug.neighbours) for bug in BUGS},
    **{f"{bug}-fixed": (bug.fixed, bug.neighbours) for bug in BUGS},
    **{hazard.id: (hazard.mechanism, hazard.neighbours) for hazard in HAZARDS},
}


def test_the_catalogue_is_complete() -> None:
    assert len(BUGS) == 51
    assert len(HAZARDS) == 14
    sizes = {category: len(entries) for category, entries in CATEGORIES.items()}
    assert sizes == {
        "sensitivity": 7,
        "clipping": 5,
        "scale_calibration": 8,
        "composition": 5,
        "selection": 6,
        "distribution": 3,
        "local_dp": 1,
        "data_dependent": 8,
        "sampling": 2,
        "generative": 2,
        "floating_point": 4,
    }


def test_ids_are_unique() -> None:
    ids = [*(bug.id for bug in BUGS), *(hazard.id for hazard in HAZARDS)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_every_bug_says_what_went_wrong_and_where(bug: ZooEntry) -> None:
    assert all(link.startswith("https://") for link in (bug.link, *bug.see_also))
    assert len(bug.summary) > 60
    assert bug.summary.endswith(".")
    assert bug.library
    assert bug.evidence
    assert bug.pair
    assert bug.why


@pytest.mark.parametrize("hazard", HAZARDS, ids=str)
def test_every_hazard_says_what_the_trap_is_and_why_the_claim_holds(hazard: Hazard) -> None:
    assert all(link.startswith("https://") for link in hazard.see_also)
    assert len(hazard.trap) > 8
    assert len(hazard.why) > 40


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_bug_violates_its_claim(bug: ZooEntry) -> None:
    assert bug.claim.epsilon == bug.epsilon
    assert bug.claim.delta == bug.delta
    assert bug.true_epsilon > bug.epsilon


@pytest.mark.parametrize("hazard", HAZARDS, ids=str)
def test_a_hazard_meets_its_claim(hazard: Hazard) -> None:
    assert (hazard.claim.epsilon, hazard.claim.delta) == (hazard.epsilon, hazard.delta)
    assert hazard.true_epsilon <= hazard.epsilon


def test_hints_are_given_only_where_they_are_needed() -> None:
    declared = {bug.id for bug in BUGS if bug.declared_noise_sigma is not None}
    assert declared == {"classic-gauss-8-0.1", "classic-gauss-10-1e-5"}
    assert all((bug.id in declared) == (bug.fixed.declared_noise_sigma is not None) for bug in BUGS)
    hinted = {bug.id: bug.side_channels for bug in BUGS if bug.side_channels}
    assert hinted == {
        "mironov-laplace-double": ("low-bit",),
        "gauss-precision": ("low-bit",),
        "timing-geometric": ("timing",),
    }


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.declared_noise_sigma is not None], ids=str)
@pytest.mark.parametrize("twin", ["broken", "fixed"])
def test_the_declared_noise_is_the_noise(bug: ZooEntry, twin: str) -> None:
    mechanism: TwoStageMechanism = getattr(bug, twin)
    n = 40_000
    outputs = mechanism.sample(bug.neighbours[1], n, np.random.default_rng(1))
    assert mechanism.declared_noise_sigma is not None
    assert np.std(outputs - mechanism.clean(bug.neighbours[1])) == pytest.approx(
        mechanism.declared_noise_sigma, rel=4 / np.sqrt(2 * n)
    )


@pytest.mark.parametrize(("mechanism", "neighbours"), MECHANISMS.values(), ids=MECHANISMS)
def test_samplers_return_one_row_per_draw_and_repeat_by_seed(
    mechanism: TwoStageMechanism, neighbours: tuple[Any, Any]
) -> None:
    drawn = [mechanism.sample(dataset, 257, np.random.default_rng(7)) for dataset in neighbours]
    again = [mechanism.sample(dataset, 257, np.random.default_rng(7)) for dataset in neighbours]
    for outputs, repeated in zip(drawn, again, strict=True):
        assert outputs.dtype == np.float64
        assert outputs.ndim in (1, 2)
        assert len(outputs) == 257
        np.testing.assert_array_equal(outputs, repeated)
    assert drawn[0].shape == drawn[1].shape
    assert mechanism.sample(neighbours[0], 1, np.random.default_rng(7)).shape == (1, *drawn[0].shape[1:])


@pytest.mark.parametrize(("mechanism", "neighbours"), MECHANISMS.values(), ids=MECHANISMS)
def test_sampling_leaves_the_datasets_alone(
    mechanism: TwoStageMechanism, neighbours: tuple[Any, Any]
) -> None:
    before = repr(neighbours)
    assert repr(neighbours[0]) != repr(neighbours[1])
    for dataset in neighbours:
        mechanism.sample(dataset, 5, np.random.default_rng(0))
    assert repr(neighbours) == before


def test_a_mechanism_prints_its_stages() -> None:
    texts = {repr(mechanism) for mechanism, _ in MECHANISMS.values()}
    assert not any("0x" in text for text in texts)
    by_name = repr(MECHANISMS["pipelinedp-vector-eps-broken"][0])
    assert by_name == "TwoStageMechanism(column_sums(width=3), add_laplace(scale=1.0))"


def _draw_in_worker(mechanism: TwoStageMechanism, dataset: Any) -> Outputs:
    return mechanism.sample(dataset, 50, np.random.default_rng(3))


def test_every_mechanism_runs_in_another_process() -> None:
    jobs = [(mechanism, neighbours[1]) for mechanism, neighbours in MECHANISMS.values()]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        remote = list(pool.map(_draw_in_worker, *zip(*jobs, strict=True)))
    for (mechanism, dataset), outputs in zip(jobs, remote, strict=True):
        np.testing.assert_array_equal(outputs, _draw_in_worker(mechanism, dataset))


def lowest_set_bit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exponent of the lowest set bit of each finite double; −2000 for 0."""
    mantissa, exponent = np.frexp(np.nan_to_num(values))
    integer = (mantissa * 2.0**53).astype(np.int64)
    lowest = np.maximum(integer & -integer, 1).astype(float)
    return np.where(integer == 0, -2000.0, np.log2(lowest) + exponent - 53)


def features(outputs: Outputs, cuts: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """What the laws are compared by, (n,) each; NaN is its own indicator and counts as 0 elsewhere."""
    columns = np.nan_to_num(outputs.reshape(len(outputs), -1))
    missing = np.isnan(outputs.reshape(len(outputs), -1)).astype(float)
    low = lowest_set_bit(columns)
    compared = [columns, np.abs(columns - cuts[1]), missing, low, *(columns > cut for cut in cuts)]
    return [np.asarray(feature[:, i], float) for feature in compared for i in range(columns.shape[1])]


def smallest_p_value(first: Outputs, second: Outputs) -> float:
    """Smallest p-value of two-sample z-tests over all features, times their number."""
    shape = (len(first), -1)
    pooled = np.nan_to_num(np.concatenate([first.reshape(shape), second.reshape(shape)]))
    cuts = np.quantile(pooled, [0.1, 0.5, 0.9], axis=0)
    p_values = []
    for a, b in zip(features(first, cuts), features(second, cuts), strict=True):
        error = np.sqrt((a.var() + b.var()) / len(a))
        difference = abs(a.mean() - b.mean())
        if error > 0:
            p_values.append(2 * float(norm.sf(difference / error)))
        else:
            p_values.append(1.0 if difference == 0 else 0.0)
    return min(p_values) * len(p_values)


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_broken_and_fixed_differ_in_law(bug: ZooEntry) -> None:
    rng = np.random.default_rng(2024)
    n = 60_000 // bug.broken.sample(bug.neighbours[0], 1, rng).size
    differing = []
    for dataset in bug.neighbours:
        broken = bug.broken.sample(dataset, n, rng)
        fixed = bug.fixed.sample(dataset, n, rng)
        differing.append(broken.shape != fixed.shape or smallest_p_value(broken, fixed) < 1e-6)
        assert smallest_p_value(broken, bug.broken.sample(dataset, n, rng)) > 1e-6
    assert any(differing)
