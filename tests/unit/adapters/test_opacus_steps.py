"""Whole steps of an Opacus optimizer, on stand-ins for torch and for the optimizer."""

from __future__ import annotations

import numpy as np
import pytest
from torch_stand_in import DPOptimizer, Loader, PoissonSampler, tensor

from pytest_snapaudit import MechanismError, PrivacyClaim, Verdict, audit
from pytest_snapaudit.adapters.opacus import from_opacus, gaussian_claim, sample_steps

SMALL = np.array([[0.1, 0.2, -0.1], [0.0, -0.3, 0.2]])
PAIR = (SMALL, np.vstack([SMALL, [30.0, 0.0, 40.0]]))
RNG = np.random.default_rng


def setup(torch, *, kind=DPOptimizer, sample_rate=None, **settings):
    optimizer = kind(torch, **settings)

    def backward(batch):
        batch = np.asarray(batch)
        optimizer.params[0].grad_sample = tensor(batch[:, :2])
        optimizer.params[1].grad_sample = tensor(batch[:, 2])

    if sample_rate is None:
        return optimizer, backward, None
    return optimizer, backward, Loader(PoissonSampler(torch, 99, sample_rate, 2))


@pytest.mark.parametrize("batched", [True, False])
def test_a_step_clips_adds_noise_and_divides(torch, batched):
    steps = sample_steps(lambda dataset: setup(torch), batched=batched)
    outputs = steps.sample(PAIR[1], 2_000, RNG(0))
    assert outputs.shape == (2_000, 3)
    error = 6 * 0.25 / np.sqrt(2_000)  # 6 standard errors
    assert np.abs(outputs.mean(axis=0) - np.array([0.4, -0.1, 0.5]) / 2).max() < error
    assert np.abs(outputs.std(axis=0) - 0.25).max() < error
    again = sample_steps(lambda dataset: setup(torch, generator=None), batched=batched)
    assert again.sample(PAIR[1], 5, RNG(0)).shape == (5, 3)


def test_batches_are_sampled_and_put_together_in_the_order_of_the_trials(torch):
    steps = sample_steps(lambda dataset: setup(torch, sample_rate=0.5, noise_multiplier=1e-9))
    outputs = steps.sample(list(PAIR[1]), 64, RNG(0))
    torch.common.manual_seed(5)
    expected = np.array([[0.1, 0.2, -0.1], [0.0, -0.3, 0.2], [0.3, 0.0, 0.4]])
    sums = {tuple(np.round((np.array(mask) @ expected) / 2, 4)) for mask in np.ndindex(2, 2, 2)}
    assert {tuple(np.round(row, 4) + 0.0) for row in outputs.astype(float)} <= {
        tuple(np.array(s) + 0.0) for s in sums
    }
    assert (
        len(np.unique(np.round(outputs, 4), axis=0)) == 8
    )  # in the order of a counter, they would be sorted
    assert (np.diff([np.abs(row).sum() for row in outputs]) < 0).any()


class StopsOnEmptyBatches(DPOptimizer):
    def clip_and_accumulate(self):
        if len(self.params[0].grad_sample) == 0:
            raise RuntimeError("an empty batch")
        super().clip_and_accumulate()


@pytest.mark.parametrize("batched", [True, False])
def test_a_step_that_raises_is_a_row_of_nan_and_a_violation_if_it_tells(torch, batched):
    steps = sample_steps(
        lambda dataset: setup(torch, kind=StopsOnEmptyBatches, sample_rate=0.5, noise_multiplier=20.0),
        batched=batched,
    )
    records = list(PAIR[0][:1]), list(PAIR[0])
    outputs = steps.sample(records[0], 400, RNG(0))
    empty = np.isnan(outputs).all(axis=1)
    assert np.isnan(outputs).any(axis=1).tolist() == empty.tolist()
    assert abs(empty.mean() - 0.5) < 0.15  # 6 standard errors
    result = audit(steps, records, PrivacyClaim(0.1, 1e-2), n_trials=2_000)
    assert result.verdict is Verdict.VIOLATION  # 1 in 2 against 1 in 4


def test_if_every_step_raises_the_cause_is_shown(torch):
    steps = sample_steps(lambda dataset: setup(torch, kind=StopsOnEmptyBatches, sample_rate=0.0))
    with pytest.raises(MechanismError, match="an empty batch"):
        audit(steps, (list(PAIR[0]), list(PAIR[1])), PrivacyClaim(1.0), n_trials=1_000)


class Adaptive(DPOptimizer):
    """Moves its clipping bound up by its share of clipped records, at most once per step."""

    unclipped_num = 0

    def pre_step(self):
        assert self.max_grad_norm == 0.5
        stepped = super().pre_step()
        self.max_grad_norm = 0.75
        return stepped


def test_an_adaptive_bound_is_released_and_starts_anew_in_every_trial(torch):
    made = []

    def make(dataset):
        made.append(setup(torch, kind=Adaptive))
        return made[-1]

    outputs = sample_steps(make).sample(PAIR[1], 10, RNG(0))
    assert outputs.shape == (10, 4)
    assert (outputs[:, 3] == 0.75).all()
    assert made[-1][0].max_grad_norm == 0.5


def test_step_hooks_do_not_hear_of_trials_taken_together(torch):
    heard = []
    sample_steps(lambda dataset: setup(torch, step_hook=heard.append)).sample(PAIR[1], 10, RNG(0))
    assert heard == []


def test_an_expected_batch_size_that_follows_the_dataset_is_a_violation(torch):
    steps = sample_steps(lambda dataset: setup(torch, expected_batch_size=len(dataset)))
    claim = gaussian_claim(1.0, 1e-2)
    pair = PAIR[0][:1], PAIR[0]
    assert audit(steps, pair, claim, n_trials=20_000).verdict is Verdict.VIOLATION
    fixed = sample_steps(lambda dataset: setup(torch))
    assert audit(fixed, pair, claim, n_trials=20_000).verdict is Verdict.CONSISTENT


def test_models_that_start_differently_are_refused(torch):
    numbers = iter(range(9))

    def make(dataset):
        optimizer, backward, _ = setup(torch)
        optimizer.params[0][:] = next(numbers)
        return optimizer, backward, None

    with pytest.raises(
        MechanismError, match="other initial parameters than before; give it a copy of one model"
    ):
        audit(sample_steps(make), PAIR, PrivacyClaim(1.0), n_trials=1_000)


def test_arguments_are_checked(torch):
    with pytest.raises(TypeError, match="make must be a function of a dataset, got 3"):
        sample_steps(3)
    with pytest.raises(TypeError, match="sample_steps takes an optimizer"):
        sample_steps(lambda dataset: (3, None, None)).sample(PAIR[0], 2, RNG(0))
    claim = PrivacyClaim(1.0)
    named = sample_steps(lambda dataset: setup(torch), claim=claim, name="training")
    assert (named.name, named.claim) == ("training", claim)


class StepUndoesTheNoise(DPOptimizer):
    """Puts the clipped sum back before the wrapped optimizer steps."""

    def step(self):
        stepped = self.pre_step()
        for p in self.params:
            p.grad = p.summed_grad / self.expected_batch_size
        if stepped:
            self.original_optimizer.step()


@pytest.mark.parametrize("batched", [True, False])
def test_what_happens_in_step_itself_is_seen(torch, batched):
    steps = sample_steps(lambda dataset: setup(torch, kind=StepUndoesTheNoise), batched=batched)
    assert audit(steps, PAIR, gaussian_claim(1.0, 1e-2), n_trials=2_000).violated
    with pytest.raises(TypeError, match="StepUndoesTheNoise overrides step"):
        from_opacus(StepUndoesTheNoise(torch))


class Poisoned(StopsOnEmptyBatches):
    """A failure that is never got over."""

    poisoned = False

    def clip_and_accumulate(self):
        if self.poisoned:
            raise RuntimeError("still failing")
        type(self).poisoned = len(self.params[0].grad_sample) == 0
        super().clip_and_accumulate()


def test_a_failure_spoils_no_other_trial(torch):
    def make(dataset):
        Poisoned.poisoned = False
        return setup(torch, kind=Poisoned, sample_rate=0.5)

    outputs = sample_steps(make).sample(list(PAIR[0]), 400, RNG(0))
    assert abs(np.isnan(outputs).any(axis=1).mean() - 0.25) < 0.13  # 6 standard errors


def test_a_batch_that_fails_has_no_clean_sum(torch):
    optimizer, backward, loader = setup(torch, kind=StopsOnEmptyBatches, sample_rate=0.0)
    step = from_opacus(optimizer, backward, data_loader=loader)
    with pytest.raises(MechanismError, match="a step on a batch of 0 of the records raises RuntimeError"):
        step.clean_batch(list(PAIR[0]), 4, RNG(0))


def test_step_hooks_do_not_hear_of_single_trials_either(torch):
    heard = []
    steps = sample_steps(lambda dataset: setup(torch, step_hook=heard.append), batched=False)
    steps.sample(PAIR[1], 10, RNG(0))
    assert heard == []
