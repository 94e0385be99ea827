"""Embedding Space Aggregation: the mean embedding of the headlines that SmolLM2 wrote, one per partition.

The canary turns the headline of the first partition into another one, 1.52 away from it.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record import (
    DRIFT,
    MAX_PARTITIONS,
    RESPONSE_NEIGHBOURS,
    RecordCandidate,
    RecordEmbeddings,
    RecordResponses,
    candidate_inputs,
    embedding_inputs,
    response_inputs,
)
from texts import SIGNALS

from dp_icl import EmbeddingSpaceAggregation
from dp_icl.flawed import UnitSensitivityEmbeddingSpaceAggregation as UnitSensitivity
from pytest_snapaudit import PrivacyViolation, privacy_audit

BUDGETS = (1, 2, 4, 8, 16)
DELTA = 1e-5

# The claim is the mechanism's own; so are the views, black-box (the headline) and white-box (the noisy mean).
audited = privacy_audit(n_trials=20_000)
audited_often = privacy_audit(n_trials=10_000)
expected_violation = pytest.mark.xfail(
    strict=True, raises=PrivacyViolation, reason="the mean moves by up to 2/T"
)


@pytest.fixture(scope="module")
def headlines(privacy_auditor):
    return privacy_auditor.snapshot(
        "embedding_space_texts", RecordResponses(), RESPONSE_NEIGHBOURS, inputs=response_inputs(), size=1
    )


@pytest.fixture(scope="module")
def embeddings(privacy_auditor):
    return privacy_auditor.snapshot(
        "embedding_space",
        RecordEmbeddings(),
        RESPONSE_NEIGHBOURS,
        inputs=embedding_inputs(),
        size=1,
        tolerance=DRIFT,
    )


@pytest.fixture(scope="module")
def candidates(privacy_auditor):
    return privacy_auditor.snapshot(
        "embedding_space_candidates",
        RecordCandidate(),
        RESPONSE_NEIGHBOURS,
        inputs=candidate_inputs(),
        size=1,
        tolerance=DRIFT,
    )


def check(privacy_auditor, design, partitions, epsilon, embeddings, candidates):
    """Audit a design on the first T recorded partitions, aggregated by its own code."""
    either = np.concatenate([candidates.reference.rows, candidates.canary.rows])
    mechanism = design(partitions, epsilon, DELTA, candidates=either)
    privacy_auditor.check(mechanism, embeddings.map(lambda rows: mechanism.aggregate(rows[:partitions])))


def test_the_model_repeats_the_headline_it_was_shown(headlines):
    assert (headlines.reference.rows[0, 0], headlines.canary.rows[0, 0]) == SIGNALS


@audited
@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("partitions", [1, 4])
def test_sensitivity_2_over_t(privacy_auditor, embeddings, candidates, partitions, epsilon):
    check(privacy_auditor, EmbeddingSpaceAggregation, partitions, epsilon, embeddings, candidates)


@audited
@expected_violation
@pytest.mark.parametrize("epsilon", BUDGETS)
def test_sensitivity_1_with_one_partition(privacy_auditor, embeddings, candidates, epsilon):
    check(privacy_auditor, UnitSensitivity, 1, epsilon, embeddings, candidates)


any_configuration = given(partitions=st.integers(1, MAX_PARTITIONS), epsilon=st.sampled_from(BUDGETS))


@audited_often
@settings(max_examples=10)
@any_configuration
def test_sensitivity_2_over_t_everywhere(privacy_auditor, embeddings, candidates, partitions, epsilon):
    check(privacy_auditor, EmbeddingSpaceAggregation, partitions, epsilon, embeddings, candidates)


@audited_often
@expected_violation
@settings(max_examples=10, report_multiple_bugs=False)
@any_configuration
def test_sensitivity_1_everywhere(privacy_auditor, embeddings, candidates, partitions, epsilon):
    """Hypothesis finds the one number of partitions for which sensitivity 1 is too small."""
    check(privacy_auditor, UnitSensitivity, partitions, epsilon, embeddings, candidates)
