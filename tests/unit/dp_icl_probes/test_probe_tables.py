"""The tables on recorded signal sentences and membership answers; no model is needed."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from dp_icl.probes import DEFENCES, QUERIES, STATISTICS
from dp_icl.probes.signal_search import load_signal_pairs
from pytest_snapaudit import SnapshotStale

PAPER = Path(__file__).parents[3] / "examples" / "paper"
MODULES = ("signal_table", "probe_table", "probe_recordings", "probe_texts", "search_signals")


@pytest.fixture(scope="module")
def paper() -> Iterator[dict[str, ModuleType]]:
    """The modules of the example, imported apart from any modules of the same names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PAPER)
        for name in MODULES:
            patch.delitem(sys.modules, name, raising=False)
        import probe_recordings
        import probe_table
        import signal_table

        yield {"signals": signal_table, "probes": probe_table, "recordings": probe_recordings}
        for name in MODULES:
            sys.modules.pop(name, None)


def test_the_recorded_embeddings_are_as_far_apart_as_the_pairs_say(paper):
    recorded = paper["signals"].signal_embeddings()
    pairs = load_signal_pairs()
    assert list(recorded) == [pair.method for pair in pairs]
    for pair in pairs:
        reference, canary = recorded[pair.method]
        np.testing.assert_allclose(np.linalg.norm([reference, canary], axis=1), 1, atol=1e-5)
        assert np.linalg.norm(reference - canary) == pytest.approx(pair.distance, abs=1e-4)


@pytest.mark.parametrize("view", ["black-box", "white-box"])
def test_the_guided_pair_takes_the_bound_at_epsilon_16_from_9_to_more_than_13(paper, view):
    (row,) = paper["signals"].signal_rows(
        epsilons=(16.0,), views=(view,), methods=("gradient-guided",), n_trials=40_000
    )
    assert 13 <= row.epsilon_lower < 16
    assert 13 < row.truth < 16
    assert row.distance >= 1.85


def test_pairs_further_apart_have_higher_bounds(paper):
    methods = ("GS", "MSGS", "gradient-guided")
    rows = paper["signals"].signal_rows(
        epsilons=(8.0,), views=("black-box",), methods=methods, n_trials=8_000
    )
    assert [row.method for row in rows] == list(methods)
    for lower, higher in itertools.pairwise(rows):
        assert lower.distance < higher.distance
        assert lower.epsilon_lower < higher.epsilon_lower
        assert lower.truth < higher.truth < 8
    assert rows[-1].epsilon_lower < 8


def test_other_sentences_make_the_recorded_embeddings_stale(paper, monkeypatch):
    pairs = load_signal_pairs()
    monkeypatch.setattr(paper["signals"], "load_signal_pairs", lambda: pairs[:1])
    with pytest.raises(SnapshotStale, match="signal_sentences"):
        paper["signals"].signal_embeddings()


def test_the_contexts_differ_in_the_first_document_of_the_first_partition_alone(paper):
    absent, present = paper["recordings"].contexts()
    assert len(absent) == len(present) == 20
    for (canary, without), (same, containing) in zip(absent, present, strict=True):
        assert canary == same == containing[0][0]
        assert not any(canary in partition for partition in without)
        assert (without[0][1:], without[1:]) == (containing[0][1:], containing[1:])
        documents = [document for partition in without for document in partition]
        assert len(set(documents)) == len(documents) == 4


@pytest.fixture(scope="module")
def recorded(paper):
    return paper["probes"].recorded_scores()


def test_every_query_defence_and_mechanism_has_its_cell(paper, recorded):
    cells = paper["probes"].probe_rows(recorded)
    assert cells == paper["probes"].probe_rows()
    assert [(cell.query, cell.defence, cell.mechanism) for cell in cells] == [
        (query, defence, mechanism)
        for query in QUERIES
        for defence in DEFENCES
        for mechanism in ("answer", *STATISTICS)
    ]
    for cell in cells:
        assert 0 <= cell.auc.lower <= cell.auc.auc <= cell.auc.upper <= 1
        assert cell.auc.sizes == (20, 20)


def test_the_continuation_query_tells_the_sides_apart_and_the_questions_do_not(paper, recorded):
    cells = {(c.query, c.defence, c.mechanism): c.auc for c in paper["probes"].probe_rows(recorded)}
    for defence in ("none", "basic", "strict"):
        assert cells["continuation", defence, "answer"].auc >= 0.95
        assert not cells["continuation", defence, "answer"].at_chance
        for query in ("direct", "semantic"):
            assert cells[query, defence, "answer"].auc < 0.5
            assert cells[query, defence, "voting"].at_chance


def test_answers_of_the_partition_that_is_the_same_on_both_sides_are_the_same(paper, recorded):
    for query in QUERIES:
        for defence in ("none", "basic", "strict"):
            present, absent = paper["probes"].side_scores(recorded, query, defence)
            np.testing.assert_array_equal(present[:, 1], absent[:, 1])
            assert (present[:, 0] != absent[:, 0]).all()


def test_a_withheld_answer_says_nothing(paper, recorded):
    for query in QUERIES:
        shares = paper["probes"].withheld(recorded)[query]
        plain, inspected = (paper["probes"].side_scores(recorded, query, d) for d in ("none", "inspection"))
        for share, before, after in zip(shares, plain, inspected, strict=True):
            hidden = (after == 0).all(axis=1)
            assert hidden.mean() == pytest.approx(share)
            np.testing.assert_array_equal(after[~hidden], before[~hidden])


def test_other_prompts_make_the_recorded_answers_stale(paper, monkeypatch):
    texts = ("Another document.", *paper["recordings"].DOCUMENTS[1:])
    monkeypatch.setattr(paper["recordings"], "DOCUMENTS", texts)
    with pytest.raises(SnapshotStale, match="membership_scores"):
        paper["probes"].recorded_scores()


@pytest.mark.parametrize("table", ["signals", "probes"])
def test_the_tables_print(paper, table, capsys, monkeypatch):
    if table == "signals":
        monkeypatch.setattr(paper["signals"], "EPSILONS", (16.0,))
        monkeypatch.setattr(paper["signals"], "VIEWS", ("black-box",))
        cells = paper["signals"].signal_rows(epsilons=(16.0,), views=("black-box",), n_trials=5_000)
        monkeypatch.setattr(paper["signals"], "signal_rows", lambda **_: cells)
    paper[table].main()
    lines = capsys.readouterr().out.splitlines()
    names = [pair.method for pair in load_signal_pairs()] if table == "signals" else QUERIES
    assert all(any(line.startswith(name) for line in lines) for name in names)
