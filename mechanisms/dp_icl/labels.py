"""The labels a classifier chooses from (public, in a fixed order), and answers that name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def validate_labels(labels: object) -> tuple[str, ...]:
    """Return the labels as a tuple.

    Args:
        labels: a sequence of at least two distinct, non-empty strings without surrounding whitespace.

    Raises:
        TypeError: ``labels`` is not a sequence of strings.
        ValueError: there are fewer than two, two are equal, or one is empty or has whitespace around it.
    """
    accepted = "at least two distinct, non-empty strings without surrounding whitespace"
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        msg = f"labels must be a sequence of {accepted}, got {labels!r}."
        raise TypeError(msg)
    for label in labels:
        if not isinstance(label, str):
            msg = f"labels must be {accepted}, got {label!r} of type {type(label).__name__}."
            raise TypeError(msg)
    if (
        len(labels) < 2
        or len(set(labels)) < len(labels)
        or any(not label or label != label.strip() for label in labels)
    ):
        msg = f"labels must be {accepted}, got {tuple(labels)!r}."
        raise ValueError(msg)
    return tuple(labels)


def answers_array(answers: ArrayLike) -> NDArray[Any]:
    """Answers as an array in which each keeps its own type.

    NumPy would find one type for all: an index beside a text would become another text, and one answer could change
    what all the others count for.
    """
    return answers if isinstance(answers, np.ndarray) else np.array(answers, dtype=object)
