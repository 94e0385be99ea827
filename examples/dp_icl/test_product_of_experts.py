"""Product of Experts: eight experts, each shown one news text, say how probable SmolLM2 finds every topic.

The canary turns the topic shown to the first expert from Sports to Science.
"""

import pytest
from record import EXPERT_NEIGHBOURS, LOG_DRIFT, RecordLogProbabilities, vote_inputs
from texts import LABELS

from dp_icl import ProductOfExperts
from dp_icl.flawed import HalfScaleProductOfExperts, UnclippedProductOfExperts
from pytest_snapaudit import PrivacyViolation, privacy_audit

# The claim is the mechanism's own; so is the view, black-box (the label). The noisy utilities are not private.
pytestmark = privacy_audit(n_trials=50_000)

CLIP = 1.0


def expected_violation(reason):
    return pytest.mark.xfail(strict=True, raises=PrivacyViolation, reason=reason)


@pytest.fixture(scope="module")
def experts(privacy_auditor):
    return privacy_auditor.snapshot(
        "product_of_experts",
        RecordLogProbabilities(),
        EXPERT_NEIGHBOURS,
        inputs=vote_inputs(EXPERT_NEIGHBOURS),
        size=1,
        tolerance=LOG_DRIFT,
    )


@pytest.mark.parametrize("epsilon", [1, 4])
def test_scale_of_twice_the_clip(privacy_auditor, experts, epsilon):
    mechanism = ProductOfExperts(LABELS, epsilon, CLIP)
    privacy_auditor.check(mechanism, experts.map(mechanism.aggregate))


def test_the_noisy_utilities_show_more_than_the_label(privacy_auditor, experts):
    mechanism = ProductOfExperts(LABELS, 2, CLIP)
    pair = experts.map(mechanism.aggregate)
    privacy_auditor.check(mechanism, pair)
    noisy = privacy_auditor.measure(mechanism, pair, views={"white-box"})
    assert noisy.epsilon_lower > mechanism.epsilon


@expected_violation("a replaced exemplar raises one utility and lowers another")
def test_scale_of_the_clip(privacy_auditor, experts):
    mechanism = HalfScaleProductOfExperts(LABELS, 2, CLIP)
    privacy_auditor.check(mechanism, experts.map(mechanism.aggregate))


@expected_violation("nothing bounds what one exemplar adds")
def test_without_clipping(privacy_auditor, experts):
    mechanism = UnclippedProductOfExperts(LABELS, 0.5, CLIP)
    privacy_auditor.check(mechanism, experts.map(mechanism.aggregate))
