"""The joint exponential mechanism: its law against brute force, its sampler, its privacy."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dp_icl import JointExponential, joint_exponential, loss_spread, privacy_loss

RNG = np.random.default_rng(0)

SMALL = [
    pytest.param([7, 1], 1, id="two tokens"),
    pytest.param([5, 3, 3, 0], 2, id="a tie in the middle"),
    pytest.param([4, 4, 4, 1, 0], 3, id="a tie at the top"),
    pytest.param([3, 1, 2], 3, id="all tokens"),
    pytest.param([2, 0, 2, 0], 4, id="all tokens, two ties"),
    pytest.param([0, 0, 0, 0], 2, id="no counts"),
    pytest.param([0, 0, 0], 3, id="no counts, all tokens"),
    pytest.param([4], 1, id="one token"),
    pytest.param([9, 0, 0, 0, 0, 0], 1, id="one keyword"),
    pytest.param([0, 5, 1, 4, 8], 4, id="all different"),
]


def sequences(tokens, keywords):
    return np.array(list(itertools.permutations(range(tokens), keywords)))


def brute_losses(counts, rows):
    """Losses by their definition: (..., V) counts and (q, K) sequences to (..., q)."""
    counts = np.asarray(counts)
    ranked = -np.sort(-counts, axis=-1)[..., : rows.shape[1]]
    return (ranked[..., None, :] - counts[..., rows]).max(axis=-1)


def brute_log_probabilities(counts, rows, rate):
    weights = -rate * brute_losses(counts, rows)
    return weights - np.logaddexp.reduce(weights)


@pytest.mark.parametrize("rate", [0.0, 0.1, 1.0, 16.0])
@pytest.mark.parametrize(("counts", "keywords"), SMALL)
def test_probabilities_are_those_of_the_definition(counts, keywords, rate):
    law, rows = JointExponential(counts, keywords, rate), sequences(len(counts), keywords)
    expected = brute_log_probabilities(counts, rows, rate)
    np.testing.assert_allclose(law.log_probability(rows), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(law.loss(rows), brute_losses(counts, rows))


@settings(max_examples=25)
@given(data=st.data(), rate=st.floats(0, 40))
def test_probabilities_add_up_to_one(data, rate):
    counts = data.draw(st.lists(st.integers(-3, 70), min_size=1, max_size=6))
    keywords = data.draw(st.integers(1, len(counts)))
    law = JointExponential(counts, keywords, rate)
    rows = sequences(len(counts), keywords)
    assert np.exp(law.log_probability(rows)).sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_equal(law.loss(rows), brute_losses(counts, rows))


@pytest.mark.parametrize(("counts", "keywords"), SMALL)
def test_sizes_count_the_sequences_within_each_loss(counts, keywords):
    law = JointExponential(counts, keywords, 1.0)
    losses = brute_losses(counts, sequences(len(counts), keywords))
    assert set(losses) <= set(law.losses)
    sizes = [(losses <= loss).sum() for loss in law.losses]
    np.testing.assert_allclose(np.exp(law.log_sizes), sizes, rtol=1e-12)


def chi_square_p_value(law, drawn):
    """Of draws against the exact law, rare sequences pooled until 5 are expected."""
    rows = sequences(len(law.counts), law.keywords)
    expected = np.exp(law.log_probability(rows)) * len(drawn)
    base = len(law.counts) ** np.arange(law.keywords)
    counts = np.bincount(drawn @ base, minlength=base[-1] * len(law.counts))[rows @ base]
    assert counts.sum() == len(drawn)
    order = np.argsort(expected)
    pooled = np.searchsorted(np.cumsum(expected[order]), 5.0) + 1
    observed = np.append(counts[order[:pooled]].sum(), counts[order[pooled:]])
    expected = np.append(expected[order[:pooled]].sum(), expected[order[pooled:]])
    return stats.chisquare(observed, expected).pvalue if len(observed) > 1 else 1.0


@pytest.mark.parametrize("rate", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("counts", "keywords"), SMALL)
def test_draws_follow_the_law(counts, keywords, rate):
    """Here and below, 40 tests at level 1e-6: a correct sampler fails with probability below 1e-4; fixed seeds."""
    law = JointExponential(counts, keywords, rate)
    drawn = law.sample(20_000, np.random.default_rng(1))
    assert drawn.shape == (20_000, keywords)
    assert drawn.dtype == np.intp
    assert chi_square_p_value(law, drawn) > 1e-6


@pytest.mark.parametrize(("counts", "keywords"), SMALL)
def test_draws_made_one_by_one_follow_the_law(counts, keywords, monkeypatch):
    monkeypatch.setattr(joint_exponential, "_MOST_INSERTED", 0)
    law = JointExponential(counts, keywords, 0.5)
    assert chi_square_p_value(law, law.sample(2_000, np.random.default_rng(1))) > 1e-6


def test_the_test_of_the_law_notices_another_rate_and_another_order():
    law = JointExponential([5, 3, 3, 0], 2, 0.5)
    drawn = law.sample(20_000, np.random.default_rng(1))
    assert chi_square_p_value(JointExponential(law.counts, 2, 0.55), drawn) < 1e-6
    assert chi_square_p_value(law, drawn[:, ::-1]) < 1e-6


def test_rare_bounds_are_drawn_as_often_as_they_should():
    law, n = JointExponential([10, 0], 1, 0.9), 400_000
    hits = int((law.sample(n, np.random.default_rng(2)) == 1).sum())
    p = 1 / (1 + math.exp(9))
    assert stats.binom.ppf(5e-7, n, p) <= hits <= stats.binom.ppf(1 - 5e-7, n, p)


def exact_log_normaliser(counts, keywords, rate):
    """In 60 digits, from whole numbers of sequences."""
    with mpmath.workdps(60):
        ranked = np.sort(counts)[::-1].tolist()
        tails = {value: int((counts >= value).sum()) for value in range(-1, ranked[0] + 1)}
        total, before = mpmath.mpf(0), 0
        for loss in range(ranked[0] - ranked[-1] + 1):
            size = math.prod(tails[max(ranked[i] - loss, -1)] - i for i in range(keywords))
            total += (size - before) * mpmath.exp(-mpmath.mpf(rate) * loss)
            before = size
        return float(mpmath.log(total))


@pytest.mark.parametrize("rate", [0.025, 1.0, 8.0, 16.0])
@pytest.mark.parametrize("keywords", [1, 2, 10, 100])
def test_large_vocabularies_large_epsilon_and_64_partitions_keep_their_digits(keywords, rate):
    rng = np.random.default_rng(3)
    counts = rng.binomial(64, rng.beta(0.05, 2, 100_000))
    law = JointExponential(counts, keywords, rate)
    assert law.log_normaliser == pytest.approx(exact_log_normaliser(counts, keywords, rate), abs=1e-8)
    drawn = law.sample(50, rng)
    assert np.isfinite(law.log_probability(drawn)).all()  # different tokens within each row, too


def test_more_keywords_than_are_drawn_at_once():
    counts = np.repeat([9, 4, 0], [50, 100, 200])
    law = JointExponential(counts, 350, 200.0)
    (drawn,) = law.sample(1, np.random.default_rng(4))
    assert sorted(drawn) == list(range(350))
    assert (np.diff(counts[drawn]) <= 0).all()  # at this rate nothing but a loss of 0 is ever drawn
    assert (drawn[:50] != np.arange(50)).any()


def test_no_draws_have_the_shape_of_draws():
    assert JointExponential([1, 0, 2], 2, 1.0).sample(0, RNG).shape == (0, 2)
    assert JointExponential(np.zeros(200), 150, 1.0).sample(0, RNG).shape == (0, 150)


def neighbouring_histograms(tokens, responses, adjacency):
    """Every pair of histograms that one response separates, by blocks: (n, V) and (n, V)."""
    texts = np.array(list(itertools.product((0, 1), repeat=tokens)))
    others = np.array(list(itertools.product(range(responses), repeat=tokens)))
    for text in texts:
        for another in texts if adjacency == "replace-one" else np.zeros((1, tokens), int):
            yield others + text, others + another


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("responses", [1, 2, 3])
@pytest.mark.parametrize(("tokens", "keywords"), [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2), (4, 3)])
def test_the_spread_is_that_of_all_neighbouring_histograms(tokens, keywords, responses, adjacency):
    rows = sequences(tokens, keywords)
    widest = 0
    for first, second in neighbouring_histograms(tokens, responses, adjacency):
        moved = brute_losses(second, rows) - brute_losses(first, rows)
        widest = max(widest, int((moved.max(axis=1) - moved.min(axis=1)).max()))
    assert loss_spread(keywords, tokens, responses, adjacency) == widest


def test_the_spread_of_more_partitions_and_tokens_stays():
    assert {loss_spread(1, tokens, t) for tokens in (1, 2, 9, 10**5) for t in (1, 2, 3, 64)} == {2}
    assert {loss_spread(k, tokens, t) for tokens in (10, 10**5) for k in (2, 10) for t in (3, 64)} == {4}
    assert loss_spread(2, 10**5, 64, "add-remove") == 2
    assert loss_spread(1, 10**5, 64, "add-remove") == 1


@settings(max_examples=25)
@given(data=st.data(), rate=st.floats(0, 20))
def test_the_privacy_loss_is_the_largest_ratio_of_probabilities(data, rate):
    tokens = data.draw(st.integers(1, 6))
    keywords = data.draw(st.integers(1, tokens))
    counts = st.lists(st.integers(0, 6), min_size=tokens, max_size=tokens)
    first, second = (JointExponential(data.draw(counts), keywords, rate) for _ in range(2))
    rows = sequences(tokens, keywords)
    ratios = first.log_probability(rows) - second.log_probability(rows)
    assert privacy_loss(first, second) == pytest.approx(np.abs(ratios).max(), rel=1e-9, abs=1e-9)
    assert privacy_loss(second, first) == pytest.approx(privacy_loss(first, second), rel=1e-9, abs=1e-9)


@settings(max_examples=25)
@given(data=st.data())
def test_a_rate_of_epsilon_over_the_spread_keeps_the_claim(data):
    tokens, responses = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 12))
    keywords = data.draw(st.integers(1, tokens))
    adjacency = data.draw(st.sampled_from(["replace-one", "add-remove"]))
    epsilon = data.draw(st.sampled_from([0.5, 2.0, 8.0, 32.0]))
    texts = st.lists(st.integers(0, 1), min_size=tokens, max_size=tokens)
    others = np.array(
        data.draw(st.lists(st.integers(0, responses - 1), min_size=tokens, max_size=tokens)), int
    )
    rate = epsilon / loss_spread(keywords, tokens, responses, adjacency)
    after = data.draw(texts) if adjacency == "replace-one" else np.zeros(tokens, int)
    first = JointExponential(others + data.draw(texts), keywords, rate)
    second = JointExponential(others + after, keywords, rate)
    assert privacy_loss(first, second) <= epsilon * (1 + 1e-9)


def worst_pair(tokens, partitions=8):
    """Most sequences get better by 2 where the first place falls; one gets worse by 2."""
    first, second = np.zeros(tokens, int), np.ones(tokens, int)
    first[:3] = partitions, 1, 1
    second[:3] = partitions - 1, 2, 0
    return first, second


@pytest.mark.parametrize("keywords", [2, 3, 10])
def test_the_rate_of_the_papers_loses_twice_the_claim_on_large_vocabularies(keywords):
    sides = [JointExponential(counts, keywords, 0.5) for counts in worst_pair(100_000)]
    assert privacy_loss(*sides) == pytest.approx(2.0, rel=1e-3)
    halved = [JointExponential(counts, keywords, 0.25) for counts in worst_pair(100_000)]
    assert 0.99 < privacy_loss(*halved) <= 1


def test_the_papers_figures_for_one_keyword():
    """Counts 1:7 against 0:8 of yes and no: 0.97 and 2.00 exactly, the printed bounds 0.92 and 1.85."""
    for epsilon, exact in ((1, 0.9696), (2, 1.9979)):
        sides = [JointExponential(counts, 1, epsilon / 2) for counts in ([7, 1], [8, 0])]
        assert privacy_loss(*sides) == pytest.approx(exact, abs=1e-4)


def test_the_privacy_loss_needs_comparable_sides():
    first = JointExponential([1, 0, 0], 2, 1.0)
    for other in (([1, 0], 2, 1.0), ([1, 0, 0], 1, 1.0), ([1, 0, 0], 2, 2.0)):
        with pytest.raises(ValueError, match="same tokens, keywords and rate"):
            privacy_loss(first, JointExponential(*other))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float32", "float64"])
def test_counts_may_have_any_numeric_type(dtype):
    law = JointExponential(np.array([5, 0, 3], dtype), 2, 1.0)
    assert law.counts.tolist() == [5, 0, 3]
    assert law.counts.dtype == np.int64
    assert not law.counts.flags.writeable


def test_far_apart_counts_are_sorted_all_the_same():
    law = JointExponential([0, 10**12, -5, 10**12], 2, 1e-12)
    rows = sequences(4, 2)
    np.testing.assert_array_equal(law.loss(rows), brute_losses(law.counts, rows))
    assert np.exp(law.log_probability(rows)).sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0.5, 1], 1, 1.0), ValueError, r"counts must be whole numbers .* got .*0\.5"),
        (([math.nan, 1], 1, 1.0), ValueError, "counts must be whole numbers .* got .*nan"),
        (([math.inf, 1], 1, 1.0), ValueError, "counts must be whole numbers .* got .*inf"),
        (([2**60, 1], 1, 1.0), ValueError, r"at most 2\*\*53"),
        ((["a", "b"], 1, 1.0), TypeError, "counts must be whole numbers, got dtype <U1"),
        (([True, False], 1, 1.0), TypeError, "counts must be whole numbers, got dtype bool"),
        (([], 1, 1.0), ValueError, r"shape \(V,\) with V at least 1, got shape \(0,\)"),
        (([[1, 2]], 1, 1.0), ValueError, r"got shape \(1, 2\)"),
        (
            ([1, 2], 0, 1.0),
            ValueError,
            "keywords must be an integer from 1 to the number of tokens, 2, got 0",
        ),
        (([1, 2], 3, 1.0), ValueError, "from 1 to the number of tokens, 2, got 3"),
        (([1, 2], 1.0, 1.0), TypeError, r"got 1\.0 of type float"),
        (([1, 2], True, 1.0), TypeError, "got True of type bool"),
        (([1, 2], 1, -1.0), ValueError, r"rate must be a finite number of at least 0, got -1\.0"),
        (([1, 2], 1, math.inf), ValueError, "rate must be .* got inf"),
        (([1, 2], 1, "1"), TypeError, "rate must be a real number, got '1'"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        JointExponential(*arguments)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([[0.0, 1.0]], TypeError, "item indices, got dtype float64"),
        ([0, 1], ValueError, r"shape \(n, 2\), got \(2,\)"),
        ([[0, 1, 2]], ValueError, r"shape \(n, 2\), got \(1, 3\)"),
        ([[0, 3]], ValueError, r"different item indices in \[0, 3\)"),
        ([[0, -1]], ValueError, r"different item indices in \[0, 3\)"),
        ([[1, 1]], ValueError, "different item indices"),
    ],
)
def test_bad_sequences_are_named(rows, error, message):
    with pytest.raises(error, match=message):
        JointExponential([1, 2, 3], 2, 1.0).log_probability(rows)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, 3, 3), ValueError, "keywords"),
        ((4, 3, 3), ValueError, "keywords"),
        ((1, 3, 0), ValueError, "partitions"),
        ((1, 2.5, 1), TypeError, "tokens must be an integer, got 2.5"),
        ((1, 3, 3, "swap"), ValueError, 'adjacency must be "replace-one" or "add-remove"'),
    ],
)
def test_bad_arguments_of_the_spread_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        loss_spread(*arguments)
