"""Outputs of any type as rows of numbers, with columns that have names.

An output may be a number, a label, a vector, a tuple, a dict whose keys vary, ``None``, NaN, an infinity or
an exception. A :class:`Layout`, fixed on the first trials of both sides, turns every batch into an (n, d)
array of floats, so that attacks see one kind of thing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.errors import MechanismError
from pytest_snapaudit.engine.leaves import (
    KINDS,
    atoms,
    exception_kind,
    key_text,
    label_code,
    label_text,
    leaves,
)

Rows = NDArray[np.floating[Any]]

_MAX_LABELS = 1000


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


@dataclass(frozen=True)
class Layout:
    """How a batch of outputs becomes an (n, d) array.

    Attributes:
        structured: outputs are Python objects, flattened leaf by leaf; otherwise numeric arrays.
        columns: a name per column of the encoded array.
        paths: for structured outputs, the leaves seen in the first trials, in sorted order.
        parts: for array outputs, each component with its number of columns.
        shape_column: array outputs had more than one form, or raised: a last column tells them apart.
        labels: codes of the labels and exceptions seen, for naming them in reports.
    """

    structured: bool
    columns: tuple[str, ...]
    paths: tuple[str, ...] = ()
    parts: tuple[tuple[str, int], ...] = ()
    shape_column: bool = False
    labels: tuple[tuple[float, str], ...] = ()

    @property
    def width(self) -> int:
        """For array outputs, the number of columns that hold values."""
        return sum(width for _, width in self.parts)

    def encode(self, raw: Any, n: int) -> Rows:
        """``n`` outputs as an (n, d) floating array; raises :class:`MechanismError` on a wrong row count."""
        batch = as_batch(raw, n)
        if self.structured:
            return self._encode_objects(batch, n)
        if isinstance(batch, Raised):
            return self._with_kind(np.full((n, self.width), np.nan), exception_kind(batch.exception))
        if not is_numeric(batch):
            return self._encode_unexpected(batch, n)
        return self._encode_parts(numeric_parts(batch, n), n)

    def _with_kind(self, values: Rows, kind: float | NDArray[np.float64]) -> Rows:
        if not self.shape_column:
            return values
        return np.column_stack([values, np.broadcast_to(kind, len(values))])

    def _encode_parts(self, given: dict[str, Rows], n: int) -> Rows:
        if tuple((key, part.shape[1]) for key, part in given.items()) == self.parts:
            values = next(iter(given.values())) if len(given) == 1 else np.concatenate([*given.values()], axis=1)
            return self._with_kind(values, float(self.width))
        values = np.full((n, self.width), np.nan)
        start = 0
        for key, width in self.parts:
            if key in given:
                shared = min(width, given[key].shape[1])
                values[:, start : start + shared] = given[key][:, :shared]
            start += width
        return self._with_kind(values, _form_code(given))

    def _encode_unexpected(self, batch: Any, n: int) -> Rows:
        """Objects where the first trials were arrays."""
        values, kinds = np.full((n, self.width), np.nan), np.empty(n)
        for i, output in enumerate(batch):
            found = [leaf for leaf in leaves(output) if not leaf[0].endswith(("()", "{}"))]
            kinds[i] = float(len(found))
            if all(kind in _NUMERIC_KINDS for _, _, kind in found):
                shared = min(self.width, len(found))
                values[i, :shared] = [value for _, value, _ in found[:shared]]
            else:
                kinds[i] = next(kind for _, _, kind in found if kind not in _NUMERIC_KINDS) + self.width
        return self._with_kind(values, kinds)

    def _encode_objects(self, batch: Any, n: int) -> Rows:
        if self.paths == ("",) and isinstance(batch, list) and all(type(o) is float for o in batch):
            return _encode_numbers(np.array(batch, dtype=np.float64))
        where = {path: 2 * i for i, path in enumerate(self.paths)}
        encoded = np.full((n, 2 * len(self.paths) + 1), np.nan)
        encoded[:, 1:-1:2] = KINDS["missing"]
        encoded[:, -1] = 0.0
        for i, output in enumerate(iterate_outputs(batch, n)):
            for path, value, kind in leaves(output):
                at = where.get(path)
                if at is None:
                    encoded[i, -1] += 1.0
                else:
                    encoded[i, at], encoded[i, at + 1] = value, kind
        return encoded

    def label_name(self, code: float) -> str | None:
        """The label or exception behind a code, if it was seen in the first trials."""
        return dict(self.labels).get(code)


_NUMERIC_KINDS = (KINDS["number"], KINDS["nan"], KINDS["infinity"])


def _encode_numbers(values: NDArray[np.float64]) -> Rows:
    kind = np.where(np.isnan(values), KINDS["nan"], np.where(np.isinf(values), KINDS["infinity"], 0.0))
    return np.column_stack([values, kind, np.zeros(len(values))])


def as_batch(raw: Any, n: int) -> Any:
    """Check that ``raw`` holds ``n`` outputs: an array, :class:`Columns`, :class:`Raised` or a list."""
    if isinstance(raw, Raised):
        return raw
    if isinstance(raw, Mapping):
        return _columns_of(raw, n)
    if isinstance(raw, tuple) and raw and all(_is_column(part, n) for part in raw):
        return Columns(dict(enumerate(map(np.asarray, raw))), named=False)
    if hasattr(raw, "detach") and hasattr(raw, "cpu"):
        raw = raw.detach().cpu().numpy()
    if isinstance(raw, list | tuple):
        _check_length(len(raw), n, f"a {type(raw).__name__}")
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
        kinds = {key: type(part).__name__ for key, part in parts.items()}
        msg = f"a dict of outputs must hold arrays of length {n}, one entry per output, got {kinds}."
        raise MechanismError(msg)
    return Columns(parts, named=True)


def _is_column(part: Any, n: int) -> bool:
    return isinstance(part, np.ndarray) and part.ndim >= 1 and len(part) == n and part.dtype.kind in "biufcUS"


def _check_length(length: int, n: int, what: str) -> None:
    if length != n:
        msg = f"{n} outputs were asked for but {length} came back, in {what}; return one row per output."
        raise MechanismError(msg)


def is_numeric(batch: Any) -> bool:
    """Whether a checked batch is made of arrays that need no flattening."""
    return isinstance(batch, Columns) or (
        isinstance(batch, np.ndarray) and batch.dtype.kind in "biufcUSmM"
    )


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


def fit_layout(batches: list[tuple[Any, int]]) -> Layout:
    """The layout that fits the first trials of both sides.

    Args:
        batches: (raw outputs, number of outputs) per side.
    """
    checked = [(as_batch(raw, n), n) for raw, n in batches]
    if all(isinstance(batch, Raised) or is_numeric(batch) for batch, _ in checked):
        return _array_layout(checked)
    paths: set[str] = set()
    labels: dict[float, str] = {}
    for batch, n in checked:
        for output in iterate_outputs(batch, n):
            for path, atom in atoms(output):
                paths.add(path)
                _note_label(atom, labels)
    ordered = tuple(sorted(paths))
    columns = tuple(name for path in ordered for name in (_readable(path), f"type of {_readable(path)}"))
    return Layout(True, (*columns, "number of unexpected parts"), paths=ordered, labels=tuple(labels.items()))


def _array_layout(checked: list[tuple[Any, int]]) -> Layout:
    forms: list[tuple[tuple[str, int], ...]] = []
    labels: dict[float, str] = {}
    raised = False
    for batch, n in checked:
        if isinstance(batch, Raised):
            raised = True
            _note_label(batch.exception, labels)
            continue
        given = numeric_parts(batch, n)
        forms.append(tuple((key, part.shape[1]) for key, part in given.items()))
        labels.update(_labels_of(batch))
    widths: dict[str, int] = {}
    for key, width in (pair for form in forms for pair in form):
        widths[key] = max(width, widths.get(key, 0))
    parts = tuple(widths.items()) if len(set(forms)) > 1 else forms[0] if forms else (("", 0),)
    several = len(set(forms)) > 1
    for form in forms if several else []:
        labels.setdefault(_form_code_of(form), " and ".join(f"output{key}" for key, _ in form))
    names = tuple(name for key, width in parts for name in _column_names(key, width))
    shape_column = raised or several or sum(widths.values()) == 0
    if shape_column:
        names = (*names, "number of values, or exception")
    return Layout(False, names, parts=parts, shape_column=shape_column, labels=tuple(sorted(labels.items())))


def _column_names(key: str, width: int) -> tuple[str, ...]:
    if width == 1:
        return (f"output{key}",)
    return tuple(f"output{key}[{j}]" if key else f"coordinate {j}" for j in range(width))


def _form_code(given: dict[str, Rows]) -> float:
    return _form_code_of(tuple((key, part.shape[1]) for key, part in given.items()))


def _form_code_of(form: tuple[tuple[str, int], ...]) -> float:
    """A number that stands for the components of an output: how many values for a plain array."""
    if [key for key, _ in form] == [""]:
        return float(form[0][1])
    return label_code(repr(form))


def _labels_of(batch: Any) -> dict[float, str]:
    found: dict[float, str] = {}
    arrays = batch.parts.values() if isinstance(batch, Columns) else [batch]
    for array in arrays:
        if array.dtype.kind in "US":
            for name in np.unique(array)[:_MAX_LABELS]:
                _note_label(name.item(), found)
    return found


def _note_label(atom: Any, labels: dict[float, str]) -> None:
    if type(atom) is float or type(atom) is int or len(labels) >= _MAX_LABELS:
        return
    if isinstance(atom, BaseException):
        labels[exception_kind(atom)] = type(atom).__name__
        return
    text = label_text(atom)
    if text is not None:
        labels[label_code(text)] = str(atom) if isinstance(atom, str | bytes) else text


def _readable(path: str) -> str:
    if path.endswith(("()", "{}")):
        return f"length of output{path[:-2]}"
    return f"output{path}"
