"""The Opacus adapter, on stand-ins for torch and for an optimizer."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
from torch_stand_in import DPOptimizer, Loader, PoissonSampler, TorchGenerator, tensor

from pytest_snapaudit import GaussianNoise, PrivacyClaim, Verdict, audit
from pytest_snapaudit.adapters import opacus, pytest_snapaudit_as_mechanism
from pytest_snapaudit.adapters.opacus import (
    accountant_claim,
    from_opacus,
    gaussian_claim,
    step_claim,
)

SMALL = np.array([[0.1, 0.2, -0.1], [0.0, -0.3, 0.2]])
PAIR = (SMALL, np.vstack([SMALL, [30.0, 0.0, 40.0]]))
RNG = np.random.default_rng


@pytest.fixture
def optimizer(torch):
    return DPOptimizer(torch)


@pytest.fixture
def accountants(monkeypatch):
    """``opacus.accountants`` with an accountant that says what it was told."""

    class Accountant:
        def __init__(self, mechanism):
            self.mechanism = mechanism
            self.history = []

        def get_epsilon(self, delta):
            ((noise_multiplier, sample_rate, steps),) = self.history
            return sample_rate * steps / noise_multiplier - (0.0 if self.mechanism == "rdp" else 9.0)

    package, module = types.ModuleType("opacus"), types.ModuleType("opacus.accountants")
    module.create_accountant = Accountant
    monkeypatch.setitem(sys.modules, "opacus", package)
    monkeypatch.setitem(sys.modules, "opacus.accountants", module)
    return module


def loader(torch, sample_rate=0.5, **settings):
    return Loader(PoissonSampler(torch, num_samples=99, sample_rate=sample_rate, steps=2, **settings))


def test_the_clean_stage_is_the_clipped_sum_over_all_parameters(optimizer):
    step = from_opacus(optimizer)
    assert step.clean(PAIR[0], RNG(0)) == pytest.approx([0.1, -0.1, 0.1], abs=1e-6)
    assert step.clean(PAIR[1], RNG(0)) == pytest.approx([0.4, -0.1, 0.5], abs=1e-6)  # + (0.3, 0, 0.4)


def test_the_clean_stage_leaves_the_optimizer_as_a_step_would_find_it(optimizer):
    from_opacus(optimizer).clean(PAIR[1], RNG(0))
    assert optimizer._step_skip_queue == []
    assert not optimizer._is_last_step_skipped
    assert all(p.summed_grad is None and p.grad_sample is None for p in optimizer.params)


def test_gradients_may_be_given_per_parameter_or_computed_by_backward(optimizer):
    whole = from_opacus(optimizer).clean(PAIR[1], RNG(0))
    split = (tensor(PAIR[1][:, :2]), tensor(PAIR[1][:, 2]))

    def backward(batch):
        for parameter, gradients in zip(optimizer.params, split, strict=True):
            parameter.grad_sample = gradients * batch

    assert np.array_equal(from_opacus(optimizer).clean(split, RNG(0)), whole)
    assert np.array_equal(from_opacus(optimizer, backward).clean(1.0, RNG(0)), whole)


@pytest.mark.parametrize("batch", [SMALL[:, :2], (SMALL, SMALL[:, 2]), SMALL[0]])
def test_gradients_of_another_shape_are_refused(optimizer, batch):
    with pytest.raises(ValueError, match=r"an array of shape \(B, 3\) or a tuple of 2 arrays .*, got "):
        from_opacus(optimizer).clean(batch, RNG(0))
    assert optimizer._step_skip_queue == []


@pytest.mark.parametrize("batched", [True, False])
def test_the_noise_stage_calls_add_noise_once_for_all_rows_or_once_for_each(optimizer, monkeypatch, batched):
    shapes = []
    noisily = DPOptimizer.add_noise

    def add_noise(self):
        shapes.append([p.shape for p in self.params])
        noisily(self)

    monkeypatch.setattr(DPOptimizer, "add_noise", add_noise)
    clean = np.broadcast_to(np.float32([1.0, 2.0, 3.0]), (500, 3))
    noisy = from_opacus(optimizer, batched=batched).privatize(clean, RNG(0))
    assert shapes == ([[(500, 2), (500,)]] if batched else [[(2,), ()]] * 500)
    assert noisy.shape == (500, 3)
    assert np.abs(noisy.mean(axis=0) - clean[0]).max() < 6 * 0.5 / np.sqrt(500)  # 6 standard errors
    assert len(np.unique(noisy)) == noisy.size


def test_the_noise_stage_touches_nothing_of_the_optimizer(optimizer):
    before = [(id(p), p.grad, p.summed_grad) for p in optimizer.params]
    from_opacus(optimizer).privatize(np.zeros((4, 3), np.float32), RNG(0))
    assert [(id(p), p.grad, p.summed_grad) for p in optimizer.params] == before


def test_groups_keep_their_settings_in_the_noise_stage(optimizer, monkeypatch):
    seen = []
    monkeypatch.setattr(DPOptimizer, "scale_grad", lambda self: None)
    monkeypatch.setattr(
        DPOptimizer,
        "add_noise",
        lambda self: seen.extend(
            [group["lr"] for group in self.param_groups]
            + [setattr(p, "grad", p.summed_grad) for p in self.params]
        ),
    )
    from_opacus(optimizer).privatize(np.zeros((4, 3), np.float32), RNG(0))
    assert seen[:2] == [0.1, 0.1]


def test_a_generator_of_its_own_is_replaced_by_a_seeded_one(torch):
    optimizer = DPOptimizer(torch, generator=TorchGenerator())
    own = optimizer.generator
    draws = [from_opacus(optimizer).privatize(np.zeros((4, 3), np.float32), RNG(seed)) for seed in (1, 1, 2)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    assert optimizer.generator is own


def test_the_generator_of_secure_mode_is_left_alone_and_the_result_says_so(torch):
    optimizer = DPOptimizer(torch, generator=TorchGenerator(), secure_mode=True)
    result = audit(from_opacus(optimizer), PAIR, gaussian_claim(1.0, 1e-5), n_trials=5_000)
    assert "two draws from one seed differ" in dict(result.diagnostics)["reproducibility"]


def test_a_correct_step_passes_close_to_its_claim(optimizer):
    step = from_opacus(optimizer, delta=1e-5)
    result = audit(step, PAIR, step.claim, n_trials=100_000)
    assert result.verdict is Verdict.CONSISTENT
    assert 0.95 * step.claim.epsilon < result.epsilon_lower <= step.claim.epsilon
    assert "two draws from one seed are equal" in dict(result.diagnostics)["reproducibility"]


def _noise(optimizer, factor):
    for p in optimizer.params:
        std = factor * optimizer.noise_multiplier * optimizer.max_grad_norm
        p.grad = p.summed_grad + optimizer.torch.normal(std, p.summed_grad.shape)


def _clip_nothing(optimizer):
    for p in optimizer.params:
        p.summed_grad = tensor(np.asarray(p.grad_sample).sum(axis=0))


@pytest.mark.parametrize(
    "planted",
    [
        {"add_noise": lambda self: _noise(self, 0.5)},
        {"add_noise": lambda self: _noise(self, 0.95)},
        {"clip_and_accumulate": _clip_nothing},
    ],
    ids=["half the noise", "5 % less noise", "no clipping"],
)
def test_a_planted_regression_is_flagged(torch, planted):
    optimizer = type("Planted", (DPOptimizer,), planted)(torch)
    step = from_opacus(optimizer, delta=1e-5)
    assert audit(step, PAIR, step.claim, n_trials=100_000).verdict is Verdict.VIOLATION


def test_what_a_step_declares(optimizer):
    step = from_opacus(optimizer, name="step")
    assert step.name == "step"
    assert step.claim is None
    assert step.deterministic
    assert (step.sensitivity, step.norm) == (0.5, "l2")
    assert step.noise == GaussianNoise(0.5)
    assert step.claimed_views == {"black-box", "white-box"}
    assert step.claim_curve(gaussian_claim(1.0, 1e-5).epsilon) == pytest.approx(1e-5)
    optimizer.noise_multiplier = 0.0
    assert step.noise is None
    assert from_opacus(optimizer, delta=None).claim is None


def test_the_exact_claim_of_a_gaussian_step():
    """Balle and Wang 2018, theorem 8, at sigma 1 and epsilon 1: Φ(−1/2) − e Φ(−3/2)."""
    assert gaussian_claim(1.0, 0.12693673750664397).epsilon == pytest.approx(1.0, rel=1e-9)


def test_claims_come_from_an_accountant(accountants):
    assert step_claim(2.0, 1e-3, sample_rate=0.1, steps=30) == PrivacyClaim(1.5, 1e-3)
    assert step_claim(2.0, 1e-3, sample_rate=0.1, accountant="prv") == PrivacyClaim(0.0, 1e-3)
    books = accountants.create_accountant("rdp")
    books.history = [(4.0, 1.0, 2)]
    assert accountant_claim(books, 1e-6) == PrivacyClaim(0.5, 1e-6)


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), float("inf")])
def test_without_noise_there_is_nothing_to_claim(sigma):
    with pytest.raises(ValueError, match="noise_multiplier above 0, got"):
        gaussian_claim(sigma, 1e-5)


def test_a_sampled_step_draws_its_batches_with_the_loader_s_sampler(torch, optimizer, accountants):
    batches = []

    def backward(batch):
        batches.append(len(batch))
        optimizer.params[0].grad_sample = tensor(batch[:, :2])
        optimizer.params[1].grad_sample = tensor(batch[:, 2])

    step = from_opacus(optimizer, backward, data_loader=loader(torch), delta=1e-3)
    assert step.claim == PrivacyClaim(0.5, 1e-3)
    assert not step.deterministic
    assert step.claim_curve is None
    rows = step.clean_batch(list(PAIR[1]), 4_000, RNG(0))
    assert rows.shape == (4_000, 3)
    assert sorted(batches) == [0, 1, 1, 1, 2, 2, 2, 3]  # each of the eight batches once
    whole = from_opacus(optimizer).clean(PAIR[1], RNG(0))
    assert np.abs(rows.mean(axis=0) - whole / 2).max() < 6 * 0.5 / np.sqrt(4_000)  # half of every record
    assert step.clean(list(PAIR[1]), RNG(0)).shape == (3,)


def test_a_sampler_s_generator_is_seeded_by_the_audit(torch, optimizer):
    own = TorchGenerator()
    step = from_opacus(optimizer, _fill(optimizer), data_loader=loader(torch, generator=own))
    rows = [step.clean_batch(list(PAIR[1]), 50, RNG(seed)) for seed in (1, 1, 2)]
    assert np.array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])
    assert step.data_loader.batch_sampler.generator is own


def _fill(optimizer):
    def backward(batch):
        optimizer.params[0].grad_sample = tensor(batch[:, :2])
        optimizer.params[1].grad_sample = tensor(batch[:, 2])

    return backward


def test_a_sampled_step_is_audited_as_a_whole(torch, optimizer):
    """Sampling at rate 1/2 amplifies, so the claim of the step alone is far from reached."""
    step = from_opacus(optimizer, _fill(optimizer), data_loader=loader(torch))
    records = list(PAIR[0]), list(PAIR[1])
    result = audit(step, records, gaussian_claim(1.0, 1e-2), n_trials=10_000)
    assert result.verdict is Verdict.CONSISTENT
    assert audit(step, records, PrivacyClaim(0.3, 1e-2), n_trials=10_000).verdict is Verdict.VIOLATION


def test_an_optimizer_is_recognised_by_its_class_or_a_base_of_it(torch):
    class Ours(DPOptimizer):
        pass

    for optimizer in (DPOptimizer(torch), Ours(torch)):
        step = pytest_snapaudit_as_mechanism(optimizer)
        assert step.optimizer is optimizer
        assert step.claim is None


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"get_epsilon": None, "history": ()}, r"accountant_claim\(accountant, delta\)"),
        ({}, r"got Thing: pass the optimizer that make_private returns"),
    ],
)
def test_other_objects_are_refused_with_the_call_to_write(members, message):
    with pytest.raises(TypeError, match=message):
        opacus.as_mechanism(type("Thing", (), members)())


def test_arguments_are_checked_at_the_door(torch, optimizer):
    with pytest.raises(TypeError, match=r"takes an optimizer of opacus\.optimizers, got 3 of type int"):
        from_opacus(3)
    with pytest.raises(TypeError, match="takes an optimizer"):
        from_opacus(DPOptimizer)
    with pytest.raises(TypeError, match="backward must be a function of a batch, got 3"):
        from_opacus(optimizer, 3)
    with pytest.raises(ValueError, match="claim or delta, not both"):
        from_opacus(optimizer, delta=1e-5, claim=PrivacyClaim(1.0))
    with pytest.raises(TypeError, match=r"backward\(batch\) is needed"):
        from_opacus(optimizer, data_loader=loader(torch))
    with pytest.raises(TypeError, match="got SimpleNamespace with list"):
        from_opacus(optimizer, print, data_loader=types.SimpleNamespace(batch_sampler=[]))
    with pytest.raises(TypeError, match="takes an accountant"):
        accountant_claim(3, 1e-5)
    optimizer.unclipped_num = 0
    with pytest.raises(TypeError, match=r"releases its clipping bound .* sample_steps"):
        from_opacus(optimizer)


def test_without_opacus_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opacus", None)
    monkeypatch.setitem(sys.modules, "opacus.accountants", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"step_claim needs opacus\.accountants.*pip install opacus"
    ):
        step_claim(1.0, 1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"delta": 0}, "gaussian_claim: delta must be above 0"),
        ({"delta": "x"}, r"delta must be a number in \[0, 1\)"),
        ({"sample_rate": 2}, r"step_claim: sample_rate must be a number in \(0, 1\], got 2"),
        ({"sample_rate": 0}, "step_claim: sample_rate must be"),
        ({"steps": 0}, "step_claim: steps must be a positive integer, got 0"),
        ({"steps": 1.5}, "step_claim: steps must be"),
        ({"accountant": "RDP"}, "step_claim: accountant must be one of 'rdp', 'prv', 'gdp', got 'RDP'"),
    ],
)
def test_odd_arguments_of_claims_are_named(changes, message):
    claim = gaussian_claim if "delta" in changes else step_claim
    with pytest.raises((TypeError, ValueError), match=message):
        claim(1.0, changes.pop("delta", 1e-5), **changes)


def test_an_accountant_that_has_seen_nothing_claims_nothing():
    class Accountant:
        def __init__(self, history):
            self.history = history

        def get_epsilon(self, delta):
            return 0.5

    assert accountant_claim(Accountant([(1.0, 0.5, 1)]), 1e-5) == PrivacyClaim(0.5, 1e-5)
    with pytest.raises(ValueError, match="Accountant has taken note of no step yet"):
        accountant_claim(Accountant([]), 1e-5)
    with pytest.raises(TypeError, match="takes an accountant"):
        accountant_claim(Accountant, 1e-5)
