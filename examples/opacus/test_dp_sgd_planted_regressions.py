"""What a change to Opacus could break: each regression is planted in a subclass and must be flagged."""

import pytest
import torch
from dp_sgd import BATCHES, BOUND, DELTA, ONE_MORE, PEOPLE, SIGMA, batch_of, private, record
from opacus.optimizers import DPOptimizer, DPPerLayerOptimizer
from opacus.optimizers.optimizer import _generate_noise

from pytest_snapaudit import PrivacyViolation, privacy_audit
from pytest_snapaudit.adapters.opacus import from_opacus, gaussian_claim, step_claim
from pytest_snapaudit.adapters.opacus_steps import sample_steps

pytestmark = [
    privacy_audit(n_trials=100_000),
    pytest.mark.xfail(strict=True, raises=PrivacyViolation),
]


def planted(kind):
    """The optimizer of ``make_private``, turned into one of another class."""
    per_layer = issubclass(kind, DPPerLayerOptimizer)
    settings = {"clipping": "per_layer", "max_grad_norm": [0.6 * BOUND, 0.8 * BOUND]} if per_layer else {}
    optimizer, backward, loader = private(PEOPLE, **settings)
    optimizer.__class__ = kind
    return optimizer, backward, loader


class HalfTheNoise(DPOptimizer):
    def add_noise(self):
        for p in self.params:
            noise = _generate_noise(self.noise_multiplier * self.max_grad_norm / 2, p.summed_grad)
            p.grad = (p.summed_grad + noise).view_as(p)


class SlightlyLessNoise(DPOptimizer):
    """3 % less."""

    def add_noise(self):
        for p in self.params:
            noise = _generate_noise(0.97 * self.noise_multiplier * self.max_grad_norm, p.summed_grad)
            p.grad = (p.summed_grad + noise).view_as(p)


class NoiseForTheFirstLayerOnly(DPOptimizer):
    def add_noise(self):
        for i, p in enumerate(self.params):
            std = self.noise_multiplier * self.max_grad_norm if i == 0 else 0.0
            p.grad = (p.summed_grad + _generate_noise(std, p.summed_grad)).view_as(p)


class NoiseForTheMean(DPOptimizer):
    """Noise for the mean gradient, added to the sum."""

    def add_noise(self):
        for p in self.params:
            std = self.noise_multiplier * self.max_grad_norm / self.expected_batch_size
            p.grad = (p.summed_grad + _generate_noise(std, p.summed_grad)).view_as(p)


class NoClipping(DPOptimizer):
    def clip_and_accumulate(self):
        for p in self.params:
            p.summed_grad = self._get_flat_grad_sample(p).sum(dim=0)


class ClippedAfterTheSum(DPOptimizer):
    """The batch is clipped as a whole, and then multiplied by its size."""

    def clip_and_accumulate(self):
        sums = [g.sum(dim=0) for g in self.grad_samples]
        norm = torch.cat([s.reshape(-1) for s in sums]).norm()
        size = len(self.grad_samples[0])
        for p, s in zip(self.params, sums, strict=True):
            p.summed_grad = s * size * (self.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)


class ClippedInTheMaximumNorm(DPOptimizer):
    """Every coordinate is within the bound; the Euclidean norm is not."""

    def clip_and_accumulate(self):
        for p in self.params:
            g = self._get_flat_grad_sample(p)
            p.summed_grad = g.clamp(-self.max_grad_norm, self.max_grad_norm).sum(dim=0)


class EveryLayerClippedToTheWholeBound(DPPerLayerOptimizer):
    def clip_and_accumulate(self):
        self.max_grad_norms = [self.max_grad_norm] * len(self.max_grad_norms)
        super().clip_and_accumulate()


@pytest.mark.parametrize(
    "kind",
    [
        HalfTheNoise,
        SlightlyLessNoise,
        NoiseForTheFirstLayerOnly,
        NoiseForTheMean,
        NoClipping,
        ClippedAfterTheSum,
        ClippedInTheMaximumNorm,
        EveryLayerClippedToTheWholeBound,
    ],
)
def test_a_step_on_a_batch(privacy_auditor, kind):
    optimizer, backward, _ = planted(kind)
    privacy_auditor.check(from_opacus(optimizer, backward, delta=DELTA), BATCHES)


class DividedByTheBatchSize(DPOptimizer):
    """The mean over the batch that was sampled, with the noise divided likewise."""

    def scale_grad(self):
        for p in self.params:
            p.grad /= max(len(self.grad_samples[0]), 1)


@privacy_audit(n_trials=10_000)
def test_a_mean_over_the_sampled_batch(privacy_auditor):
    def make(batch):
        del batch
        return (*planted(DividedByTheBatchSize)[:2], None)

    one = batch_of(PEOPLE[:1]), batch_of([*PEOPLE[:1], record((0.5, 0.0), 0.2)])
    privacy_auditor.check(sample_steps(make, claim=gaussian_claim(SIGMA, 1e-2)), one)


@privacy_audit(n_trials=10_000)
def test_half_the_noise_in_a_sampled_step(privacy_auditor):
    optimizer, backward, loader = planted(HalfTheNoise)
    mechanism = from_opacus(optimizer, backward, data_loader=loader, delta=1e-2)
    privacy_auditor.check(mechanism, ONE_MORE)


@privacy_audit(n_trials=10_000)
def test_a_fifth_of_the_sampling_rate_told_to_the_accountant(privacy_auditor):
    optimizer, backward, loader = private(PEOPLE)
    claim = step_claim(SIGMA, 1e-2, sample_rate=loader.sample_rate / 5, accountant="prv")
    privacy_auditor.check(from_opacus(optimizer, backward, data_loader=loader, claim=claim), ONE_MORE)


@privacy_audit(n_trials=10_000)
def test_records_that_are_replaced_under_a_claim_for_added_ones(privacy_auditor):
    """Opacus accounts for one record added or removed; a replaced one moves the sum twice as far."""
    optimizer, backward, _ = private(PEOPLE)
    replaced = batch_of([record((9.0, 9.0), 90.0)]), batch_of([record((9.0, 9.0), -90.0)])
    privacy_auditor.check(from_opacus(optimizer, backward, delta=DELTA), replaced)
