"""Gradient-guided search for two sentences whose embeddings are as far apart as they get.

A sweep visits the words of one sentence in random order. At each, the gradient of the similarity to the other
sentence with respect to the word's token embedding ranks all words of the vocabulary at once, to first order;
only the best few are embedded, and the best of those is kept if it helps. Sweeps alternate between the
sentences. When neither can be improved, the shortlist is doubled; when the longest shortlist is of no use
either, a few random words are replaced and the search goes on from there, keeping the better pair.

Compared with the search of SnapAudit's Algorithm 2 a position costs a dozen embeddings in place of the whole
vocabulary.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dp_icl.models.progress import Progress
from dp_icl.models.protocols import JSON, EmbeddingModel, check_positive
from dp_icl.probes.signal_search.checkpoint import Checkpoint
from dp_icl.probes.signal_search.greedy import LEAST_GAIN
from dp_icl.probes.signal_search.pairs import SearchResult, SignalPair, furthest, measured_pair
from dp_icl.probes.signal_search.vocabulary import check_vocabulary

METHOD = "gradient-guided"


@runtime_checkable
class GradientEmbeddingModel(EmbeddingModel, Protocol):
    """An embedding that also says, to first order, what replacing a word would do."""

    @property
    def vocabulary(self) -> Sequence[str]:
        """V words, each read as one token."""

    def replacement_slopes(
        self, words: Sequence[str], position: int, anchor: NDArray[np.floating]
    ) -> NDArray[np.floating]:
        """Rank replacements by the gradient of the similarity.

        Args:
            words: the L words of a sentence, all of the vocabulary.
            position: which of them would be replaced, 0 to L - 1.
            anchor: (d,) embedding of the other sentence.

        Returns:
            (V,) inner products of the gradient of the similarity, taken with respect to the token embedding
            at ``position``, with the token embedding of every word. The smallest promise most.
        """


@dataclass
class _State:
    start: int = 0
    spent: int = 0
    step: int = 0
    shortlist: int = 0
    stale: int = 0
    sides: list[list[str]] = field(default_factory=list)
    similarity: float = 1.0
    best_sides: list[list[str]] = field(default_factory=list)
    best_similarity: float = 2.0
    evaluations: int = 0


def gradient_search(
    model: GradientEmbeddingModel,
    *,
    lengths: Sequence[int] = (20,),
    seeds: Sequence[int] = (0,),
    evaluations: int = 20_000,
    shortlist: int = 8,
    longest_shortlist: int = 32,
    kicked: int = 3,
    checkpoint: str | os.PathLike[str] | None = None,
) -> SearchResult:
    """Search from random sentences of every length and seed and keep the pair furthest apart.

    Deterministic up to the arithmetic of the model. An interruption repeats at most one sweep.

    Args:
        model: the embedding, its vocabulary and its gradients.
        lengths: numbers of words per sentence.
        seeds: seeds of the random sentences; every length is started from every seed.
        evaluations: sentences to embed per start, counting a gradient as three; the search ends with the
            sweep that reaches them.
        shortlist: how many replacements of a word are embedded, at first.
        longest_shortlist: how many at most.
        kicked: how many words of each sentence are replaced at random once nothing helps.
        checkpoint: a file to go on from and to keep the state in; None keeps nothing.

    Returns:
        the best pair, one pair per start (lengths outermost), and how many sentences were embedded.

    Raises:
        TypeError, ValueError: an argument of the wrong type or out of range, or the checkpoint of another
            search.
    """
    owner = "gradient_search"
    vocabulary = check_vocabulary(model.vocabulary, owner)
    for name, value in (
        ("evaluations", evaluations),
        ("shortlist", shortlist),
        ("longest_shortlist", longest_shortlist),
        ("kicked", kicked),
        *(("lengths", length) for length in lengths),
    ):
        check_positive(value, owner, name)
    starts = [(length, seed) for length in lengths for seed in seeds]
    if not starts:
        msg = f"{owner}: lengths and seeds must hold at least one value each."
        raise ValueError(msg)
    shortlist = min(shortlist, len(vocabulary))
    longest = max(shortlist, min(longest_shortlist, len(vocabulary)))
    details: dict[str, JSON] = {"words": len(vocabulary), "evaluations": evaluations}
    configuration: dict[str, JSON] = {
        **details,
        "model": model.provenance,
        "vocabulary": vocabulary,
        "lengths": list(lengths),
        "seeds": list(seeds),
        "shortlist": [shortlist, longest],
        "kicked": kicked,
    }
    store = Checkpoint(checkpoint, configuration)
    found: list[SignalPair] = []
    state = _State()
    if store.state is not None:
        found = [SignalPair(**pair) for pair in store.state["found"]]
        state = _State(**store.state["current"])
    with Progress(f"{METHOD} search: embeddings", len(starts) * evaluations) as progress:
        progress.advance(state.start * evaluations + min(state.spent, evaluations))
        while state.start < len(starts):
            length, seed = starts[state.start]
            before = min(state.spent, evaluations)
            rng = np.random.default_rng([length, seed, state.step])
            if state.step == 0:
                _begin(model, vocabulary, length, shortlist, state, rng)
            else:
                _sweep(model, vocabulary, state, rng)
                _vary(model, vocabulary, state, shortlist, longest, kicked, rng)
            state.step += 1
            progress.advance(min(state.spent, evaluations) - before)
            if state.spent >= evaluations:
                _keep_better(state)
                texts = (" ".join(state.best_sides[0]), " ".join(state.best_sides[1]))
                found.append(measured_pair(model, texts, METHOD, {**details, "length": length, "seed": seed}))
                state = _State(start=state.start + 1, evaluations=state.evaluations + state.spent + 2)
            store.save({"found": [asdict(pair) for pair in found], "current": asdict(state)})
    return SearchResult(furthest(found), tuple(found), state.evaluations)


def _begin(
    model: EmbeddingModel,
    vocabulary: tuple[str, ...],
    length: int,
    shortlist: int,
    state: _State,
    rng: np.random.Generator,
) -> None:
    state.sides = [_random_words(vocabulary, length, rng) for _ in range(2)]
    state.shortlist = shortlist
    _measure(model, state)


def _measure(model: EmbeddingModel, state: _State) -> NDArray[np.float64]:
    rows = np.asarray(model.embed([" ".join(side) for side in state.sides]), np.float64)
    state.similarity = float(rows[0] @ rows[1])
    state.spent += 2
    return rows


def _random_words(vocabulary: tuple[str, ...], count: int, rng: np.random.Generator) -> list[str]:
    return [vocabulary[i] for i in rng.integers(len(vocabulary), size=count)]


def _sweep(
    model: GradientEmbeddingModel, vocabulary: tuple[str, ...], state: _State, rng: np.random.Generator
) -> None:
    """Visit every word of one sentence once."""
    side = state.step % 2
    anchor = _measure(model, state)[1 - side]
    sentence = state.sides[side]
    improved = False
    for position in rng.permutation(len(sentence)):
        slopes = model.replacement_slopes(sentence, int(position), anchor)
        texts = []
        for word in np.argsort(slopes, kind="stable")[: state.shortlist]:
            texts.append([*sentence[:position], vocabulary[word], *sentence[position + 1 :]])
        similarity = np.asarray(model.embed([" ".join(text) for text in texts]), np.float64) @ anchor
        state.spent += len(texts) + 3
        best = int(similarity.argmin())
        if similarity[best] < state.similarity - LEAST_GAIN:
            sentence[:] = texts[best]
            state.similarity, improved = float(similarity[best]), True
    state.stale = 0 if improved else state.stale + 1


def _vary(
    model: EmbeddingModel,
    vocabulary: tuple[str, ...],
    state: _State,
    shortlist: int,
    longest: int,
    kicked: int,
    rng: np.random.Generator,
) -> None:
    """Once neither sentence can be improved: a longer shortlist, or a few random words in the best pair."""
    if state.stale < 2:
        return
    state.stale = 0
    if state.shortlist < longest:
        state.shortlist = min(2 * state.shortlist, longest)
        return
    _keep_better(state)
    state.sides = [list(side) for side in state.best_sides]
    for side in state.sides:
        places = rng.choice(len(side), min(kicked, len(side)), replace=False)
        for place, word in zip(places, _random_words(vocabulary, len(places), rng), strict=True):
            side[place] = word
    state.shortlist = shortlist
    _measure(model, state)


def _keep_better(state: _State) -> None:
    if state.similarity < state.best_similarity:
        state.best_similarity = state.similarity
        state.best_sides = [list(side) for side in state.sides]
