"""Attacks as objects: what they score, what they decide, and of what they say nothing."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from dp_icl import (
    EmbeddingSpaceAggregation,
    GumbelKeywordSpaceAggregation,
    JointExponential,
    KeywordSpaceAggregation,
    PrivateVoting,
    ProductOfExperts,
)
from dp_icl.attacks import (
    GaussianLikelihoodRatio,
    GumbelLikelihoodRatio,
    KeywordLikelihoodRatio,
    KeywordReleased,
    LabelReleased,
    Projection,
    TextSays,
)
from dp_icl.membership import membership_attacks
from pytest_snapaudit.engine.settings import validate_attacks

VOTING = PrivateVoting(("yes", "no"), 3, 2.0, 1e-5)
EXPERTS = ProductOfExperts(("yes", "no"), 2.0, 2.0)
SPACE = EmbeddingSpaceAggregation(1, 2.0, 1e-5, np.array([[3.0, 0.0], [0.0, 1.0], [0.0, -5.0]]))
WORDS = KeywordSpaceAggregation(("yes", "no", "maybe"), 8, 2, 2.0)
ONE_WORD = GumbelKeywordSpaceAggregation(("yes", "no"), 8, 2.0)
MECHANISMS = [
    (VOTING, [0, 3], [1, 2]),
    (EXPERTS, [-4.0, 0.0], [-2.0, -2.0]),
    (SPACE, [1.0, 0.0], [0.0, 1.0]),
    (WORDS, [0, 8, 1], [1, 7, 1]),
    (ONE_WORD, [0, 8], [1, 7]),
]


def released(mechanism, clean, n=3, seed=0):
    rng = np.random.default_rng(seed)
    noisy = mechanism.privatize(np.broadcast_to(np.asarray(clean), (n, len(clean))), rng)
    return noisy, mechanism.release(noisy, rng)


def test_a_label_is_released_or_not():
    attack = LabelReleased(1, "label 'no' released")
    assert attack(np.array([[0.0], [1.0], [2.0]])).tolist() == [0.0, 1.0, 0.0]
    assert attack.decide(np.array([0, 1, 1])).tolist() == [False, True, True]
    assert (attack.name, attack.view) == ("label 'no' released", "black-box")


def test_a_keyword_is_among_those_released():
    attack = KeywordReleased(4, 2)
    assert attack(np.array([[4, 0], [1, 4], [1, 2]])).tolist() == [1.0, 1.0, 0.0]


def test_a_phrase_is_in_an_answer():
    attack = TextSays("Yes, it does")
    said = [
        "I think: YES it does!",
        "yes",
        "does it? yes",
        "",
        np.str_("yes it does"),
        "yes it doesn't",
        None,
        3,
    ]
    assert attack(said).tolist() == [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert attack.decide(np.array(["yes it does", "no"])).tolist() == [True, False]
    with pytest.raises(ValueError, match="phrase must contain a word, got ' ,'"):
        TextSays(" ,")


def test_the_projection_is_a_place_on_a_line():
    attack = Projection([0.0, 0.0], [2.0, 0.0])
    assert attack(np.array([[0.0, 9.0], [2.0, -9.0], [1.0, 0.0]])).tolist() == [-0.5, 0.5, 0.0]
    assert attack.decide(np.array([[0.9, 0.0], [1.1, 0.0]])).tolist() == [False, True]


def test_the_gaussian_ratio_is_that_of_the_densities():
    rows = np.random.default_rng(0).normal(size=(50, 3))
    reference, canary, sigma = np.array([1.0, 2.0, 0.0]), np.array([0.0, 2.0, 1.0]), 0.7
    expected = stats.norm.logpdf(rows, canary, sigma).sum(1) - stats.norm.logpdf(rows, reference, sigma).sum(
        1
    )
    assert GaussianLikelihoodRatio(reference, canary, sigma)(rows) == pytest.approx(expected, abs=1e-12)
    assert np.corrcoef(Projection(reference, canary)(rows), expected)[0, 1] == pytest.approx(1.0, abs=1e-12)


def test_the_gumbel_ratio_is_that_of_the_densities():
    rows = np.random.default_rng(0).gumbel(size=(50, 3), scale=2.0)
    reference, canary = np.array([-1.0, -2.0, 0.0]), np.array([0.0, -2.0, -3.0])
    law = stats.gumbel_r
    expected = law.logpdf(rows, canary, 2.0).sum(1) - law.logpdf(rows, reference, 2.0).sum(1)
    assert GumbelLikelihoodRatio(reference, canary, 2.0)(rows) == pytest.approx(expected, abs=1e-12)


def test_the_keyword_ratio_is_that_of_the_laws():
    reference, canary = (JointExponential(counts, 2, 0.5) for counts in ([0, 8, 1], [1, 7, 1]))
    attack = KeywordLikelihoodRatio(reference, canary)
    sequences = np.array([[0, 1], [1, 0], [2, 1], [1, 2]])
    expected = canary.log_probability(sequences) - reference.log_probability(sequences)
    assert attack(sequences.astype(float)) == pytest.approx(expected, abs=1e-12)
    impossible = np.array([[-1.0, 0.0], [1.0, 1.0], [0.5, 1.0], [0.0, 3.0], [math.nan, 0.0]])
    assert attack(impossible).tolist() == [0.0] * 5


@pytest.mark.parametrize(("mechanism", "reference", "canary"), MECHANISMS, ids=lambda v: type(v).__name__)
def test_each_mechanism_has_one_attack_per_view(mechanism, reference, canary):
    attacks = membership_attacks(mechanism, reference, canary)
    assert [attack.view for attack in attacks.values()] == ["black-box", "white-box"]
    assert [attack.name for attack in attacks.values()] == list(attacks)
    assert len(validate_attacks(attacks)) == 2


@pytest.mark.parametrize(("mechanism", "reference", "canary"), MECHANISMS, ids=lambda v: type(v).__name__)
def test_an_attack_says_nothing_of_outputs_of_another_kind(mechanism, reference, canary):
    black, white = membership_attacks(mechanism, reference, canary).values()
    noisy, outputs = released(mechanism, canary)
    other = outputs if mechanism is not WORDS else outputs[:, :1]
    assert white(other).tolist() == [0.0] * 3
    if mechanism is not WORDS:
        assert black(noisy).tolist() == [0.0] * 3
    for attack in (black, white):
        assert attack(["yes", "no"]).tolist() == [0.0, 0.0]
        assert attack([[1.0], [1.0, 2.0]]).tolist() == [0.0, 0.0]
        assert not attack.decide(np.zeros((4, 7))).any()


def test_the_papers_black_box_attacks():
    names = [next(iter(membership_attacks(*each))) for each in MECHANISMS]
    assert names == [
        "label 'yes' released",
        "label 'yes' released",
        "candidate 1 released",
        "keyword 'yes' released",
        "keyword 'yes' released",
    ]


def test_candidates_are_compared_at_unit_length():
    """The long third candidate lies on the reference's side."""
    attacks = membership_attacks(SPACE, [0.0, -1.0], [0.0, 1.0])
    assert next(iter(attacks)) == "candidate 1 released"
    assert list(membership_attacks(EmbeddingSpaceAggregation(1, 1.0, 1e-5), [1.0], [-1.0])) == [
        "projection on the difference of the mean embeddings"
    ]


@pytest.mark.parametrize(("mechanism", "reference", "canary"), MECHANISMS, ids=lambda v: type(v).__name__)
def test_the_canary_is_decided_present_more_often_where_it_is(mechanism, reference, canary):
    n = 50_000
    for attack in membership_attacks(mechanism, reference, canary).values():
        rates = []
        for seed, clean in enumerate((reference, canary)):
            noisy, outputs = released(mechanism, clean, n, seed)
            rates.append(attack.decide(outputs if attack.view == "black-box" else noisy).mean())
        # difference of two proportions, beyond a z bound of 4.9 for equal ones
        pooled = sum(rates) / 2
        assert rates[1] - rates[0] > 4.9 * math.sqrt(2 * pooled * (1 - pooled) / n)


@pytest.mark.parametrize(
    ("mechanism", "reference", "canary", "error", "message"),
    [
        (VOTING, [0, 3, 0], [1, 2], ValueError, r"reference must be a clean output of PrivateVoting"),
        (
            VOTING,
            [0, 3],
            [1, math.nan],
            ValueError,
            r"canary must be .* finite, of shape \(2,\), got shape \(2,\)",
        ),
        (VOTING, [0, 3], [0, 3], ValueError, "same clean output"),
        (WORDS, [0, 3], [0, 4], ValueError, r"of shape \(3,\)"),
        (SPACE, [1.0], [0.0], ValueError, r"of shape \(2,\)"),
        (object(), [0, 3], [1, 2], TypeError, "mechanism must be PrivateVoting, .* got object"),
    ],
)
def test_what_cannot_be_attacked_is_named(mechanism, reference, canary, error, message):
    with pytest.raises(error, match=message):
        membership_attacks(mechanism, reference, canary)


@pytest.mark.parametrize(
    ("reference", "canary"), [([0.0], [0.0]), ([0.0], [0.0, 1.0]), ([math.inf], [0.0]), ([[0.0]], [[1.0]])]
)
def test_clean_outputs_are_two_different_finite_vectors(reference, canary):
    with pytest.raises(ValueError, match="clean output"):
        Projection(reference, canary)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf])
def test_scales_are_checked(scale):
    with pytest.raises(ValueError, match="sigma must be a finite number above 0"):
        GaussianLikelihoodRatio([0.0], [1.0], scale)
    with pytest.raises(ValueError, match="scale must be a finite number above 0"):
        GumbelLikelihoodRatio([0.0], [1.0], scale)


def test_attacks_cross_process_boundaries():
    for mechanism, reference, canary in MECHANISMS:
        noisy, outputs = released(mechanism, canary)
        for attack in membership_attacks(mechanism, reference, canary).values():
            given = outputs if attack.view == "black-box" else noisy
            again = pickle.loads(pickle.dumps(attack))
            assert again(given).tolist() == attack(given).tolist()


@pytest.mark.parametrize("index", [-1, 0.5, math.nan, "yes", True, None])
def test_labels_and_tokens_are_indices(index):
    with pytest.raises(ValueError, match="index must be an integer of at least 0, got "):
        LabelReleased(index)
    with pytest.raises(ValueError, match="token must be an integer of at least 0, got "):
        KeywordReleased(index)
    with pytest.raises(ValueError, match="keywords must be an integer of at least 1, got 0"):
        KeywordReleased(0, 0)


def test_gumbel_noise_far_from_the_reference_looks_like_the_canary():
    attack = GumbelLikelihoodRatio(np.array([-2000.0, 1.0]), np.array([-1.0, 1.0]), 1.0)
    outputs = np.array([[-1.0, 1.0], [-2000.0, 1.0], [5.0, -800.0]])
    scores = attack(outputs)
    assert not np.isnan(scores).any()
    np.testing.assert_array_equal(attack.decide(outputs), [True, False, True])
    assert scores[0] == pytest.approx(1999.0 - 1.0)


@pytest.mark.parametrize("length", [1e200, 1e-200])
def test_the_candidate_of_the_canary_is_found_whatever_the_length_of_candidates(length):
    candidates = np.array([[0.0, 1.0], [1.0, 0.0]]) * length
    mechanism = EmbeddingSpaceAggregation(1, 1.0, 1e-5, candidates=candidates)
    attacks = membership_attacks(mechanism, [0.0, 1.0], [1.0, 0.0])
    assert "candidate 1 released" in attacks
