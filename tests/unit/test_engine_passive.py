"""The passive baseline: what a run is, what is counted, and what is refused."""

import dataclasses
import math

import numpy as np
import pytest

from pytest_snapaudit import (
    MechanismError,
    PassiveResult,
    PrivacyClaim,
    Snapshot,
    SnapshotPair,
    VacuousAudit,
    from_callable,
    from_sampler,
    passive_audit,
)
from pytest_snapaudit.engine.bounds import clopper_pearson_lower, clopper_pearson_upper
from pytest_snapaudit.engine.estimators import epsilon_from_rates, max_detectable_epsilon
from pytest_snapaudit.engine.passive import _choose


class Noisy:
    """Adds Laplace noise to a sum; releases its sign."""

    deterministic = True
    claim = PrivacyClaim(1.0, 1e-5)

    def __init__(self):
        self.evaluations = 0

    def clean(self, dataset, rng):
        self.evaluations += 1
        return np.array([float(sum(dataset)), 0.0])

    def privatize(self, clean, rng):
        return clean + rng.laplace(0.0, 1.0, clean.shape)

    def release(self, noisy, rng):
        return noisy[:, 0] > 0.5


def positive(outputs):
    return outputs[:, 0] > 0.5


def recorded(rows):
    return Snapshot.from_rows(np.asarray(rows, float))


def test_each_run_evaluates_the_clean_stage():
    mechanism = Noisy()
    result = passive_audit(mechanism, ([0], [1]), attack=positive, runs=150)
    assert mechanism.evaluations == result.model_calls == 300
    assert (result.runs, result.tuning_runs, result.rates.trials) == (150, 0, 150)


def test_the_bounds_are_clopper_and_pearsons_at_half_the_error_each():
    """Outputs say which run they are, so the counts are known: 60 of 200 against 7 of 200."""
    counts = {"reference": 7, "canary": 60}
    sampler = from_sampler(lambda dataset, n, rng: (np.arange(n) < counts[dataset]).astype(float))
    result = passive_audit(
        sampler, ("reference", "canary"), attack=positive, runs=200, confidence=0.9, delta=1e-3
    )
    assert (result.rates.p, result.rates.q) == (0.3, 0.035)
    assert result.rates.p_lower == pytest.approx(float(clopper_pearson_lower(60, 200, 0.05)), rel=1e-12)
    assert result.rates.q_upper == pytest.approx(float(clopper_pearson_upper(7, 200, 0.05)), rel=1e-12)
    expected = math.log((result.rates.p_lower - 1e-3) / result.rates.q_upper)
    assert result.epsilon_lower == pytest.approx(expected, rel=1e-12)
    assert result.max_detectable_epsilon == pytest.approx(max_detectable_epsilon(200, 1e-3, 0.05, 0.05))
    gdp = passive_audit(
        sampler,
        ("reference", "canary"),
        attack=positive,
        runs=200,
        confidence=0.9,
        delta=1e-3,
        estimator="gdp",
    )
    assert gdp.epsilon_lower == epsilon_from_rates(result.rates.p_lower, result.rates.q_upper, 1e-3, "gdp")
    assert gdp.epsilon_lower < gdp.max_detectable_epsilon < math.inf


def test_a_fixed_event_that_is_likelier_without_the_canary_bounds_nothing():
    sampler = from_sampler(lambda dataset, n, rng: np.full(n, float(dataset)))
    assert passive_audit(sampler, (1, 0), attack=positive, delta=0.0).epsilon_lower == 0.0
    assert passive_audit(sampler, (0, 1), attack=positive, delta=0.0).epsilon_lower > 5


def test_a_score_is_tuned_on_the_first_runs_and_counted_on_the_others():
    """The first 100 runs suggest the upper tail of the canary; the others show the contrary."""

    def sample(dataset, n, rng):
        values = np.full(n, float(dataset))
        values[100:] = 1.0 - dataset
        return values

    result = passive_audit(
        from_sampler(sample), (0, 1), attack=lambda rows: rows[:, 0], runs=400, tuning_runs=100, delta=0.0
    )
    assert result.rates.trials == 300
    assert (result.rates.p, result.rates.q, result.epsilon_lower) == (0.0, 1.0, 0.0)


def test_thresholds_and_directions_are_chosen():
    rng = np.random.default_rng(0)
    low, high = rng.normal(0, 1, 4000), rng.normal(3, 1, 4000)
    upper = _choose([low, high], 4000, 0.025, 1e-5, "gdp")
    assert (upper.above, upper.likelier_on) == (True, 1) or (upper.above, upper.likelier_on) == (False, 0)
    mirrored = _choose([-low, -high], 4000, 0.025, 1e-5, "dp")
    assert (mirrored.above, mirrored.likelier_on) in {(False, 1), (True, 0)}
    assert -6 < mirrored.threshold < 0


def test_a_score_without_tuning_runs_is_refused():
    with pytest.raises(ValueError, match=r"a threshold chosen on the runs that are counted proves nothing"):
        passive_audit(Noisy(), ([0], [1]), attack=lambda rows: rows[:, 0])


def test_the_white_box_view_is_what_release_is_given():
    seen = []

    def spy(rows):
        seen.append(rows)
        return rows[:, 0] > 0.5

    for view in ("black-box", "white-box"):
        passive_audit(Noisy(), ([0], [1]), attack=spy, runs=100, view=view)
    assert [rows.shape for rows in seen] == [(100, 1)] * 2 + [(100, 2)] * 2
    assert set(seen[0].ravel()) == {0.0, 1.0}


def test_recorded_rows_are_used_once_each():
    rows = np.column_stack([np.arange(120.0) * 1e6, np.zeros(120)])
    used = []

    def spy(outputs):
        used.append(np.round(outputs[:, 0] / 1e6))
        return outputs[:, 0] > 0.5

    mechanism = Noisy()
    passive_audit(
        mechanism,
        SnapshotPair(recorded(rows), recorded(rows[::-1] + 7.0)),
        attack=spy,
        runs=120,
        view="white-box",
    )
    assert mechanism.evaluations == 0
    for side in used:
        assert sorted(side) == list(range(120))
        assert side.tolist() != sorted(side)


def test_counts_of_recorded_rows_are_heeded():
    side = Snapshot(np.array([[0.0, 0.0], [1e6, 0.0]]), np.array([30, 170]))
    result = passive_audit(
        Noisy(), SnapshotPair(recorded([[0.0, 0.0]] * 200), side), attack=positive, runs=200, view="white-box"
    )
    assert result.rates.p >= 0.85


def test_more_runs_than_recorded_outputs_are_refused_unless_they_repeat():
    random = SnapshotPair(recorded([[0.0, 0.0], [1.0, 0.0]] * 60), recorded([[2.0, 0.0], [1.0, 0.0]] * 60))
    with pytest.raises(
        ValueError, match=r"500 runs need as many recorded .* reference side has 120; use runs=120"
    ):
        passive_audit(Noisy(), random, attack=positive, runs=500)
    fixed = SnapshotPair(recorded([[0.0, 0.0]]), recorded([[1.0, 0.0]]))
    assert passive_audit(Noisy(), fixed, attack=positive, runs=500).model_calls == 1000
    undeclared = Noisy()
    undeclared.deterministic = False
    with pytest.raises(ValueError, match="record more"):
        passive_audit(undeclared, fixed, attack=positive, runs=500)


def test_texts_and_objects_reach_the_attack_as_they_are():
    words = from_callable(lambda dataset: "yes" if dataset else None)
    result = passive_audit(
        words, (0, 1), attack=lambda outputs: [output == "yes" for output in outputs], runs=100, delta=0.0
    )
    assert (result.rates.p, result.rates.q) == (1.0, 0.0)
    arrays = from_sampler(lambda dataset, n, rng: np.array(["yes" if dataset else "no"] * n))
    assert passive_audit(arrays, (0, 1), attack=lambda outputs: outputs == "yes", delta=0.0).rates.p == 1.0
    numbers = from_callable(float)
    assert passive_audit(numbers, (0, 1), attack=positive, runs=100, delta=0.0).rates.p == 1.0
    parts = from_sampler(lambda dataset, n, rng: (np.zeros((n, 2)), np.full(n, float(dataset))))
    assert passive_audit(parts, (0, 1), attack=lambda rows: rows[:, 2] > 0.5, delta=0.0).rates.p == 1.0


def test_a_random_clean_stage_may_come_in_batches():
    class Batched(Noisy):
        def clean_batch(self, dataset, size, rng):
            return np.column_stack([rng.random(size) < sum(dataset), np.zeros(size)])

    mechanism = Batched()
    result = passive_audit(mechanism, ([0.1], [0.9]), attack=positive, runs=20_000)
    assert mechanism.evaluations == 0
    assert result.rates.p > result.rates.q


def test_equal_inputs_give_equal_results_and_seeds_differ():
    first, again, other = (
        passive_audit(Noisy(), ([0], [1]), attack=positive, runs=10_000, seed=seed) for seed in (3, 3, [3, 1])
    )
    assert first == again
    assert isinstance(first, PassiveResult)
    assert first.rates != other.rates
    assert first.seed == (3,)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.runs = 1


def test_the_delta_is_that_of_the_claim():
    assert passive_audit(Noisy(), ([0], [1]), attack=positive, runs=100).delta == 1e-5
    mechanism = Noisy()
    mechanism.claim = (1.0, 0.25)
    assert passive_audit(mechanism, ([0], [1]), attack=positive, runs=100).delta == 0.25
    assert passive_audit(mechanism, ([0], [1]), attack=positive, runs=100, delta=0).delta == 0.0
    with pytest.raises(ValueError, match="makes no claim to take delta from"):
        passive_audit(from_callable(float), (0, 1), attack=positive)


def test_attacks_are_named():
    class Named:
        name = "label 'yes' released"

        def __call__(self, rows):
            return rows[:, 0]

        def decide(self, rows):
            return rows[:, 0] > 0.5

    attack = Named()
    fixed = passive_audit(Noisy(), ([0], [1]), attack=attack.decide, runs=100)
    assert fixed.attack == "label 'yes' released, likelier on the canary"
    tuned = passive_audit(Noisy(), ([0], [1]), attack=attack, runs=1000, tuning_runs=500)
    assert tuned.attack in {
        "label 'yes' released above 0, likelier on the canary",
        "label 'yes' released at most 0, likelier on the reference",
    }
    assert passive_audit(Noisy(), ([0], [1]), attack=positive, runs=100).attack.startswith("positive, ")


def test_a_mechanism_that_raises_is_wired_wrongly():
    class Broken(Noisy):
        def privatize(self, clean, rng):
            raise KeyError("scale")

    with pytest.raises(MechanismError, match=r"Broken raises on the reference side \(KeyError\('scale'\)\)"):
        passive_audit(Broken(), ([0], [1]), attack=positive)


def test_a_clean_stage_of_changing_shape_is_wired_wrongly():
    class Ragged(Noisy):
        def clean(self, dataset, rng):
            return np.zeros(rng.integers(1, 3))

    with pytest.raises(MechanismError, match="arrays of different shapes"):
        passive_audit(Ragged(), ([0], [1]), attack=positive)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"runs": 99}, ValueError, "runs must be an integer of at least 100, got 99"),
        ({"runs": 100.0}, ValueError, "runs must be an integer"),
        ({"tuning_runs": -1}, ValueError, "tuning_runs must be an integer of at least 0, got -1"),
        ({"tuning_runs": 200, "runs": 200}, ValueError, "tuning_runs must leave some of the 200 runs"),
        ({"confidence": 1.0}, ValueError, "confidence must be a number in"),
        ({"delta": 1.0}, ValueError, r"delta must be a number in \[0, 1\), got 1\.0"),
        ({"delta": "0"}, ValueError, "delta must be a number"),
        ({"delta": True}, ValueError, "delta must be a number"),
        ({"estimator": "auto"}, ValueError, "estimator must be one of 'dp', 'gdp', got 'auto'"),
        ({"view": "grey-box"}, ValueError, "view must be one of"),
        ({"attack": "score"}, TypeError, "attack must be a callable"),
        ({"attack": lambda rows: rows}, ValueError, r"expected shape \(2000,\), got shape \(2000, 1\)"),
        ({"attack": lambda rows: ["a"] * len(rows)}, ValueError, "of dtype <U1"),
        (
            {"attack": lambda rows: rows[:, 0] * np.nan, "tuning_runs": 9},
            ValueError,
            "returns NaN for every output",
        ),
        ({"seed": -1}, ValueError, "seed must be"),
        ({"mechanism": object()}, TypeError, "object is not a mechanism"),
        ({"neighbours": ([0],)}, TypeError, r"neighbours must be a \(reference, canary\) pair"),
        ({"neighbours": ([0], [0])}, VacuousAudit, "the neighbouring datasets are equal"),
        ({"mechanism": from_callable(float), "view": "white-box"}, ValueError, "only a black-box view"),
    ],
)
def test_bad_arguments_are_named(changes, error, message):
    arguments = {"mechanism": Noisy(), "neighbours": ([0], [1]), "attack": positive, "delta": 0.0} | changes
    with pytest.raises(error, match=message):
        passive_audit(arguments.pop("mechanism"), arguments.pop("neighbours"), **arguments)


def test_a_gaussian_trade_off_is_not_read_at_delta_zero():
    with pytest.raises(ValueError, match="estimator='gdp' needs delta above 0"):
        passive_audit(
            from_sampler(lambda data, n, rng: rng.random(n) < data),
            (0.4, 0.6),
            attack=lambda outputs: outputs[:, 0] > 0.5,
            delta=0.0,
            estimator="gdp",
            runs=100,
        )
