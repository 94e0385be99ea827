"""Keyword Space Aggregation: words that SmolLM2 used in its headlines, one headline per partition, drawn at random.

Each record is one editor's headline for the same news. The canary replaces the headline of the first editor, and with
it most of the words that the first partition says.
"""

import pytest
from record import (
    EDITOR_NEIGHBOURS,
    WORD_PAIRS,
    RecordResponses,
    RecordWritten,
    response_inputs,
    written_inputs,
)
from texts import CANARY_TEXT, KEYWORDS

from dp_icl import KeywordSpaceAggregation, RecordedAnswers
from dp_icl.flawed import (
    RepeatCountingKeywordSpaceAggregation,
    ResponseDomainKeywordSpaceAggregation,
    UnitSensitivityKeywordSpaceAggregation,
)
from pytest_snapaudit import PrivacyViolation, privacy_audit

# The claim is the mechanism's own; so are the views, black-box (the set of words) and white-box (the order drawn).
pytestmark = privacy_audit(n_trials=20_000)


def expected_violation(reason):
    return pytest.mark.xfail(strict=True, raises=PrivacyViolation, reason=reason)


@pytest.fixture(scope="module")
def headlines(privacy_auditor):
    return privacy_auditor.snapshot(
        "keyword_space",
        RecordResponses(),
        EDITOR_NEIGHBOURS,
        inputs=response_inputs(EDITOR_NEIGHBOURS),
        size=1,
    )


@pytest.fixture(scope="module")
def written(privacy_auditor):
    """What the model makes of each pair of words; it sees no record, so both sides are alike."""
    pair = privacy_auditor.snapshot(
        "keyword_space_answers", RecordWritten(), (WORD_PAIRS, WORD_PAIRS), inputs=written_inputs(), size=1
    )
    return RecordedAnswers(CANARY_TEXT, dict(zip(WORD_PAIRS, pair.reference.rows[0].tolist(), strict=True)))


def check(privacy_auditor, mechanism, headlines):
    """Audit a mechanism on the first T recorded partitions, counted by its own code."""
    pair = headlines.map(lambda rows: mechanism.aggregate(rows[: mechanism.partitions]))
    privacy_auditor.check(mechanism, pair)


@pytest.mark.parametrize(
    ("partitions", "keywords", "epsilon"), [(3, 1, 1), (3, 1, 4), (3, 2, 4), (8, 2, 1), (8, 2, 4)]
)
def test_texts_that_have_a_word(privacy_auditor, headlines, partitions, keywords, epsilon):
    check(privacy_auditor, KeywordSpaceAggregation(KEYWORDS, partitions, keywords, epsilon), headlines)


def test_headlines_made_of_the_words(privacy_auditor, headlines, written):
    class Headlines(KeywordSpaceAggregation):
        """The black-box view is the final text."""

        def release(self, drawn, rng):
            return self.answer(drawn, CANARY_TEXT)

    check(privacy_auditor, Headlines(KEYWORDS, 3, 2, epsilon=2, writer=written), headlines)


@expected_violation("a replaced text moves two places of a sequence in opposite directions")
def test_the_rate_of_the_papers_for_two_words(privacy_auditor, headlines):
    check(privacy_auditor, UnitSensitivityKeywordSpaceAggregation(KEYWORDS, 3, 2, epsilon=4), headlines)


@expected_violation("one text that says a word three times has three votes")
def test_how_often_texts_say_a_word(privacy_auditor, headlines):
    mechanism = RepeatCountingKeywordSpaceAggregation(KEYWORDS, 3, 1, epsilon=4, max_repeats=4)
    check(privacy_auditor, mechanism, headlines)


@expected_violation("a word that one partition alone says is drawn with it and never without it")
def test_a_vocabulary_read_from_the_texts(privacy_auditor, headlines):
    check(privacy_auditor, ResponseDomainKeywordSpaceAggregation(KEYWORDS, 8, 2, epsilon=1), headlines)
