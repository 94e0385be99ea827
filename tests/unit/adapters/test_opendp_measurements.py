"""The OpenDP adapter, on stand-ins for its classes; ``examples/opendp`` runs it on the library."""

from __future__ import annotations

import math
import pickle
import sys
import types

import numpy as np
import pytest

from pytest_snapaudit import InvalidClaim, MechanismError, PrivacyClaim, audit
from pytest_snapaudit.adapters.conversions import zcdp_to_delta
from pytest_snapaudit.adapters.opendp import as_mechanism, from_measurement


class Measurement:
    """Laplace noise with a given output measure and map; counts how often it is called."""

    input_domain, input_metric = "AtomDomain(T=f64)", "AbsoluteDistance(f64)"

    def __init__(self, measure="MaxDivergence", loss=float):
        self.output_measure, self.map, self.calls = measure, loss, 0

    def __call__(self, value):
        self.calls += 1
        if value is None:
            msg = "nothing to count"
            raise ValueError(msg)
        return value + np.random.laplace(0, 1)


class Transformation:
    pass


for stand_in in (Measurement, Transformation):
    stand_in.__module__ = "opendp.mod"


@pytest.fixture
def combinators(monkeypatch):
    """``opendp.combinators`` whose compositions are lists of outputs."""
    composed = []

    def make_composition(measurements):
        composed.append(len(measurements))
        return lambda dataset: [measurement(dataset) for measurement in measurements]

    module = types.SimpleNamespace(make_composition=make_composition, composed=composed)
    monkeypatch.setitem(sys.modules, "opendp", types.ModuleType("opendp"))
    monkeypatch.setitem(sys.modules, "opendp.combinators", module)
    return module


def make_laplace():
    return Measurement()


class Profile:
    """ε = 1 at every δ, as a privacy profile."""

    def delta(self, epsilon):
        return max(0.0, 1.0 - epsilon)


def test_pure_epsilon_is_the_map_at_the_distance():
    sampler = from_measurement(Measurement(), d_in=0.5)
    assert sampler.claim == PrivacyClaim(0.5)
    assert sampler.claim_curve is None
    assert sampler.default_trials == 20_000
    assert sampler.name == "OpenDP AtomDomain(T=f64), AbsoluteDistance(f64), MaxDivergence, d_in=0.5"
    assert from_measurement(Measurement(), d_in=1, name="mine").name == "mine"
    asked = []
    from_measurement(Measurement(loss=lambda d_in: asked.append(d_in) or 1.0), d_in=np.int64(3))
    assert [(type(d_in), d_in) for d_in in asked] == [(int, 3)]


def test_a_fixed_pair_is_itself():
    fixed = Measurement("Approximate(MaxDivergence)", lambda d_in: (2.0, 1e-3))
    assert from_measurement(fixed, d_in=1).claim == PrivacyClaim(2.0, 1e-3)
    assert from_measurement(fixed, d_in=1, delta=1e-2).claim == PrivacyClaim(2.0, 1e-2)
    assert from_measurement(Measurement("FixedSmoothedMaxDivergence", fixed.map), d_in=1).claim.delta == 1e-3
    with pytest.raises(ValueError, match=r"promises delta=0\.001 here, got the smaller delta=0\.0001"):
        from_measurement(fixed, d_in=1, delta=1e-4)


def test_zcdp_is_a_curve():
    sampler = from_measurement(
        Measurement("ZeroConcentratedDivergence", lambda d_in: d_in**2 / 2), d_in=1, delta=1e-6
    )
    assert sampler.claim.delta == 1e-6
    assert sampler.claim.epsilon == pytest.approx(5.22153444453017, rel=1e-9)  # as OpenDP itself converts it
    assert sampler.claim_curve(2.0) == pytest.approx(zcdp_to_delta(0.5, 2.0))


def test_approximate_zcdp_adds_its_delta():
    plain = from_measurement(Measurement("ZeroConcentratedDivergence", lambda d_in: 0.5), d_in=1, delta=0.1)
    approximate = from_measurement(
        Measurement("Approximate(ZeroConcentratedDivergence)", lambda d_in: (0.5, 0.01)), d_in=1, delta=0.1
    )
    assert approximate.claim_curve(1.0) == pytest.approx(0.01 + 0.99 * plain.claim_curve(1.0))
    assert approximate.claim.epsilon > plain.claim.epsilon


def test_renyi_bounds_are_a_curve():
    renyi = Measurement("RenyiDivergence", lambda d_in: lambda alpha: 0.5 * alpha)
    assert from_measurement(renyi, d_in=1, delta=1e-6).claim.epsilon == pytest.approx(5.22153444453017)


def test_a_privacy_profile_is_a_curve():
    sampler = from_measurement(
        Measurement("SmoothedMaxDivergence", lambda d_in: Profile()), d_in=1, delta=0.25
    )
    assert sampler.claim.epsilon == pytest.approx(0.75)
    assert sampler.claim_curve(0.5) == 0.5


@pytest.mark.parametrize("measure", ["ZeroConcentratedDivergence", "Approximate(ZeroConcentratedDivergence)"])
def test_a_curve_needs_a_delta(measure):
    loss = (0.5, 0.0) if "Approximate" in measure else 0.5
    with pytest.raises(
        ValueError, match=r"say at which delta: from_measurement\(measurement, d_in=\.\.\., delta=1e-6\)"
    ):
        from_measurement(Measurement(measure, lambda d_in: loss), d_in=1)


def test_an_unknown_measure_says_what_to_do():
    with pytest.raises(
        ValueError, match=r"no .epsilon, delta. can be read off KullbackLeibler; known are MaxDivergence"
    ):
        from_measurement(Measurement("KullbackLeibler"), d_in=1, delta=0.1)


@pytest.mark.parametrize("delta", [1.0, -1, "small"])
def test_delta_is_validated(delta):
    with pytest.raises(InvalidClaim, match="delta must be a number in"):
        from_measurement(Measurement(), d_in=1, delta=delta)


@pytest.mark.parametrize("given", [3, Transformation(), dict])
def test_only_measurements_and_their_builders(given):
    with pytest.raises(TypeError, match="takes an OpenDP Measurement or a function that builds one, got"):
        from_measurement(given, d_in=1)


@pytest.mark.usefixtures("combinators")
def test_the_audit_reads_claim_and_outputs():
    sampler = from_measurement(make_laplace, d_in=1.0)
    assert audit(sampler, (0.0, 1.0), sampler.claim, n_trials=6_000).verdict == "CONSISTENT"
    assert audit(sampler, (0.0, 3.0), sampler.claim, n_trials=6_000).verdict == "VIOLATION"


def test_outputs_come_from_compositions_of_at_most_1000(combinators):
    measurement = Measurement()
    sampler = from_measurement(measurement, d_in=1.0)
    for _ in range(2):
        outputs = sampler.sample(0.0, 2_500, np.random.default_rng(0))
        assert len(outputs) == len(set(outputs)) == 2_500
    assert combinators.composed == [1_000, 500, 500]  # that of 1 000 is built once
    assert measurement.calls == 6_000  # the first composition shows whether one can be made of this dataset


def test_without_a_composition_outputs_are_drawn_one_by_one_and_failures_are_outputs():
    measurement = Measurement()
    sampler = from_measurement(measurement, d_in=1.0)  # no opendp to import
    assert len(set(sampler.sample(0.0, 1_200, np.random.default_rng(0)))) == measurement.calls == 1_200
    failures = sampler.sample(None, 3, np.random.default_rng(0))
    assert [str(failure) for failure in failures] == ["nothing to count"] * 3


@pytest.mark.usefixtures("combinators")
def test_a_dataset_that_fails_on_one_side_is_a_finding():
    sampler = from_measurement(make_laplace, d_in=1.0)
    assert audit(sampler, (0.0, None), sampler.claim, n_trials=2_000).verdict == "VIOLATION"
    with pytest.raises(MechanismError, match="on both datasets are ValueError"):
        audit(from_measurement(_Failing(), d_in=1.0), (0.0, 1.0), sampler.claim, n_trials=2_000)


class _Failing(Measurement):
    def __call__(self, value):
        del value
        msg = "broken"
        raise ValueError(msg)


def test_a_builder_crosses_process_boundaries_and_a_measurement_does_not():
    built = from_measurement(make_laplace, d_in=1.0)
    copied = pickle.loads(pickle.dumps(built.fn))
    assert len(copied(0.0, 5, np.random.default_rng(0))) == 5
    with pytest.raises(TypeError, match=r"holds pointers .* from_measurement\(make_count, d_in=1\)"):
        pickle.dumps(from_measurement(Measurement(), d_in=1.0).fn)


def test_a_bare_measurement_is_told_what_is_missing():
    with pytest.raises(
        TypeError,
        match=r"under AbsoluteDistance\(f64\): check\(from_measurement\(measurement, d_in=1\), \.\.\.\)",
    ):
        as_mechanism(Measurement())


def test_other_objects_of_the_library_are_named():
    with pytest.raises(TypeError, match="takes an OpenDP Measurement, got Transformation: build one"):
        as_mechanism(Transformation())
    assert as_mechanism(object()) is None


def test_an_infinite_loss_is_no_claim():
    with pytest.raises(
        ValueError, match="map gives epsilon=inf for this d_in, of which nothing can be tested"
    ):
        from_measurement(Measurement(loss=lambda d_in: math.inf), d_in=1)


class Logarithm(Measurement):
    """Fails where the noisy value is below 0: on some outputs of one call of many."""

    def __call__(self, value):
        return math.log(super().__call__(value))


Logarithm.__module__ = "opendp.mod"


@pytest.mark.parametrize("composed", [True, False])
def test_a_measurement_that_fails_on_some_outputs_is_drawn_one_by_one(combinators, composed):
    sampler = from_measurement(Logarithm(), d_in=1.0, composed=composed)
    outputs = sampler.sample(1.0, 2_000, np.random.default_rng(0))
    failed = [isinstance(output, ValueError) for output in outputs]
    assert len(outputs) == 2_000
    assert abs(np.mean(failed) - math.exp(-1) / 2) < 6 * math.sqrt(0.2 * 0.8 / 2_000)  # 6 standard errors
    assert not audit(sampler, (1.0, 2.0), PrivacyClaim(1.0), n_trials=1_000).violated
    assert combinators.composed == ([1_000] if composed else [])


def test_a_distance_that_the_map_refuses_is_named():
    def refuse(d_in):
        raise TypeError("inferred type is f64, expected u32\nframe 1\nframe 2")

    with pytest.raises(
        ValueError, match=r"d_in=1\.0 is no distance under .*: inferred type is f64, expected u32\.$"
    ):
        from_measurement(Measurement(loss=refuse), d_in=1.0)
    with pytest.raises(ValueError, match=r"epsilon=0 for this d_in, .* d_in must be above 0"):
        from_measurement(Measurement(), d_in=0)
    with pytest.raises(TypeError, match="got the class Measurement"):
        from_measurement(Measurement, d_in=1)


def test_a_failure_that_comes_late_says_how_to_go_on(combinators):
    class Late(Measurement):
        def __call__(self, value):
            if self.calls > 1_500:
                raise ValueError("overflow\nframe 1")
            return super().__call__(value)

    Late.__module__ = "opendp.mod"
    sampler = from_measurement(Late(), d_in=1.0)
    with pytest.raises(
        MechanismError, match=r"one of 1,000 outputs failed, .*\(overflow\); .*composed=False"
    ):
        sampler.sample(1.0, 1_000, np.random.default_rng(0))
