"""Membership queries, what counts as an answer, and the AUC with its interval."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from scipy.stats import beta, binom

from dp_icl.probes import (
    STATISTICS,
    clean_statistic,
    inspection_prompt,
    membership_auc,
    membership_prompt,
    membership_scores,
)
from dp_icl.probes.queries import INSTRUCTIONS, halves

RUNS = 25 * int(os.environ.get("SNAPAUDIT_SEEDS", "10"))


class Copier:
    """Gives continuations that stand in the prompt's documents a high probability."""

    provenance = {"model": "copier"}  # noqa: RUF012

    def continuation_log_probabilities(self, prompts, continuations):
        return np.asarray(
            [
                -0.1 * len(end.split()) if end in prompt else -3.0 * len(end.split())
                for prompt, end in zip(prompts, continuations, strict=True)
            ]
        )


def test_a_model_that_copies_tells_contexts_with_the_canary_from_others():
    canary = "The ferry leaves from the wrong pier."
    present = membership_prompt("continuation", ["Fog.", canary], canary)
    absent = membership_prompt("continuation", ["Fog.", "A fox crossed the runway."], canary)
    assert present.continuations == (" the wrong pier.",)
    scores = membership_scores(Copier(), [present, absent])
    assert scores == pytest.approx([math.log(2) - 0.1, math.log(2) - 3.0])
    assert membership_scores(Copier(), []) == []


def test_a_question_scores_yes_against_no():
    class Agreeable:
        def continuation_log_probabilities(self, prompts, continuations):
            return np.asarray([{" Yes": -0.5, " No": -2.0}[end] for end in continuations])

    prompts = [membership_prompt(query, ["Fog."], "Fog.") for query in ("direct", "semantic")]
    assert membership_scores(Agreeable(), prompts) == [1.5, 1.5]


def test_defences_come_before_the_documents_and_inspection_after_the_answer():
    plain = membership_prompt("direct", ["Fog."], "Fog.").prompt
    assert plain.startswith('Document 1: "Fog."\n\nQuestion: ')
    for defence in ("basic", "strict"):
        defended = membership_prompt("direct", ["Fog."], "Fog.", defence=defence).prompt
        assert defended == INSTRUCTIONS[defence] + plain
    assert membership_prompt("direct", ["Fog."], "Fog.", defence="inspection").prompt == plain
    inspected = inspection_prompt("direct", "Fog.", "Yes").prompt
    assert 'The system answered: "Yes"' in inspected
    assert "Document 1" not in inspected


def test_halves_keep_every_character_and_both_have_words():
    assert halves("one two three") == ("one two", " three")
    assert halves("one two") == ("one", " two")
    for text in ("one", "one ", " one", ""):
        with pytest.raises(ValueError, match="at least two words"):
            halves(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("indirect", ["a"], "b c"), "query must be one of direct, semantic, continuation; got 'indirect'"),
        (("direct", ["a", ""], "b c"), r"documents\[1\] is empty"),
    ],
)
def test_queries_are_checked_at_the_door(arguments, message):
    with pytest.raises(ValueError, match=message):
        membership_prompt(*arguments)


def test_an_unknown_defence_is_refused():
    with pytest.raises(
        ValueError, match="defence must be one of none, basic, strict, inspection; got 'hard'"
    ):
        membership_prompt("direct", ["a"], "b c", defence="hard")


def test_statistics_of_clean_outputs():
    scores = [[2.0, -9.0, 1.0], [-1.0, -1.0, 30.0]]
    expected = {
        "voting": [2, 1],
        "product of experts": [-2, 3],
        "keywords": [2 / 3, 1 / 3],
        "embedding": [1, 0],
    }
    assert set(expected) == set(STATISTICS)
    for mechanism, values in expected.items():
        np.testing.assert_allclose(clean_statistic(mechanism, scores), values)
    with pytest.raises(ValueError, match=r"shape \(n, T\), got \(3,\)"):
        clean_statistic("voting", [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="mechanism must be one of voting"):
        clean_statistic("votes", scores)


def test_the_auc_counts_pairs_and_half_of_the_ties():
    assert membership_auc([3, 2], [1, 0]).auc == 1
    assert membership_auc([0, 1], [2, 3]).auc == 0
    assert membership_auc([1, 2], [1, 2]).auc == 0.5
    assert membership_auc([1, 3], [2]).auc == 0.5
    assert membership_auc([1, 1, 1], [1]).auc == 0.5
    assert membership_auc([np.inf, 0], [-np.inf, 0]).auc == 0.875


@pytest.mark.parametrize("method", ["exact", "delong"])
def test_turning_the_scores_round_turns_the_interval_round(method):
    rng = np.random.default_rng(0)
    ones, zeros = rng.normal(0.7, 1, 30), rng.normal(0, 1, 20)
    result = membership_auc(ones, zeros, method=method)
    mirrored = membership_auc(-ones, -zeros, method=method)
    assert result.lower <= result.auc <= result.upper
    assert (1 - mirrored.upper, 1 - mirrored.lower) == pytest.approx((result.lower, result.upper))
    assert result.sizes == (30, 20)


def test_a_perfect_attack_has_the_interval_of_clopper_and_pearson():
    result = membership_auc(np.arange(20) + 100, np.arange(25))
    assert (result.auc, result.upper) == (1, 1)
    assert result.lower == pytest.approx(beta.ppf(0.025, 20, 1))
    assert not result.at_chance
    assert str(result) == "1.00 [0.83, 1.00]"


def test_delong_agrees_with_the_variance_of_its_definition():
    rng = np.random.default_rng(1)
    ones, zeros = rng.normal(1, 1, 12), rng.normal(0, 1, 9)
    result = membership_auc(ones, zeros, method="delong")
    above = [np.mean([one > zero for zero in zeros]) for one in ones]
    below = [np.mean([one > zero for one in ones]) for zero in zeros]
    deviation = math.sqrt(np.var(above, ddof=1) / 12 + np.var(below, ddof=1) / 9)
    assert result.auc - result.lower == pytest.approx(1.959964 * deviation, rel=1e-6)
    assert membership_auc(ones, zeros).lower < result.lower


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("rounded", [False, True])
def test_the_exact_interval_misses_the_true_auc_no_more_often_than_it_says(shift, rounded):
    """Null (shift 0) and attacks; misses at 80 % confidence are at most binomial(runs, 0.2), with p < 1e-4 allowed."""
    rng = np.random.default_rng(int(10 * shift) + rounded)
    grid = np.round if rounded else np.asarray
    large = rng.normal(size=(2, 4_000))
    truth = membership_auc(grid(large[0] + shift), grid(large[1])).auc
    misses = 0
    for _ in range(RUNS):
        ones, zeros = rng.normal(size=(2, 20))
        result = membership_auc(grid(ones + shift), grid(zeros), confidence=0.8)
        misses += not result.lower <= truth <= result.upper
    assert misses <= binom.ppf(1 - 1e-4, RUNS, 0.2)


def test_delong_covers_an_attack_of_moderate_power_about_as_often_as_it_says():
    """AUC 0.76 with 40 contexts a side: at most 10 % misses at 95 %, with p < 1e-4 allowed."""
    rng = np.random.default_rng(3)
    truth, misses = 0.7602499, 0  # Φ(1 / √2)
    for _ in range(RUNS):
        result = membership_auc(rng.normal(1, 1, 40), rng.normal(0, 1, 40), method="delong")
        misses += not result.lower <= truth <= result.upper
    assert misses <= binom.ppf(1 - 1e-4, RUNS, 0.1)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([], [1.0]), {}, "present must be at least one score"),
        (([1.0], [math.nan]), {}, "absent must be at least one score"),
        (([1.0], [[1.0]]), {}, "absent must be at least one score"),
        (([1.0], [1.0]), {"confidence": 1.0}, r"confidence must lie in \(0, 1\), got 1.0"),
        (([1.0], [1.0]), {"method": "wald"}, "method must be one of exact, delong; got 'wald'"),
        (([1.0], [1.0, 2.0]), {"method": "delong"}, "delong needs two contexts a side"),
    ],
)
def test_scores_are_checked_at_the_door(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        membership_auc(*arguments, **options)


@pytest.mark.parametrize("clip", [0.0, -1.0, np.nan])
def test_clips_are_above_zero_and_scores_are_numbers(clip):
    with pytest.raises(ValueError, match="clip must be above 0"):
        clean_statistic("product of experts", [[1.0]], clip=clip)
    with pytest.raises(ValueError, match="without NaN"):
        clean_statistic("voting", [[np.nan]])
