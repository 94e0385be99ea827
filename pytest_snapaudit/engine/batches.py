"""A batch of outputs as a mechanism returns it: an array, arrays by component, or a list of objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.leaves import key_text, label_code, label_text

Rows = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Raised:
    """A whole batch that raised instead of returning outputs."""

    exception: Exception


@dataclass(frozen=True, eq=False)
class Columns:
    """A batch given as one array per component: a dict or tuple of arrays, one entry per output."""

    parts: dict[Any, NDArray[Any]]
    named: bool

    def __iter__(self) -> Iterator[Any]:
        for row in zip(*self.parts.values(), strict=True):
            yield dict(zip(self.parts, row, strict=True)) if self.named else row


def as_batch(raw: Any, n: int) -> Any:
    """Check that ``raw`` holds ``n`` outputs: an array, :class:`Columns`, :class:`Raised` or a list."""
    if isinstance(raw, Raised):
        return raw
    if isinstance(raw, Mapping):
        return _columns_of(raw, n)
    if isinstance(raw, tuple) and raw and all(_is_column(part, n) for part in raw):
        return Columns({i: np.asarray(_unmasked(part)) for i, part in enumerate(raw)}, named=False)
    raw = _unmasked(raw)
    if hasattr(raw, "detach") and hasattr(raw, "cpu"):
        raw = raw.detach().cpu().numpy()
    if isinstance(raw, list | tuple):
        what = f"a {type(raw).__name__}"
        if len(raw) != n and 0 < len(raw) < 10 and all(isinstance(part, np.ndarray) for part in raw):
            what += f" of {', '.join(map(_what, raw))} (components go into a tuple of arrays of length {n})"
        _check_length(len(raw), n, what)
        return list(raw)
    try:
        array = np.asarray(raw)
    except (ValueError, TypeError) as error:
        msg = f"the outputs cannot be read as an array: got {type(raw).__name__}; return an array or a list."
        raise MechanismError(msg) from error
    if array.ndim == 0:
        msg = (
            f"{n} independent outputs were asked for but a single {type(raw).__name__} came back; return an "
            "array with one row per output (or use from_callable for a function that returns one output)."
        )
        raise MechanismError(msg)
    _check_length(len(array), n, f"an array of shape {array.shape}")
    return array.tolist() if array.dtype == object and array.ndim == 1 else array


def _columns_of(raw: Mapping[Any, Any], n: int) -> Columns:
    parts = {key: raw[key] for key in sorted(raw, key=key_text)}
    if not parts or not all(_is_column(part, n) for part in parts.values()):
        kinds = {key: _what(part) for key, part in parts.items()}
        msg = f"a dict of outputs must hold arrays of length {n}, one entry per output, got {kinds}."
        raise MechanismError(msg)
    return Columns({key: _unmasked(part) for key, part in parts.items()}, named=True)


def _unmasked(raw: Any) -> Any:
    """A masked array of numbers with NaN where it is masked; anything else as it is."""
    if isinstance(raw, np.ma.MaskedArray) and raw.dtype.kind in "biuf":
        return np.asarray(np.ma.filled(raw.astype(np.float64), np.nan))
    return raw


def _what(part: Any) -> str:
    return f"an array of shape {part.shape}" if isinstance(part, np.ndarray) else type(part).__name__


def _is_column(part: Any, n: int) -> bool:
    return isinstance(part, np.ndarray) and part.ndim >= 1 and len(part) == n and part.dtype.kind in "biufcUS"


def _check_length(length: int, n: int, what: str) -> None:
    if length != n:
        msg = f"{n} outputs were asked for but {length} came back, in {what}; return one row per output."
        raise MechanismError(msg)


def is_numeric(batch: Any) -> bool:
    """Whether a checked batch is made of arrays that need no flattening."""
    return isinstance(batch, Columns) or (isinstance(batch, np.ndarray) and batch.dtype.kind in "biufcUSmM")


def numeric_parts(batch: Any, n: int) -> dict[str, Rows]:
    """The components of a numeric batch, (n, d) floats each; one nameless component for a plain array."""
    if isinstance(batch, Columns):
        return {f"[{key_text(key)}]": numeric_rows(part, n) for key, part in batch.parts.items()}
    return {"": numeric_rows(batch, n)}


def numeric_rows(array: NDArray[Any], n: int) -> Rows:
    """An array of n outputs of any shape as (n, d) floats; labels become codes."""
    flat = array.reshape(n, -1) if array.size else np.zeros((n, 0))
    kind = flat.dtype.kind
    if kind == "f":
        return flat if flat.dtype.itemsize in (4, 8) else flat.astype(np.float64)
    if kind in "biu":
        return flat.astype(np.float64)
    if kind == "c":
        return np.concatenate([flat.real, flat.imag], axis=1).astype(np.float64)
    if kind in "mM":
        return flat.astype(np.int64).astype(np.float64)
    names, inverse = np.unique(flat, return_inverse=True)
    codes = np.array([label_code(_text(name)) for name in names])
    return codes[inverse].reshape(flat.shape)


def _text(name: Any) -> str:
    return str(label_text(name.item()))


def iterate_outputs(batch: Any, n: int) -> Iterator[Any]:
    """The outputs of a checked batch one by one; a batch that raised is n times its exception."""
    if isinstance(batch, Raised):
        return iter([batch.exception] * n)
    return iter(batch)
