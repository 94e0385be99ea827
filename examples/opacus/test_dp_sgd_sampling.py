"""One DP-SGD step of Opacus on a Poisson-sampled batch, under what its accountants claim for it."""

import pytest
from dp_sgd import ONE_MORE, PEOPLE, SIGMA, private
from opacus import PrivacyEngine

from pytest_snapaudit import PrivacyClaim, privacy_audit
from pytest_snapaudit.adapters.opacus import accountant_claim, from_opacus, gaussian_claim
from pytest_snapaudit.adapters.opacus_steps import sample_steps

DELTA = 1e-2  # at a delta this large 10,000 trials see whether a claim is tight

pytestmark = privacy_audit(n_trials=10_000)


@pytest.mark.parametrize(("mode", "accountant"), [("hooks", "rdp"), ("hooks", "prv"), ("ghost", "prv")])
def test_a_sampled_step(privacy_auditor, mode, accountant):
    optimizer, backward, loader = private(PEOPLE, batch_size=2, grad_sample_mode=mode)
    mechanism = from_opacus(optimizer, backward, data_loader=loader, delta=DELTA, accountant=accountant)
    assert mechanism.claim.epsilon < gaussian_claim(SIGMA, DELTA).epsilon
    privacy_auditor.check(mechanism, ONE_MORE)


def test_an_epsilon_asked_for(privacy_auditor):
    one_step = {"target_epsilon": 1.0, "target_delta": DELTA, "epochs": 0.5}  # an epoch is two steps
    few_orders = {"alphas": [1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32]}  # of Rényi divergence: valid, and quick
    optimizer, backward, loader = private(
        PEOPLE, batch_size=2, with_epsilon={**one_step, **few_orders}, engine=PrivacyEngine(accountant="rdp")
    )
    claim = PrivacyClaim(1.0, DELTA)
    privacy_auditor.check(from_opacus(optimizer, backward, data_loader=loader, claim=claim), ONE_MORE)


def test_whole_steps_with_the_claim_of_the_engine_s_own_accountant(privacy_auditor):
    """With 4 and with 5 records make_private samples at rate 1/2 and divides by 2."""
    engine = PrivacyEngine(accountant="rdp")
    optimizer, backward, loader = private(PEOPLE, engine=engine)
    backward(next(iter(loader)))
    optimizer.step()  # the accountant takes note of it
    claim = accountant_claim(engine.accountant, DELTA)
    privacy_auditor.check(sample_steps(private, claim=claim), ONE_MORE)
