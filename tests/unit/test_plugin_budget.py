"""Shares of one test's error probability."""

import math

import pytest

from pytest_snapaudit import BudgetExceeded
from pytest_snapaudit.budget import Budget
from pytest_snapaudit.examples import Example


class _Context:
    """Stands for Hypothesis' own object for one call of a test's body."""


def _body():
    """Stands for the body of a Hypothesis test."""


def _example(max_examples=10, explicit=0, test=_body):
    return Example(_Context(), test, max_examples, explicit)


def _spend(budget, keys, example=None):
    budget.enter(example)
    shares = []
    for key in keys:
        share = budget.share(key, example)
        budget.charge(share, example)
        shares.append(share)
    return shares


def test_checks_outside_given_share_equally_and_spend_everything():
    budget = Budget(4)
    assert _spend(budget, "abcd") == [0.25] * 4
    assert budget.spent == pytest.approx(1.0)


def test_the_share_does_not_depend_on_how_many_checks_came_before():
    one, many = Budget(4), Budget(4)
    _spend(many, "abc")
    assert _spend(one, "d") == _spend(many, "d")


def test_the_same_configuration_counts_once_in_one_place():
    budget = Budget(1)
    budget.enter(None)
    assert budget.share("a", None) == budget.share("a", None) == 1.0
    with pytest.raises(
        BudgetExceeded, match=r"this test checks 2 different configurations.*max_checks=1\. Declare"
    ):
        budget.share("b", None)


@pytest.mark.parametrize(("max_checks", "max_examples", "explicit"), [(1, 1, 0), (1, 100, 3), (7, 20, 1)])
def test_a_whole_hypothesis_run_never_spends_more_than_all(max_checks, max_examples, explicit):
    budget = Budget(max_checks)
    for number in range(2 * max_examples + explicit):
        example = _example(max_examples, explicit)
        shares = _spend(budget, [(number, j) for j in range(max_checks)], example)
        expected = [
            6 / math.pi**2 / j**2 / (max_checks * (2 * max_examples + explicit))
            for j in range(1, max_checks + 1)
        ]
        assert shares == pytest.approx(expected)
    assert 0.6 / max_checks < budget.spent <= 1.0
    with pytest.raises(BudgetExceeded, match=f"more than {2 * max_examples + explicit} Hypothesis examples"):
        _spend(budget, ["another"], _example(max_examples, explicit))


def test_the_limit_of_an_example_counts_configurations_known_from_elsewhere():
    budget = Budget(1)
    _spend(budget, ["a"], _example())
    example = _example()
    budget.enter(example)
    budget.share("a", example)
    with pytest.raises(BudgetExceeded, match="one Hypothesis example checks 2 different configurations"):
        budget.share("b", example)


def test_after_a_failure_nothing_is_charged():
    budget = Budget(1)
    examples = [_example(max_examples=1) for _ in range(10)]
    _spend(budget, ["first"], examples[0])
    spent = budget.spent
    budget.waive()
    for number, example in enumerate(examples[1:]):
        _spend(budget, [number], example)
    assert budget.spent == spent
    budget.start_run()
    assert (budget.spent, budget.waived) == (0.0, False)


def test_an_exhausted_budget_stays_exhausted():
    budget = Budget(1)
    for number in range(2):
        _spend(budget, [number], _example(max_examples=1))
    for number in range(2, 5):
        with pytest.raises(BudgetExceeded, match="2 x max_examples"):
            _spend(budget, [number], _example(max_examples=1))


def test_two_given_tests_inside_one_test_have_their_own_examples_and_one_budget():
    def other():
        pass

    budget = Budget(2)
    for number in range(2):
        _spend(budget, [number], _example(max_examples=1))
        _spend(budget, [number], _example(max_examples=1, test=other))
    assert budget.spent == pytest.approx(4 * 6 / math.pi**2 / 4)
    with pytest.raises(BudgetExceeded, match=r"need 1\.11 times its error probability: max_checks=2"):
        _spend(budget, ["outside"])
    undeclared = Budget(1)
    _spend(undeclared, ["outside"])
    with pytest.raises(
        BudgetExceeded, match=r"need 1\.3 times its error probability: max_checks=1 must cover"
    ):
        _spend(undeclared, ["inside"], _example(max_examples=1))


def test_checks_before_and_after_a_given_test_are_counted_together():
    budget = Budget(2)
    _spend(budget, ["a"])
    budget.enter(_example())
    budget.enter(None)
    budget.share("b", None)
    with pytest.raises(BudgetExceeded, match="this test checks 3 different configurations"):
        budget.share("c", None)


def test_an_audit_without_a_verdict_gives_its_share_back():
    budget = Budget(1)
    budget.enter(None)
    share = budget.share("a", None)
    budget.charge(share, None)
    budget.refund("a", share)
    assert budget.spent == 0.0
    assert _spend(budget, "b") == [1.0]
