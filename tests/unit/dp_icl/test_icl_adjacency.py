"""Adding or removing an exemplar: how it is dealt to a partition, and what that moves."""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_icl import EmbeddingSpaceAggregation, PrivateVoting, assign, assign_by_content, split
from dp_icl.calibration import analytic_gaussian_sigma

LABELS = ("World", "Sports", "Business", "Science")
RNG = np.random.default_rng(0)

PINNED = [2, 61, 12, 25, 71, 67, 85, 67, 93, 29]

exemplars = st.lists(st.tuples(st.text(max_size=3), st.sampled_from(LABELS)), min_size=1, max_size=15)
partition_counts = st.integers(1, 8)
seeds = st.integers(0, 1000)


@dataclass(frozen=True)
class Exemplar:
    text: str
    label: str


def without(sequence, position):
    return [*sequence[:position], *sequence[position + 1 :]]


def last_label(partition):
    return partition[-1][1] if partition else "World"


def direction(partition):
    """A unit vector that depends on the last exemplar, and on whether there is one."""
    vector = np.zeros(len(LABELS) + 1)
    vector[LABELS.index(partition[-1][1]) if partition else -1] = -1.0 if len(partition) % 2 else 1.0
    return vector


def changed(first, second, partitions, seed, adjacency):
    pairs = zip(
        split(first, partitions, seed, adjacency), split(second, partitions, seed, adjacency), strict=True
    )
    return sum(one != other for one, other in pairs)


@settings(max_examples=40)
@given(said=exemplars, partitions=partition_counts, seed=seeds, data=st.data())
def test_removing_one_exemplar_changes_exactly_one_partition(said, partitions, seed, data):
    fewer = without(said, data.draw(st.integers(0, len(said) - 1)))
    assert changed(said, fewer, partitions, seed, "add-remove") == 1
    parts = split(said, partitions, seed, "add-remove")
    assert Counter(exemplar for part in parts for exemplar in part) == Counter(said)


def test_each_way_of_dealing_serves_one_kind_of_neighbours():
    """Dealt by position, a removal moves others; dealt by content, a replacement changes two partitions."""
    said = [(str(i), "World") for i in range(30)]
    assert changed(said, without(said, 0), 5, 0, "add-remove") == 1
    assert changed(said, without(said, 0), 5, 0, "replace-one") == 5
    replaced = [("new", "World"), *said[1:]]
    assert changed(said, replaced, 5, 0, "replace-one") == 1
    assert changed(said, replaced, 5, 0, "add-remove") == 2


def test_where_an_exemplar_goes_depends_on_nothing_else():
    said = [(str(i), "World") for i in range(30)]
    alone = [int(assign_by_content([each], 7, 3)[0]) for each in said]
    assert assign_by_content(said, 7, 3).tolist() == alone
    assert assign_by_content(said[::-1], 7, 3).tolist() == alone[::-1]


def test_equal_exemplars_share_a_partition_and_keep_their_order():
    parts = split(["a", "b", "a", "c", "a"], 4, 0, "add-remove")
    assert sum("a" in part for part in parts) == 1
    assert Counter(map(len, (tuple(e for e in part if e == "a") for part in parts)))[3] == 1
    assert split([1, 2, 3, 4], 1, 0, "add-remove") == ((1, 2, 3, 4),)


def test_the_assignment_by_content_is_pinned():
    # Recorded clean outputs depend on it: a change of this table makes every such recording stale.
    said = ["news", b"news", 3, 3.0, True, None, ("a", 1), ["a", 1], {"b": 2, "a": 1}, Exemplar("t", "World")]
    assert assign_by_content(said, 100).tolist() == PINNED
    assert assign_by_content([{"a": 1, "b": 2}], 100).tolist() == [PINNED[8]]


def test_values_of_another_type_or_shape_are_other_exemplars():
    said = [1, 1.0, True, "1", b"1", np.int64(1), np.float32(1), np.array(1), np.array([1]), (1,), [1]]
    assert len(set(assign_by_content(said, 10**9).tolist())) == len(said)
    arrays = [np.zeros((2, 3)), np.zeros((3, 2)), np.zeros((2, 3), np.float32)]
    assert len(set(assign_by_content(arrays, 10**9).tolist())) == 3
    texts = [("ab", "c"), ("a", "bc"), ("abc",), ("ab", "c", "")]
    assert len(set(assign_by_content(texts, 10**9).tolist())) == 4


def test_seeds_deal_differently_and_evenly():
    # 4000 exemplars to 4 partitions; z bound 4.9, two-sided level 1e-6.
    landed = np.bincount(assign_by_content(range(4000), 4, seed=5), minlength=4)
    assert np.abs(landed - 1000).max() <= 4.9 * math.sqrt(4000 * 0.25 * 0.75)
    assert assign_by_content(range(50), 4, 0).tolist() != assign_by_content(range(50), 4, 1).tolist()


def test_no_exemplars_fill_no_partition():
    assert split([], 3, 0, "add-remove") == ((), (), ())
    assert assign_by_content([], 3).shape == (0,)


@pytest.mark.parametrize("exemplar", [object(), {1, 2}, np.array([None]), Exemplar, ("a", object())])
def test_an_exemplar_whose_content_cannot_be_read_is_refused(exemplar):
    with pytest.raises(TypeError, match=r"dealt by its content must be made of texts.*replace-one"):
        assign_by_content([exemplar], 2)
    assert assign(1, 2).tolist() == [0]


@pytest.mark.parametrize("value", ["add", "Replace-One", 1, None, ["add-remove"]])
def test_another_adjacency_is_refused(value):
    message = 'adjacency must be "replace-one" or "add-remove"'
    with pytest.raises(ValueError, match=message):
        split(["a"], 2, 0, value)
    with pytest.raises(ValueError, match=message):
        PrivateVoting(LABELS, 3, 1.0, 1e-5, adjacency=value)
    with pytest.raises(ValueError, match=message):
        EmbeddingSpaceAggregation(3, 1.0, 1e-5, adjacency=value)


def test_a_single_text_is_refused():
    with pytest.raises(TypeError, match="exemplars must be a sequence"):
        assign_by_content("text", 2)


@settings(max_examples=40)
@given(said=exemplars, partitions=partition_counts, seed=seeds, data=st.data())
def test_removing_one_exemplar_moves_the_votes_by_at_most_the_sensitivity(said, partitions, seed, data):
    voting = PrivateVoting(LABELS, partitions, 1.0, 1e-5, seed=seed, model=last_label, adjacency="add-remove")
    fewer = without(said, data.draw(st.integers(0, len(said) - 1)))
    moved = voting.clean(said, RNG) - voting.clean(fewer, RNG)
    assert np.linalg.norm(moved) <= voting.sensitivity
    assert voting.clean(fewer, RNG).sum() == partitions


def test_removing_an_exemplar_changes_a_vote_rather_than_taking_one_away():
    """Sensitivity 1 would be wrong: the partition that loses its exemplar answers differently."""
    voting = PrivateVoting(LABELS, 1, 1.0, 1e-5, model=last_label, adjacency="add-remove")
    said = [("t", "Sports"), ("u", "Science")]
    counts = [voting.clean(said[:n], RNG).tolist() for n in (2, 1, 0)]
    assert counts == [[0, 0, 0, 1], [0, 1, 0, 0], [1, 0, 0, 0]]
    assert math.dist(counts[0], counts[1]) == math.dist(counts[1], counts[2]) == voting.sensitivity


@settings(max_examples=40)
@given(said=exemplars, partitions=partition_counts, seed=seeds, data=st.data())
def test_removing_one_exemplar_moves_the_mean_by_at_most_the_sensitivity(said, partitions, seed, data):
    aggregation = EmbeddingSpaceAggregation(
        partitions, 1.0, 1e-5, seed=seed, model=direction, adjacency="add-remove"
    )
    fewer = without(said, data.draw(st.integers(0, len(said) - 1)))
    moved = aggregation.clean(said, RNG) - aggregation.clean(fewer, RNG)
    assert np.linalg.norm(moved) <= aggregation.sensitivity * (1 + 1e-14)


def test_a_partition_left_empty_responds_zero_shot():
    aggregation = EmbeddingSpaceAggregation(1, 1.0, 1e-5, model=direction, adjacency="add-remove")
    shown, empty = aggregation.clean([("t", "World")], RNG), aggregation.clean([], RNG)
    assert shown.tolist() == [-1.0, 0.0, 0.0, 0.0, 0.0]
    assert empty.tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]
    opposite = EmbeddingSpaceAggregation(
        1, 1.0, 1e-5, model=lambda part: [1.0 if part else -1.0], adjacency="add-remove"
    )
    moved = opposite.clean(["a"], RNG) - opposite.clean([], RNG)
    assert np.linalg.norm(moved) == opposite.sensitivity == 2.0


@pytest.mark.parametrize("labels", [2, 4, 6, 50])
def test_votes_for_many_labels(labels):
    names = tuple(f"label {i}" for i in range(labels))
    voting = PrivateVoting(names, 8, 1.0, 1e-5)
    assert voting.sigma == analytic_gaussian_sigma(1.0, 1e-5, math.sqrt(2))
    counts = voting.aggregate([*names[:2] * 3, "no label", names[-1]])
    assert counts.sum() == 7
    released = voting.release(voting.privatize(np.broadcast_to(1e6 * counts, (4, labels)), RNG), RNG)
    assert set(released.tolist()) <= {0, 1}


def test_the_adjacency_is_part_of_the_value():
    names = {
        kind: PrivateVoting(LABELS, 3, 1.0, 1e-5, adjacency=kind) for kind in ("replace-one", "add-remove")
    }
    assert names["replace-one"] != names["add-remove"]
    assert repr(names["add-remove"]).endswith("seed=0, adjacency='add-remove')")
    spaces = {kind: EmbeddingSpaceAggregation(3, 1.0, 1e-5, adjacency=kind) for kind in names}
    assert spaces["replace-one"] != spaces["add-remove"]
    assert hash(spaces["replace-one"]) != hash(spaces["add-remove"])
    assert repr(spaces["add-remove"]) == (
        "EmbeddingSpaceAggregation(partitions=3, epsilon=1.0, delta=1e-05, adjacency='add-remove')"
    )
