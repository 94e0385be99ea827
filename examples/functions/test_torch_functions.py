"""Plain PyTorch: a clipped sum with Gaussian noise, in the four forms that ``from_torch`` takes."""

import pytest
import torch

from pytest_snapaudit import PrivacyViolation, privacy_audit
from pytest_snapaudit.adapters.opacus import gaussian_claim
from pytest_snapaudit.adapters.torch import from_torch

CLAIM = gaussian_claim(1.0, 1e-2)
ONE_MORE = (torch.tensor([0.5, -0.5]), torch.tensor([0.5, -0.5, 30.0]))

pytestmark = privacy_audit(n_trials=20_000)


def one(values):
    return values.clamp(-1, 1).sum() + torch.randn(())


def many(values, n):
    return values.clamp(-1, 1).sum() + torch.randn(n)


def one_from(values, generator):
    return values.clamp(-1, 1).sum() + torch.randn((), generator=generator)


def many_from(values, n, generator):
    return values.clamp(-1, 1).sum() + torch.randn(n, generator=generator)


@pytest.mark.parametrize("fn", [one, many, one_from, many_from])
def test_a_clipped_sum(privacy_auditor, fn):
    result = privacy_auditor.check(from_torch(fn, claim=CLAIM), ONE_MORE)
    assert "two draws from one seed are equal" in dict(result.diagnostics)["reproducibility"]


def unclipped(values, n):
    return values.sum() + torch.randn(n)


def half_the_noise(values, n):
    return many(values, n) / 2 + values.clamp(-1, 1).sum() / 2


@pytest.mark.xfail(strict=True, raises=PrivacyViolation)
@pytest.mark.parametrize("fn", [unclipped, half_the_noise])
def test_a_planted_regression(privacy_auditor, fn):
    privacy_auditor.check(from_torch(fn, claim=CLAIM), ONE_MORE)


def test_an_object_that_adds_no_noise_is_refused(privacy_auditor):
    sgd = torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=0.1)
    with pytest.raises(TypeError, match="SGD adds no noise"):
        privacy_auditor.check(sgd, ONE_MORE, epsilon=1.0)
    privacy_auditor.check(from_torch(many, claim=CLAIM), ONE_MORE)
