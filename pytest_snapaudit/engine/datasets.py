"""Datasets that are the same at every call: what is used up, or changed, by drawing cannot be audited."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

import numpy as np

from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.seeding import digest

_MANY = 100_000
"""Records that are read in well under a second."""


def refuse_iterators(datasets: tuple[Any, Any]) -> None:
    """Raise TypeError if a dataset is an iterator, of which the first call leaves nothing to the others."""
    for dataset in datasets:
        if isinstance(dataset, Iterator):
            msg = (
                f"a dataset is read once per call, and the {type(dataset).__name__} given is used up by the first; "
                "give a list or an array: list(...)."
            )
            raise TypeError(msg)


def fingerprints(datasets: Any) -> tuple[int, ...] | None:
    """What identifies the contents of both datasets; None where they cannot be read, or only slowly."""
    if not isinstance(datasets, tuple | list) or any(
        isinstance(dataset, Sized) and not isinstance(dataset, np.ndarray) and len(dataset) > _MANY
        for dataset in datasets
    ):
        return None
    found = [digest(dataset) for dataset in datasets]
    return tuple(each.value for each in found) if all(each.exact for each in found) else None


def refuse_changed(name: str, datasets: Any, after_first_calls: tuple[int, ...] | None) -> None:
    """Raise MechanismError if drawing goes on changing the datasets, or has made them equal.

    A change that is made once, such as sorting in place, leaves every later call the same dataset.

    Args:
        after_first_calls: fingerprints from when a few outputs had been drawn.
    """
    if after_first_calls is None:
        return
    if len(set(after_first_calls)) == 1:
        what = "the first calls have made the two datasets equal"
    elif fingerprints(datasets) != after_first_calls:
        what = "a dataset has changed between calls"
    else:
        return
    msg = (
        f"{name}: {what}, so later outputs come from other datasets than the pair under test: the mechanism consumes "
        "or modifies its argument; let it work on a copy."
    )
    raise MechanismError(msg)
