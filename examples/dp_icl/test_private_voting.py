"""Private Voting: three partitions of the exemplars vote on the topic of a news text, as SmolLM2 answered.

The canary turns one vote from Sports to Science.
"""

import pytest
from record import VOTE_NEIGHBOURS, RecordVotes, vote_inputs
from texts import LABELS

from dp_icl import PrivateVoting
from dp_icl.flawed import ClassicalPrivateVoting
from pytest_snapaudit import PrivacyViolation, privacy_audit

# The claim is the mechanism's own; so are the views, black-box (the label) and white-box (the noisy counts).
pytestmark = privacy_audit(n_trials=50_000)

PARTITIONS, DELTA = 3, 1e-5


@pytest.fixture(scope="module")
def votes(privacy_auditor):
    return privacy_auditor.snapshot(
        "private_voting", RecordVotes(), VOTE_NEIGHBOURS, inputs=vote_inputs(), size=1
    )


@pytest.mark.parametrize("epsilon", [1, 2, 4, 8, 16])
def test_analytic_calibration(privacy_auditor, votes, epsilon):
    mechanism = PrivateVoting(LABELS, PARTITIONS, epsilon, DELTA)
    privacy_auditor.check(mechanism, votes.map(mechanism.aggregate))


@pytest.mark.xfail(strict=True, raises=PrivacyViolation, reason="the formula is proven for epsilon below 1")
def test_classical_calibration(privacy_auditor, votes):
    mechanism = ClassicalPrivateVoting(LABELS, PARTITIONS, 16, DELTA)
    privacy_auditor.check(mechanism, votes.map(mechanism.aggregate))
