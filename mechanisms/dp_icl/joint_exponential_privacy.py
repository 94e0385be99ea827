"""How private the joint exponential mechanism is: its exact spread, and its exact loss on a pair of histograms.

Write ℓ(s), ℓ'(s) for the loss of a sequence on two neighbouring histograms, D = ℓ' − ℓ. The mechanism gives s
probability e^{−ηℓ(s)} / Z, so log P(s)/P'(s) = ηD(s) + log Z'/Z with −η max D ≤ log Z'/Z ≤ −η min D, and

    ε ≤ η · spread,   spread = max over pairs of (max_s D − min_s D).

What matters is the spread and not max |D|, as a shift common to all sequences cancels.

Each of T responses adds 0 or 1 to every count. Let one response be *replaced*: counts c_t, and with them the order
statistics c_(i), move by −1, 0 or 1 each. So every term c_(i) − c_{s_i} and with them D move by at most 2, and the
spread is at most 4. More precisely, with V tokens:

- K = 1. D(s) = (c'_(1) − c_(1)) − (c'_s − c_s). The first bracket is common to all s: spread 2.
- V = 2, K = 2. Of the two sequences one has loss 0 and the other the gap g of the counts, so D differs between them
  by |g' − g| ≤ 2: spread 2.
- K ≥ 2, V ≥ 3, T ≥ 3: spread 4. From counts (3, 1, 1) to (2, 2, 0) the sequence (2nd, 1st) loses 2, then 0: c_(1)
  falls while its token rises. The sequence (1st, 3rd) loses 0, then 2: c_(2) rises while its token falls. A joint
  mechanism has several positions, and they can move in opposite directions. More tokens and longer sequences can
  have the same at their ends.
- T = 2: spread 3. For D(s) = 2 the loss goes from 0 to 2, so some c_(j) goes from 1 to 2; for D(s) = −2 some c_(i)
  goes from 2 to 1. Then c_(i) > c_(j), so i < j, and c'_(j) > c'_(i), so j < i: not both on one pair.
- T = 1: losses are 0 or 1, so D is −1, 0 or 1: spread 2.

Let one response be *added or removed*: all counts move up, or all down, by 0 or 1. Terms and D move by at most 1,
and the spread is 1 for K = 1, V = 2 or T = 1, else 2 (with (1, 0, 0) and (1, 1, 0)). The scale η = ε/2 of
Gillenwater et al. is the one for this notion. Under replacement it is right for K = 1, and for K ≥ 2 only half of
what it takes: its true ε is 2ε.

The bound ε = η · spread is the smallest that holds for all vocabularies: on (T, m, 1, 0, …, 0) and (T − 1, m + 1,
0, 1, …, 1) most of the probability is on sequences with D = −2 once V is large, so log Z'/Z nears 2η.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from dp_icl.joint_exponential import JointExponential, validate_keywords
from dp_icl.partition import Adjacency, validate_adjacency, validate_partitions


def loss_spread(keywords: int, tokens: int, responses: int, adjacency: Adjacency = "replace-one") -> int:
    """How much further one sequence's loss can move than another's, at most, when one response changes.

    Args:
        keywords: K, from 1 to ``tokens``.
        tokens: V, at least 1.
        responses: T, at least 1; under add-remove, of the larger dataset.
        adjacency: ``"replace-one"`` or ``"add-remove"``, of a response and its counts.

    Returns:
        max over neighbouring histograms of max D − min D, in counts, at least 1; the mechanism is ε-DP with
        η = ε / spread. For a single token, of which nothing can be learnt, as for two.

    Raises:
        TypeError: a number is not an integer.
        ValueError: a number is out of range, or ``adjacency`` is unknown.
    """
    if isinstance(tokens, bool) or not isinstance(tokens, Integral):
        msg = f"tokens must be an integer, got {tokens!r} of type {type(tokens).__name__}."
        raise TypeError(msg)
    keywords = validate_keywords(keywords, int(tokens))
    responses = validate_partitions(responses)
    single = keywords == 1 or tokens <= 2
    if validate_adjacency(adjacency) == "replace-one":
        return 2 if single else min(responses + 1, 4)
    return 1 if single else min(responses, 2)


def privacy_loss(first: JointExponential, second: JointExponential) -> float:
    """The exact ε that separates the outputs on two histograms: max over sequences of |log P / P'|.

    It is found without enumerating sequences: for every loss and position, among the tokens that can stand there in a
    sequence of at most that loss, the one whose count is smallest on the other side.

    Args:
        first, second: the mechanism on either side; same V, K and rate.

    Returns:
        ε at least 0, at δ = 0.

    Raises:
        ValueError: the two sides differ in V, K or rate.
    """
    a = (len(first.counts), first.keywords, first.rate)
    b = (len(second.counts), second.keywords, second.rate)
    if a != b:
        msg = f"both sides must have the same tokens, keywords and rate, got {a} and {b}."
        raise ValueError(msg)
    shift = second.log_normaliser - first.log_normaliser
    forth = first.rate * _largest_rise(first, second) + shift
    back = first.rate * _largest_rise(second, first) - shift
    return max(forth, back, 0.0)


def _largest_rise(first: JointExponential, second: JointExponential) -> int:
    """max_s ℓ'(s) − ℓ(s), exactly."""
    values, inverse = np.unique(first.counts, return_inverse=True)
    smallest = np.full(len(values), np.iinfo(np.int64).max)
    np.minimum.at(smallest, inverse, second.counts)
    at_least = len(first.counts) - np.searchsorted(np.sort(first.counts), values)
    tops = [np.sort(side.counts)[::-1][: first.keywords] for side in (first, second)]
    # Positions at which neither order statistic changes are alike.
    changes = np.flatnonzero((np.diff(tops[0]) != 0) | (np.diff(tops[1]) != 0)) + 1
    positions = np.concatenate([[0], changes])
    best = -np.iinfo(np.int64).max
    for loss in first.losses:
        best = max(best, _highest(loss, positions, tops, values, smallest, at_least) - int(loss))
    return best


def _highest(
    loss: np.int64,
    positions: NDArray[np.int64],
    tops: list[NDArray[np.int64]],
    values: NDArray[np.int64],
    smallest: NDArray[np.int64],
    at_least: NDArray[np.int64],
) -> int:
    """The largest ℓ' among sequences with ℓ at most ``loss``.

    Where the first j positions have but j tokens to choose from, they use them up, and a later position has the rest.
    """
    highest, used_up = 0, len(values)
    ends = np.append(positions[1:], len(tops[0]))
    for start, end in zip(positions, ends, strict=True):
        low = int(np.searchsorted(values, tops[0][start] - loss))
        highest = max(highest, int(tops[1][start] - smallest[low:used_up].min()))
        if at_least[low] == end:
            used_up = low
    return highest
