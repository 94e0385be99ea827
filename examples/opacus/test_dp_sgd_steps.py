"""One DP-SGD step of Opacus on a given batch: the clipped gradient sum and the noise the optimizer adds."""

import math

import numpy as np
import pytest
import torch
from dp_sgd import BATCHES, BOUND, DELTA, PEOPLE, SIGMA, private
from opacus.optimizers import DPOptimizer

from pytest_snapaudit import privacy_audit
from pytest_snapaudit.adapters.opacus import from_opacus, gaussian_claim

CLAIM = gaussian_claim(SIGMA, DELTA)
TWO_LAYERS = [0.6 * BOUND, 0.8 * BOUND]  # together BOUND, in the Euclidean norm

pytestmark = privacy_audit(n_trials=100_000)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="flat clipping"),
        pytest.param({"clipping": "per_layer", "max_grad_norm": TWO_LAYERS}, id="per-layer clipping"),
        pytest.param({"grad_sample_mode": "ghost"}, id="ghost clipping"),
        pytest.param({"grad_sample_mode": "functorch"}, id="per-sample gradients by functorch"),
        pytest.param(
            {"loss_reduction": "sum", "criterion": torch.nn.MSELoss(reduction="sum")}, id="summed loss"
        ),
        pytest.param({"noise_generator": torch.Generator().manual_seed(1)}, id="noise generator of its own"),
    ],
)
def test_a_step_on_a_batch(privacy_auditor, settings):
    optimizer, backward, _ = private(PEOPLE, **settings)
    result = privacy_auditor.check(from_opacus(optimizer, backward, delta=DELTA), BATCHES)
    assert result.epsilon_lower > 0.98 * CLAIM.epsilon  # the outlier costs what the claim allows
    assert "two draws from one seed are equal" in dict(result.diagnostics)["reproducibility"]


@privacy_audit(n_trials=2_000)
def test_one_call_of_add_noise_per_trial(privacy_auditor):
    """On parameters of their own shape; the noise is that of trials drawn together."""
    optimizer, backward, _ = private(PEOPLE)
    step = from_opacus(optimizer, backward, delta=DELTA, batched=False)
    noise = step.privatize(np.zeros((4_000, 3), np.float32), np.random.default_rng(0))
    assert noise.std(axis=0) == pytest.approx(
        [SIGMA * BOUND] * 3, rel=6 / math.sqrt(2 * 4_000)
    )  # 6 standard errors
    privacy_auditor.check(step, BATCHES)


def test_an_optimizer_as_it_is_on_per_sample_gradients(privacy_auditor):
    optimizer, _, _ = private(PEOPLE)
    gradients = torch.tensor([[0.1, 0.2, -0.1], [0.0, -0.3, 0.2], [300.0, 300.0, 300.0]])
    privacy_auditor.check(optimizer, (gradients[:2], gradients), epsilon=CLAIM.epsilon, delta=DELTA)


def test_a_step_accumulated_over_two_physical_batches(privacy_auditor):
    optimizer, backward, _ = private(PEOPLE)

    def in_two_parts(batch):
        inputs, wanted = batch
        backward((inputs[:2], wanted[:2]))
        optimizer.signal_skip_step()
        optimizer.step()
        optimizer.zero_grad()
        backward((inputs[2:], wanted[2:]))

    privacy_auditor.check(from_opacus(optimizer, in_two_parts, delta=DELTA), BATCHES)


def secure_optimizer(generator):
    parameters = [torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(()))]
    return DPOptimizer(
        torch.optim.SGD(parameters, lr=0.1),
        noise_multiplier=SIGMA,
        max_grad_norm=BOUND,
        expected_batch_size=2,
        generator=generator,
        secure_mode=True,
    )


GRADIENTS = ([[0.1, 0.2, -0.1], [0.0, -0.3, 0.2]], [[0.1, 0.2, -0.1], [0.0, -0.3, 0.2], [9.0, 9.0, 9.0]])


def test_the_noise_of_secure_mode(privacy_auditor):
    """Four draws are added up and halved; here they come from torch's global generator."""
    privacy_auditor.check(from_opacus(secure_optimizer(None), delta=DELTA), GRADIENTS)


def test_the_noise_of_a_secure_generator_is_not_repeated_by_a_seed(privacy_auditor):
    """A generator seeded by the operating system, as in secure mode: the audit leaves it alone and says so."""
    generator = torch.Generator()
    generator.seed()
    result = privacy_auditor.check(from_opacus(secure_optimizer(generator), delta=DELTA), GRADIENTS)
    assert "differ" in dict(result.diagnostics)["reproducibility"]
