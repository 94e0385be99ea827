"""The diffprivlib adapter, on stand-ins for its classes; ``examples/diffprivlib`` runs it on the library."""

from __future__ import annotations

import pickle
import random
import secrets
import sys
import types

import numpy as np
import pytest

from pytest_snapaudit import InvalidClaim, PrivacyClaim, audit
from pytest_snapaudit.adapters.diffprivlib import (
    as_mechanism,
    from_builder,
    from_mechanism,
    from_model,
    from_tool,
)

PAIR = (0.0, 1.0)


class Laplace:
    """Laplace noise from ``_rng``, secure unless a state is given, as the library's mechanisms have it."""

    def __init__(self, epsilon=1.0, delta=0.0, random_state=None):
        self.epsilon, self.delta, self.random_state = epsilon, delta, random_state
        self._rng = secrets.SystemRandom() if random_state is None else np.random.RandomState(random_state)

    def __repr__(self):
        return f"diffprivlib.mechanisms.laplace.Laplace(epsilon={self.epsilon})"

    def randomise(self, value):
        u = self._rng.random() - 0.5
        return value - np.sign(u) * np.log(1 - 2 * abs(u)) / self.epsilon


class Rounded:
    def __init__(self, parent):
        self.parent = parent

    def randomise(self, value):
        return round(self.parent.randomise(value))


class Choice:
    """The index of the largest utility with Gumbel noise."""

    built = 0

    def __init__(self, utility, epsilon=1.0, random_state=None):
        Choice.built += 1
        self.utility, self.epsilon = utility, epsilon
        self._rng = np.random.RandomState(random_state)

    def randomise(self):
        return int(
            np.argmax(self.epsilon / 2 * np.array(self.utility) + self._rng.gumbel(size=len(self.utility)))
        )


class Accountant:
    def __init__(self):
        self.spent = []


class Mean:
    """A model: ``mean_`` is a noisy mean; it charges its accountant."""

    def __init__(self, epsilon=1.0, random_state=None):
        self.epsilon, self.random_state, self.accountant = epsilon, random_state, Accountant()

    def fit(self, x, y=None):
        del y
        self.accountant.spent.append(self.epsilon)
        rng = np.random.RandomState(self.random_state)
        self.mean_ = float(np.mean(x)) + rng.laplace(0, 1 / (self.epsilon * len(x)))
        return self


for stand_in, module in ((Laplace, "laplace"), (Rounded, "transforms"), (Choice, "exponential")):
    stand_in.__module__ = f"diffprivlib.mechanisms.{module}"
PICKLED = Laplace, Rounded  # found by pickle where they are defined


def tool(array, epsilon, bounds, random_state=None):
    """A noisy bounded sum."""
    rng = np.random.RandomState(random_state)
    return float(np.clip(array, *bounds).sum()) + rng.laplace(0, (bounds[1] - bounds[0]) / epsilon)


def test_a_mechanism_brings_its_claim_and_name():
    sampler = as_mechanism(Laplace(epsilon=2.0, delta=0.1))
    assert sampler.claim == PrivacyClaim(2.0, 0.1)
    assert sampler.default_trials == 20_000
    assert sampler.name == "Laplace(epsilon=2.0)"
    assert from_mechanism(Laplace(), name="mine").name == "mine"


def test_a_transformer_brings_the_claim_of_what_it_wraps():
    sampler = as_mechanism(Rounded(Rounded(Laplace(epsilon=0.5))))
    assert sampler.claim == PrivacyClaim(0.5)
    assert isinstance(sampler.fn(3), int)
    assert sampler.name == "Rounded"


def test_given_a_state_the_audit_seeds_it():
    results = [
        audit(from_mechanism(Laplace(random_state=5)), PAIR, PrivacyClaim(1.0), n_trials=2_000)
        for _ in range(2)
    ]
    assert results[0] == results[1]
    assert dict(results[0].diagnostics)["reproducibility"] == "two draws from one seed are equal"


def test_the_state_of_a_wrapped_mechanism_is_seeded_too():
    result = audit(from_mechanism(Rounded(Laplace(random_state=5))), PAIR, PrivacyClaim(1.0), n_trials=2_000)
    assert dict(result.diagnostics)["reproducibility"] == "two draws from one seed are equal"


def test_secure_noise_stays_secure_and_is_reported():
    mechanism = Laplace()
    sampler = from_mechanism(mechanism)
    assert sampler.fn.mechanism._rng is mechanism._rng
    result = audit(sampler, PAIR, PrivacyClaim(1.0), n_trials=2_000)
    assert "borderline verdict may change from run to run" in dict(result.diagnostics)["reproducibility"]


def test_the_mechanism_itself_is_not_changed():
    mechanism = Laplace(random_state=5)
    expected = Laplace(random_state=5).randomise(0.0)
    audit(from_mechanism(mechanism), PAIR, PrivacyClaim(1.0), n_trials=500)
    assert mechanism.randomise(0.0) == expected


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("random_state", [None, 5])
def test_workers_get_a_generator_of_the_same_kind(monkeypatch, random_state, wrapped):
    for cls in PICKLED:
        monkeypatch.setattr(cls, "__module__", __name__)
    mechanism = Laplace(random_state=random_state)
    sampler = from_mechanism(Rounded(mechanism) if wrapped else mechanism)
    sent = pickle.loads(pickle.dumps(sampler.fn))
    inner = sent.mechanism.parent if wrapped else sent.mechanism
    if random_state is None:
        assert isinstance(inner._rng, random.SystemRandom)
    else:
        drawn = []
        for _ in range(2):
            np.random.seed(3)
            drawn.append((sent(0.0), sent(0.0)))
        assert drawn[0] == drawn[1]
    assert isinstance(sampler.fn(0.0), float | int)  # the original still draws


def test_a_built_mechanism_is_built_once_per_dataset():
    Choice.built = 0
    sampler = from_builder(Choice, epsilon=1.0, name="choice")
    utilities = ([3, 5], [4, 4])
    result = audit(sampler, utilities, sampler.claim, n_trials=2_000)
    assert result.verdict == "CONSISTENT"
    assert result.name == "choice"
    assert Choice.built < 30  # a few blocks of trials, thousands of outputs


def test_a_built_mechanism_that_is_too_loose_is_caught():
    sampler = from_builder(lambda utility: Choice(utility, epsilon=4.0), epsilon=1.0)
    assert audit(sampler, ([3, 5], [4, 4]), sampler.claim, n_trials=2_000).verdict == "VIOLATION"


def test_a_tool_gets_its_arguments():
    sampler = from_tool(tool, epsilon=2.0, bounds=(0, 3))
    assert sampler.claim == PrivacyClaim(2.0)
    assert sampler.name == "tool(epsilon=2.0, bounds=(0, 3))"
    assert np.median([sampler.fn(np.array([1.0, 100.0])) for _ in range(501)]) == pytest.approx(4.0, abs=0.5)


@pytest.mark.parametrize(("seeded", "said"), [(True, "are equal"), (False, "differ")])
def test_a_tool_is_reproducible_if_seeded(seeded, said):
    sampler = from_tool(tool, epsilon=1.0, bounds=(0, 1), seeded=seeded)
    result = audit(sampler, (np.array([0.0]), np.array([1.0])), sampler.claim, n_trials=1_000)
    assert said in dict(result.diagnostics)["reproducibility"]


def test_a_fixed_random_state_is_refused():
    with pytest.raises(ValueError, match=r"random_state=3 would give every call the same .* seeded=True"):
        from_tool(tool, epsilon=1.0, bounds=(0, 1), random_state=3)


def test_a_model_is_fitted_anew_and_not_charged():
    model = Mean(epsilon=1.0)
    sampler = from_model(model, lambda fitted: fitted.mean_, seeded=True)
    result = audit(sampler, ((np.zeros(2),), (np.array([0.0, 1.0]),)), sampler.claim, n_trials=2_000)
    assert result.verdict == "CONSISTENT"
    assert dict(result.diagnostics)["reproducibility"] == "two draws from one seed are equal"
    assert model.accountant.spent == []
    assert not hasattr(model, "mean_")


def test_a_model_takes_labels_too():
    assert isinstance(from_model(Mean(), lambda fitted: fitted.mean_).fn(([1.0], [0])), float)


def test_a_bare_model_is_told_what_is_missing():
    with pytest.raises(
        TypeError, match=r"say what of the fitted model is released: check\(from_model\(model, "
    ):
        as_mechanism(Mean())


def test_other_objects_are_told_of_the_helpers():
    with pytest.raises(TypeError, match="takes a diffprivlib mechanism with randomise, got Accountant"):
        as_mechanism(Accountant())


def test_wrong_arguments():
    with pytest.raises(TypeError, match="a diffprivlib mechanism has randomise, got 3 of type int"):
        from_mechanism(3)
    with pytest.raises(TypeError, match="build must be a function of the dataset, got 3"):
        from_builder(3, epsilon=1.0)
    with pytest.raises(TypeError, match="tool must be callable, got 3"):
        from_tool(3, epsilon=1.0)
    with pytest.raises(TypeError, match="takes a model with fit and a function of the fitted model"):
        from_model(Mean(), "mean_")
    with pytest.raises(TypeError, match="Rounded has no epsilon to test"):
        from_mechanism(Rounded(None))
    with pytest.raises(InvalidClaim, match="got inf"):
        from_mechanism(Laplace(epsilon=float("inf")))


def test_a_model_with_a_state_of_its_own_is_seeded_anew_for_every_fit():
    sampler = from_model(Mean(random_state=3), lambda fitted: fitted.mean_)
    result = audit(sampler, (([0.0, 0.5],), ([0.0, 1.0],)), PrivacyClaim(1.0), n_trials=1_000)
    assert not result.violated
    assert "noise" not in dict(result.diagnostics)


@pytest.mark.parametrize("wrap", [from_mechanism, lambda cls: from_model(cls, lambda fitted: fitted)])
def test_a_class_is_not_what_it_builds(wrap):
    for cls in (Laplace, Mean):
        with pytest.raises(TypeError, match=rf"{cls.__name__}"):
            wrap(cls)


def test_a_tool_of_the_library_charges_an_accountant_of_its_own(monkeypatch):
    charged = []

    def mean(array, epsilon, accountant=None):
        accountant.spent.append(epsilon)
        charged.append(accountant)
        return float(np.mean(array))

    monkeypatch.setattr(mean, "__module__", "diffprivlib.tools.utils")
    monkeypatch.setitem(sys.modules, "diffprivlib", types.ModuleType("diffprivlib"))
    accountants = types.SimpleNamespace(BudgetAccountant=Accountant)
    monkeypatch.setitem(sys.modules, "diffprivlib.accountant", accountants)
    sampler = from_tool(mean, epsilon=1.0)
    assert sampler.fn([1.0, 2.0]) == sampler.fn([1.0, 2.0]) == 1.5
    assert [accountant.spent for accountant in charged] == [[1.0], [1.0]]
    mine = Accountant()
    from_tool(mean, epsilon=1.0, accountant=mine).fn([1.0])
    assert mine.spent == [1.0]
