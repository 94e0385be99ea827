"""Multi-sweep greedy search for two sentences whose embeddings are far apart (SnapAudit, Algorithm 2).

Both sentences start as the same seed sentence. In odd sweeps the first is the anchor and the second is
changed, in even sweeps the other way round. A sweep (the paper's *GreedyReplace*) replaces one word after the
other by the word of the vocabulary that takes the sentence furthest from its anchor, and ends when no single
replacement helps any more. Positions are visited in turn, from the first word to the last and round again.
The single-sweep search of the paper's Table 6 is the first sweep alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from dp_icl.models.progress import Progress
from dp_icl.models.protocols import EmbeddingModel, check_positive, check_texts
from dp_icl.probes.signal_search.checkpoint import Checkpoint
from dp_icl.probes.signal_search.pairs import SearchResult, SignalPair, furthest, measured_pair
from dp_icl.probes.signal_search.vocabulary import check_vocabulary

LEAST_GAIN = 1e-6
"""A replacement counts when it lowers the similarity by more than this, above the drift of arithmetic."""


@dataclass
class _State:
    sides: list[list[str]]
    start: int = 0
    sweep: int = 1
    position: int = 0
    stale: int = 0
    changed: bool = False
    evaluations: int = 0


def multi_sweep_greedy_search(
    model: EmbeddingModel,
    vocabulary: Sequence[str],
    seeds: Sequence[str],
    *,
    sweeps: int = 4,
    checkpoint: str | os.PathLike[str] | None = None,
    method: str = "MSGS",
) -> SearchResult:
    """Search from every seed sentence and keep the pair furthest apart (SnapAudit, Algorithm 2).

    Deterministic: equal arguments give equal pairs. One position costs ``len(vocabulary)`` embeddings; an
    interruption repeats at most those of one position.

    Args:
        model: the embedding, onto the unit sphere.
        vocabulary: the words W that may be put in.
        seeds: M seed sentences; white space separates their words.
        sweeps: at most this many sweeps T per seed. A search ends sooner once two sweeps in a row change
            nothing, after which no further sweep would.
        checkpoint: a file to go on from and to keep the state in; None keeps nothing.
        method: name of the search in its pairs.

    Returns:
        the best pair, one pair per seed, and how many sentences were embedded.

    Raises:
        TypeError, ValueError: an argument of the wrong type or out of range, or the checkpoint of another
            search.
    """
    owner = "multi_sweep_greedy_search"
    words = check_vocabulary(vocabulary, owner)
    starts = [_split(text, owner) for text in check_texts(seeds, owner, "seeds")]
    check_positive(sweeps, owner, "sweeps")
    if not starts:
        msg = f"{owner}: seeds must hold at least one sentence."
        raise ValueError(msg)
    details = {"words": len(words), "seeds": len(starts), "sweeps": sweeps}
    store = Checkpoint(
        checkpoint,
        {
            "method": method,
            "model": model.provenance,
            "vocabulary": words,
            "seeds": list(seeds),
            "sweeps": sweeps,
        },
    )
    found: list[SignalPair] = []
    state = _State([list(starts[0]), list(starts[0])])
    if store.state is not None:
        found = [SignalPair(**pair) for pair in store.state["found"]]
        state = _State(**store.state["current"])
    with Progress(f"{method}: sweeps", len(starts) * sweeps) as progress:
        progress.advance(state.start * sweeps + state.sweep - 1)
        while state.start < len(starts):
            if state.sweep > sweeps:
                sentences = (" ".join(state.sides[0]), " ".join(state.sides[1]))
                found.append(measured_pair(model, sentences, method, {**details, "seed": state.start}))
                following = starts[min(state.start + 1, len(starts) - 1)]
                state = _State(
                    [list(following), list(following)], state.start + 1, evaluations=state.evaluations + 2
                )
            else:
                before = state.sweep
                _replace_one_word(model, words, state, sweeps)
                progress.advance(state.sweep - before)
            store.save({"found": [asdict(pair) for pair in found], "current": asdict(state)})
    return SearchResult(furthest(found), tuple(found), state.evaluations)


def single_sweep_greedy_search(
    model: EmbeddingModel,
    vocabulary: Sequence[str],
    seeds: Sequence[str],
    *,
    checkpoint: str | os.PathLike[str] | None = None,
) -> SearchResult:
    """The single greedy sweep of the paper's Table 6 (*GS*): the seed sentence stays as it is on one side.

    Args, returns and errors are those of :func:`multi_sweep_greedy_search`.
    """
    return multi_sweep_greedy_search(model, vocabulary, seeds, sweeps=1, checkpoint=checkpoint, method="GS")


def _replace_one_word(model: EmbeddingModel, words: tuple[str, ...], state: _State, sweeps: int) -> None:
    """Put the best word at the current position, if any helps, and move to the next position or sweep."""
    side = state.sweep % 2  # odd sweeps: the first sentence is the anchor, the second is changed
    sentence = state.sides[side]
    candidates = [list(sentence)]
    for word in words:
        if word != sentence[state.position]:
            candidates.append(list(sentence))
            candidates[-1][state.position] = word
    texts = [" ".join(candidate) for candidate in candidates]
    rows: NDArray[np.float64] = np.asarray(model.embed([*texts, " ".join(state.sides[1 - side])]), np.float64)
    state.evaluations += len(rows)
    similarity = rows[:-1] @ rows[-1]
    best = int(similarity.argmin())
    if similarity[best] < similarity[0] - LEAST_GAIN:
        state.sides[side] = candidates[best]
        state.stale, state.changed = 1, True  # the best word was just put in here
    else:
        state.stale += 1
    state.position = (state.position + 1) % len(sentence)
    if state.stale >= len(sentence):
        settled = not state.changed and state.sweep > 1
        state.sweep = sweeps + 1 if settled else state.sweep + 1
        state.position, state.stale, state.changed = 0, 0, False


def _split(text: str, owner: str) -> list[str]:
    words = text.split()
    if not words:
        msg = f"{owner}: a seed sentence needs at least one word, got {text!r}."
        raise ValueError(msg)
    return words
