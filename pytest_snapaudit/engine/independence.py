"""Whether the outputs of one call are independent draws, whose law does not depend on how many are asked for.

Bounds count outputs as independent trials. Noise drawn once for a call, or scaled by the length of its argument, breaks
that, and with it the promise that a correct mechanism passes; so such mechanisms are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, rankdata

from pytest_snapaudit.engine.batches import Rows, as_batch, is_numeric, numeric_parts
from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.seeding import block_generator
from pytest_snapaudit.engine.simulation import (
    PROBE,
    ConstantSource,
    CopiedSource,
    SamplerSource,
    Source,
    SteadySource,
    TimedSource,
    draw_raw,
)

_CALLS, _ROWS = 4, 128
_FIRST_BLOCK = 3
_COLUMNS, _SIZED_COLUMNS = 32, 8
"""How many columns are compared between calls, and between sizes."""

_COMMONEST = 0.8
_P_VALUE = 1e-12


def check_calls(name: str, source: Source, entropy: tuple[int, ...], side: int) -> None:
    """Compare calls for a few outputs with each other, and with one call for as many outputs as all of them.

    A correct mechanism is refused with probability below 1e-10: each of at most 32 columns is tested between calls
    (Kruskal and Wallis), and of 8 between sizes (Kolmogorov and Smirnov), at 1e-12.

    Raises:
        MechanismError: outputs of one call resemble each other, or depend on how many were asked for.
    """
    if not _batched(source):
        return
    whole = _CALLS * _ROWS
    calls = [_draw(source, entropy, side, _FIRST_BLOCK + call, _ROWS) for call in range(_CALLS)]
    large = _draw(source, entropy, side, _FIRST_BLOCK + _CALLS, whole)
    for view in large:
        small = [call[view] for call in calls if view in call]
        if len(small) < _CALLS or len({part.shape[1] for part in (*small, large[view])}) > 1:
            continue
        together = np.concatenate(small)[:, :_COLUMNS].astype(np.float64)
        alone = large[view][:, :_COLUMNS].astype(np.float64)
        usable = np.isfinite(together).all(axis=0) & np.isfinite(alone).all(axis=0)
        together, alone = together[:, usable], alone[:, usable]
        if _calls_differ(together):
            msg = (
                f"{name}: outputs of one call resemble each other more than those of other calls: part of the noise is "
                "drawn once for all rows of a call; draw it for every row, for example rng.laplace(0, scale, "
                "np.shape(clean)), or audit one output per call with from_callable."
            )
            raise MechanismError(msg)
        if _laws_differ(together[:, :_SIZED_COLUMNS], alone[:, :_SIZED_COLUMNS]):
            msg = (
                f"{name}: the law of an output depends on how many are asked for ({_ROWS} or {whole} in one call); "
                "every row must be one draw of the same mechanism, whatever n."
            )
            raise MechanismError(msg)


def _batched(source: Source) -> bool:
    inner: Any = source
    while isinstance(inner, CopiedSource | SteadySource):
        inner = inner.source
    if isinstance(inner, SamplerSource):
        return inner.sampler.batched
    return not isinstance(inner, ConstantSource | TimedSource)


def _draw(source: Source, entropy: tuple[int, ...], side: int, block: int, n: int) -> dict[str, Rows]:
    """Numeric outputs per view of one call; views of another kind are left out, the pilot says what is wrong."""
    raw = draw_raw(source, n, block_generator(entropy, PROBE, side, block))
    found: dict[str, Rows] = {}
    for view, outputs in raw.items():
        try:
            batch = as_batch(outputs, n)
        except MechanismError:
            continue
        if is_numeric(batch):
            found[view] = np.concatenate(list(numeric_parts(batch, n).values()), axis=1)
    return found


def _calls_differ(rows: NDArray[np.float64]) -> bool:
    """Kruskal–Wallis test of the calls that make up ``rows``, for every column that is not mostly one value."""
    n = len(rows)
    if rows.shape[1] == 0:
        return False
    ranks = rankdata(rows, axis=0) - (n + 1) / 2.0
    total = np.einsum("ij,ij->j", ranks, ranks)
    means = ranks.reshape(_CALLS, _ROWS, -1).mean(axis=1)
    between = _ROWS * np.einsum("ij,ij->j", means, means)
    varied = total > (1.0 - _COMMONEST**3) * n * (n * n - 1) / 12.0
    statistics = (n - 1) * between[varied] / total[varied]
    return bool((chi2.sf(statistics, _CALLS - 1) < _P_VALUE).any())


def _laws_differ(small: NDArray[np.float64], large: NDArray[np.float64]) -> bool:
    """Kolmogorov–Smirnov test between equal numbers of rows, column by column; ties make it cautious."""
    n = len(small)
    limit = float(np.sqrt(-np.log(_P_VALUE / 2.0) / n))
    for a, b in zip(np.sort(small, axis=0).T, np.sort(large, axis=0).T, strict=True):
        grid = np.concatenate([a, b])
        gap = np.searchsorted(a, grid, side="right") - np.searchsorted(b, grid, side="right")
        if np.abs(gap).max() / n > limit:
            return True
    return False
