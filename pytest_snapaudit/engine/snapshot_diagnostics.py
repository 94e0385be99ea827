"""What a recorded pair says about itself: clean outputs never seen, distinct rows, distance between sides.

These figures explain a verdict and never enter one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.stats import beta

from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair, merge_rows

NORMS = ("l1", "l2", "linf")

_BLOCK = 2**20
_ROWS_IN_WORDS = 100
_SPLIT_SEED = 0


def unseen_mass_upper(counts: ArrayLike, *, confidence: float = 0.95) -> float:
    """Upper bound on the total probability of the clean outputs that were never seen (the missing mass).

    The evaluations are taken as independent draws from one law on any set of outputs; the bound needs
    nothing of the law and holds with probability at least ``confidence``. It is the smaller of two bounds,
    each at error ``(1 - confidence) / 2``:

    - *Good-Turing*, in the manner of McAllester and Schapire (COLT 2000) with the concentration of
      McAllester and Ortiz (JMLR 2003; sharpened by Berend and Kontorovich, ECP 2013),
      P(M > E M + t) <= exp(-n t²): the share G of rows seen once has E G >= E M and moves by at most 2/n
      with one draw, so McDiarmid's inequality gives ``M <= G + (1 + sqrt 2) sqrt(ln(2/a) / n)`` at error
      ``a``. Strong where most rows were seen a few times.
    - *Clopper-Pearson on held-out draws*: the draws are split in halves by a fixed random permutation; how
      many of the second half miss the rows of the first is binomial with the missing mass of the first half,
      which is at least that of the whole. Strong where few distinct rows exist: 0.0037 for one row seen 2 000
      times, at 95 %.

    Args:
        counts: (k,) how often each distinct row was seen.
        confidence: in (0, 1).

    Returns:
        The bound, in [0, 1]; 1 for a single evaluation. A clean stage that is deterministic by declaration
        has no unseen outputs, and no use for the bound.

    Raises:
        ValueError: if the counts are not positive integers or the confidence is out of range.
    """
    _check_confidence(confidence)
    seen = np.asarray(counts)
    if seen.ndim != 1 or len(seen) == 0 or seen.dtype.kind not in "iu" or (seen < 1).any():
        msg = f"counts must be positive integers of shape (k,), got shape {seen.shape} of dtype {seen.dtype}."
        raise ValueError(msg)
    seen = seen.astype(np.int64)
    n = int(seen.sum())
    error = (1.0 - confidence) / 2.0
    good_turing = np.count_nonzero(seen == 1) / n + (1 + math.sqrt(2)) * math.sqrt(math.log(2 / error) / n)
    return min(1.0, float(good_turing), _held_out_upper(seen, n, error))


def _held_out_upper(seen: NDArray[np.int64], n: int, error: float) -> float:
    held_out = n // 2
    if held_out == 0:
        return 1.0
    rng = np.random.default_rng(_SPLIT_SEED)
    second = rng.multivariate_hypergeometric(seen, held_out, method="marginals")
    misses = int(second[second == seen].sum())
    if misses == held_out:
        return 1.0
    return float(beta.ppf(1.0 - error, misses + 1, held_out - misses))


def snapshot_diagnostics(
    pair: SnapshotPair, *, confidence: float = 0.95, max_rows: int = 1_000
) -> dict[str, Any]:
    """Describe a recorded pair in built-in types, ready for JSON.

    Args:
        pair: the recorded clean outputs, or what an aggregation made of them (:meth:`SnapshotPair.map`).
        confidence: of each side's bound on the unseen mass, in (0, 1).
        max_rows: distances are taken between this many of the most frequent distinct rows of each side.

    Returns:
        - ``confidence``;
        - ``reference`` and ``canary``, each with ``evaluations``, ``distinct_rows``, ``most_frequent_share``
          (of evaluations) and ``unseen_mass_upper`` (:func:`unseen_mass_upper`);
        - ``shared_rows``: distinct rows seen on both sides;
        - ``rows_compared``: distinct rows of the reference and the canary side that distances are between;
        - ``distance_max``: the largest ``l1``, ``l2`` and ``linf`` distance between a row of one side and a
          row of the other, each coordinate counted (entries of NaN or infinity are at distance 0 from
          themselves); a lower bound on the sensitivity of the clean stage;
        - ``distance_most_frequent``: the distances between the two most frequent rows.

        Distances are None where rows are text, or where they are not finite.

    Raises:
        ValueError: if ``confidence`` or ``max_rows`` is out of range.
    """
    _check_confidence(confidence)
    if isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 1:
        msg = f"max_rows must be an integer of at least 1, got {max_rows!r}."
        raise ValueError(msg)
    reference, canary = (_most_frequent(side, max_rows) for side in (pair.reference, pair.canary))
    return {
        "confidence": float(confidence),
        "reference": _side(pair.reference, confidence),
        "canary": _side(pair.canary, confidence),
        "shared_rows": _shared(pair),
        "rows_compared": [len(reference), len(canary)],
        "distance_max": _distances(reference, canary),
        "distance_most_frequent": _distances(reference[:1], canary[:1]),
    }


def in_words(pair: SnapshotPair, norm: str, *, deterministic: bool) -> tuple[tuple[str, str], ...]:
    """What :func:`snapshot_diagnostics` finds, as (what, observation) pairs for a report.

    Distances are between the 100 most frequent distinct rows of each side.

    Args:
        pair: the recorded clean outputs that are audited.
        norm: of the distances, ``"l1"``, ``"l2"`` or ``"linf"``.
        deterministic: whether the clean stage is declared deterministic; then it has no unseen outputs.
    """
    found = snapshot_diagnostics(pair, max_rows=_ROWS_IN_WORDS)
    sides = found["reference"], found["canary"]
    evaluations, distinct, unseen = (
        [side[key] for side in sides] for key in ("evaluations", "distinct_rows", "unseen_mass_upper")
    )
    lines = [
        (
            "snapshot",
            f"{evaluations[0]:,} and {evaluations[1]:,} evaluations recorded (reference, canary), "
            f"{distinct[0]:,} and {distinct[1]:,} distinct clean outputs, {found['shared_rows']:,} on both sides",
        )
    ]
    largest, frequent = found["distance_max"][norm], found["distance_most_frequent"][norm]
    if max(distinct) > 1 and largest is not None and frequent is not None:
        lines.append(
            (
                "snapshot distance",
                f"recorded clean outputs of the two sides are up to {largest:.6g} apart ({norm}), "
                f"the most frequent ones {frequent:.6g}",
            )
        )
    if not deterministic:
        lines.append(
            (
                "unseen clean outputs",
                f"have probability at most {unseen[0]:.3g} (reference) and {unseen[1]:.3g} (canary), "
                f"each at {found['confidence']:.0%} confidence",
            )
        )
    return tuple(lines)


def _check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        msg = f"confidence must be a number in (0, 1), got {confidence!r}."
        raise ValueError(msg)


def _side(snapshot: Snapshot, confidence: float) -> dict[str, Any]:
    return {
        "evaluations": snapshot.size,
        "distinct_rows": len(snapshot.rows),
        "most_frequent_share": int(snapshot.counts.max()) / snapshot.size,
        "unseen_mass_upper": unseen_mass_upper(snapshot.counts, confidence=confidence),
    }


def _shared(pair: SnapshotPair) -> int:
    rows = np.concatenate([pair.reference.rows, pair.canary.rows])
    distinct, _ = merge_rows(rows, np.ones(len(rows), dtype=np.int64))
    return len(pair.reference.rows) + len(pair.canary.rows) - len(distinct)


def _most_frequent(snapshot: Snapshot, limit: int) -> NDArray[Any]:
    order = np.argsort(-snapshot.counts, kind="stable")[:limit]
    return snapshot.rows[order].reshape(len(order), -1)


def _distances(left: NDArray[Any], right: NDArray[Any]) -> dict[str, float | None]:
    """Largest distance in each norm between a row of ``left`` (a, d) and one of ``right`` (b, d)."""
    if left.dtype.kind not in "biufc" or right.dtype.kind not in "biufc":
        return dict.fromkeys(NORMS)
    wide = np.complex128 if "c" in (left.dtype.kind, right.dtype.kind) else np.float64
    left, right = left.astype(wide), right.astype(wide)
    plain = wide is np.float64 and bool(np.isfinite(left).all() and np.isfinite(right).all())
    step = max(1, _BLOCK // max(1, len(right) if plain else right.size))
    largest = dict.fromkeys(NORMS, 0.0)
    if left.shape[1] == 0:
        return dict(largest)
    for start in range(0, len(left), step):
        block = left[start : start + step]
        found = _plain_largest(block, right) if plain else _largest(block, right)
        largest = {norm: max(value, found[norm]) for norm, value in largest.items()}
    return {norm: value if math.isfinite(value) else None for norm, value in largest.items()}


def _plain_largest(left: NDArray[Any], right: NDArray[Any]) -> dict[str, float]:
    """For finite real rows."""
    return {
        "l1": float(cdist(left, right, "cityblock").max()),
        "l2": float(cdist(left, right, "euclidean").max()),
        "linf": float(cdist(left, right, "chebyshev").max()),
    }


def _largest(left: NDArray[Any], right: NDArray[Any]) -> dict[str, float]:
    """For any rows: equal entries are at distance 0, and NaN is infinitely far from anything else."""
    ours, theirs = left[:, None, :], right[None]
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(ours - theirs)
        gap[(ours == theirs) | (np.isnan(ours) & np.isnan(theirs))] = 0.0
        gap[np.isnan(gap)] = np.inf
        return {
            "l1": float(gap.sum(axis=2).max()),
            "l2": float(np.sqrt((gap * gap).sum(axis=2)).max()),
            "linf": float(gap.max()),
        }
