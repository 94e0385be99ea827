"""Claims of dp_accounting events."""

from __future__ import annotations

import math
import sys

import pytest

from pytest_snapaudit import InvalidClaim, PrivacyClaim
from pytest_snapaudit.adapters.accounting import as_mechanism, claim_of_event, curve_of_event
from pytest_snapaudit.engine.estimators import gaussian_delta

dp_accounting = pytest.importorskip(
    "dp_accounting", reason="dp_accounting is not installed: pip install dp-accounting"
)
GAUSSIAN = dp_accounting.GaussianDpEvent(1.0)


def test_at_a_delta():
    claim = claim_of_event(GAUSSIAN, delta=1e-5)
    assert claim.delta == 1e-5
    assert gaussian_delta(1.0, claim.epsilon) <= 1e-5 < gaussian_delta(1.0, claim.epsilon - 1e-3)


def test_at_an_epsilon():
    claim = claim_of_event(GAUSSIAN, epsilon=1.0)
    assert claim.epsilon == 1.0
    exact = gaussian_delta(1.0, 1.0)
    assert exact <= claim.delta <= exact * (1 + 1e-6)  # accountants round up


def test_composition_and_subsampling():
    event = dp_accounting.SelfComposedDpEvent(dp_accounting.PoissonSampledDpEvent(0.1, GAUSSIAN), 10)
    added = claim_of_event(event, delta=1e-5)
    replaced = claim_of_event(event, delta=1e-5, relation="replace")
    assert added.epsilon == pytest.approx(2.8545, abs=1e-3)
    assert replaced.epsilon > added.epsilon


def test_the_other_accountant_takes_what_the_first_does_not():
    event = dp_accounting.SingleEpochTreeAggregationDpEvent(noise_multiplier=2.0, step_counts=8)
    assert not dp_accounting.pld.PLDAccountant().supports(event)
    claim = claim_of_event(event, delta=1e-5, relation="replace-special")
    by_hand = dp_accounting.rdp.RdpAccountant(
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_SPECIAL
    ).compose(event)
    assert claim.epsilon == pytest.approx(by_hand.get_epsilon(1e-5))


def test_an_accountant_of_ones_own():
    def coarse():
        return dp_accounting.pld.PLDAccountant(value_discretization_interval=0.1)

    assert (
        claim_of_event(GAUSSIAN, delta=1e-5, accountant=coarse).epsilon
        > claim_of_event(GAUSSIAN, delta=1e-5).epsilon
    )


def test_the_curve():
    curve = curve_of_event(dp_accounting.LaplaceDpEvent(1.0))
    assert curve(0.5) == pytest.approx(1 - math.exp(-0.25), rel=1e-3)
    assert curve(1.5) < 1e-9


@pytest.mark.parametrize("given", [{}, {"delta": 1e-5, "epsilon": 1.0}])
def test_either_delta_or_epsilon(given):
    with pytest.raises(ValueError, match="takes delta or epsilon, one of them"):
        claim_of_event(GAUSSIAN, **given)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="event must be a dp_accounting DpEvent, got 3 of type int"):
        claim_of_event(3, delta=1e-5)
    with pytest.raises(ValueError, match=r"relation must be one of 'add-remove', .* got 'add'"):
        claim_of_event(GAUSSIAN, delta=1e-5, relation="add")
    with pytest.raises(ValueError, match=r"delta must be above 0, got 0\.0"):
        claim_of_event(GAUSSIAN, delta=0.0)
    with pytest.raises(InvalidClaim, match=r"delta must be a number in \[0, 1\)"):
        claim_of_event(GAUSSIAN, delta=2.0)
    with pytest.raises(InvalidClaim, match="epsilon must be a finite number above 0, got -1"):
        claim_of_event(GAUSSIAN, epsilon=-1)
    with pytest.raises(ValueError, match="no finite epsilon holds for NonPrivateDpEvent"):
        claim_of_event(dp_accounting.NonPrivateDpEvent(), delta=1e-5)
    with pytest.raises(ValueError, match="no accountant supports UnsupportedDpEvent"):
        claim_of_event(dp_accounting.UnsupportedDpEvent(), delta=1e-5)


def test_an_event_is_no_mechanism():
    with pytest.raises(TypeError, match="GaussianDpEvent of dp_accounting says what a mechanism promises"):
        as_mechanism(GAUSSIAN)


def test_without_the_library_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match="pip install dp-accounting"):
        claim_of_event(GAUSSIAN, delta=1e-5)


def test_the_claim_unpacks_into_check():
    assert vars(claim_of_event(GAUSSIAN, delta=1e-5)).keys() == {"epsilon", "delta"}
    assert isinstance(claim_of_event(GAUSSIAN, delta=1e-5), PrivacyClaim)


def test_an_accountant_is_given_as_a_function_that_makes_one():
    made = dp_accounting.rdp.RdpAccountant
    assert claim_of_event(GAUSSIAN, delta=1e-5, accountant=made).epsilon > 0
    with pytest.raises(TypeError, match="such as the class RdpAccountant itself"):
        claim_of_event(GAUSSIAN, delta=1e-5, accountant=made())
    with pytest.raises(TypeError, match="accountant must return an accountant of dp_accounting"):
        claim_of_event(GAUSSIAN, delta=1e-5, accountant=object)
    with pytest.raises(ValueError, match=r"relation must be one of .* got \[\]"):
        claim_of_event(GAUSSIAN, delta=1e-5, relation=[])
    with pytest.raises(ValueError, match="and no claim if it has none"):
        claim_of_event(dp_accounting.NonPrivateDpEvent(), delta=1e-5)
