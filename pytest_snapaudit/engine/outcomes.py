"""Outputs of any type as rows of numbers, with columns that have names.

An output may be a number, a label, a vector, a tuple, a dict whose keys vary, ``None``, NaN, an infinity or
an exception. A :class:`Layout`, fixed on the first trials of both sides, turns every batch into an (n, d)
array of floats, so that attacks see one kind of thing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.errors import MechanismError

Rows = NDArray[np.floating[Any]]

KINDS = {"number": 0.0, "nan": 1.0, "infinity": 2.0, "none": 3.0, "missing": 4.0, "label": 5.0}
"""Codes in a kind column; an exception's code is derived from the name of its type."""


def label_code(text: str) -> float:
    """A number below 2**52 that stands for a label: equal labels, equal codes, in every process."""
    head = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(head, "big") >> 12)


def _exception_kind(raised: BaseException) -> float:
    return 16.0 + label_code(f"exception {type(raised).__name__}")


@dataclass(frozen=True)
class Raised:
    """A whole batch that raised instead of returning outputs."""

    exception: Exception


@dataclass(frozen=True)
class Layout:
    """How a batch of outputs becomes an (n, d) array.

    Attributes:
        structured: outputs are Python objects, flattened leaf by leaf; otherwise one numeric array.
        paths: for structured outputs, the leaves seen in the first trials, in sorted order.
        width: for array outputs, the number of columns that hold values.
        columns: a name per column of the encoded array.
        shape_column: array outputs had more than one width, or raised: a last column tells them apart.
        labels: codes of the labels seen, for naming them in reports.
    """

    structured: bool
    columns: tuple[str, ...]
    paths: tuple[str, ...] = ()
    width: int = 0
    shape_column: bool = False
    labels: tuple[tuple[float, str], ...] = ()

    def encode(self, raw: Any, n: int) -> Rows:
        """``n`` outputs as an (n, d) floating array; raises :class:`MechanismError` on a wrong row count."""
        batch = as_batch(raw, n)
        if self.structured:
            return self._encode_objects(batch, n)
        return self._encode_array(batch, n)

    def _encode_array(self, batch: Any, n: int) -> Rows:
        if isinstance(batch, Raised):
            values: Rows = np.full((n, self.width), np.nan)
            kind = _exception_kind(batch.exception)
        else:
            numeric = numeric_rows(batch, n)
            kind = float(numeric.shape[1])
            if numeric.shape[1] == self.width:
                values = numeric
            else:
                values = np.full((n, self.width), np.nan)
                shared = min(self.width, numeric.shape[1])
                values[:, :shared] = numeric[:, :shared]
        if not self.shape_column:
            return values
        return np.column_stack([values, np.full(n, kind)])

    def _encode_objects(self, batch: Any, n: int) -> Rows:
        if self.paths == ("",) and isinstance(batch, list) and all(type(o) in (float, int) for o in batch):
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
        """The label behind a code, if it was seen in the first trials."""
        return dict(self.labels).get(code)


def _encode_numbers(values: NDArray[np.float64]) -> Rows:
    kind = np.where(np.isnan(values), KINDS["nan"], np.where(np.isinf(values), KINDS["infinity"], 0.0))
    return np.column_stack([values, kind, np.zeros(len(values))])


def as_batch(raw: Any, n: int) -> Any:
    """Check that ``raw`` holds ``n`` outputs: an array, a :class:`Raised`, or a list of objects."""
    if isinstance(raw, Raised):
        return raw
    if isinstance(raw, Mapping):
        raw = _columns_of(raw, n)
    if isinstance(raw, tuple) and raw and all(_is_column(part, n) for part in raw):
        return np.column_stack([numeric_rows(np.asarray(part), n) for part in raw])
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


def _columns_of(raw: Mapping[Any, Any], n: int) -> tuple[Any, ...]:
    parts = tuple(raw[key] for key in sorted(raw, key=str))
    if not all(_is_column(part, n) for part in parts):
        msg = (
            f"a dict of outputs must hold arrays of length {n}, one entry per output, got "
            f"{ {key: type(raw[key]).__name__ for key in sorted(raw, key=str)} }."
        )
        raise MechanismError(msg)
    return parts


def _is_column(part: Any, n: int) -> bool:
    return isinstance(part, np.ndarray) and part.ndim >= 1 and len(part) == n and part.dtype.kind in "biufcUS"


def _check_length(length: int, n: int, what: str) -> None:
    if length != n:
        msg = f"{n} outputs were asked for but {length} came back, in {what}; return one row per output."
        raise MechanismError(msg)


def is_numeric(batch: Any) -> bool:
    """Whether a checked batch is an array that needs no flattening."""
    return isinstance(batch, np.ndarray) and batch.dtype.kind in "biufcUSmM"


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
    if kind in "US":
        names, inverse = np.unique(flat, return_inverse=True)
        codes = np.array([label_code(str(name)) for name in names])
        return codes[inverse].reshape(flat.shape)
    msg = f"outputs must be numbers, labels or a list of objects, got an array of dtype {array.dtype}."
    raise MechanismError(msg)


def iterate_outputs(batch: Any, n: int) -> Iterator[Any]:
    """The outputs of a checked batch one by one; a batch that raised is n times its exception."""
    if isinstance(batch, Raised):
        return iter([batch.exception] * n)
    return iter(batch)


def leaves(output: Any, path: str = "") -> Iterator[tuple[str, float, float]]:
    """The leaves of one output: (path, value, kind code)."""
    if isinstance(output, Mapping):
        yield f"{path}{{}}", float(len(output)), KINDS["number"]
        for key in output:
            yield from leaves(output[key], f"{path}[{_key_text(key)}]")
    elif isinstance(output, list | tuple):
        yield f"{path}()", float(len(output)), KINDS["number"]
        for i, part in enumerate(output):
            yield from leaves(part, f"{path}[{i}]")
    elif isinstance(output, set | frozenset):
        yield f"{path}{{}}", float(len(output)), KINDS["number"]
        for member in output:
            yield f"{path}[{_key_text(member)}]", 1.0, KINDS["number"]
    elif isinstance(output, np.ndarray) and output.ndim:
        yield from leaves(output.tolist(), path)
    elif hasattr(output, "detach") and hasattr(output, "cpu"):
        yield from leaves(output.detach().cpu().numpy(), path)
    else:
        yield (path, *_leaf(output.item() if isinstance(output, np.generic | np.ndarray) else output))


def _key_text(key: object) -> str:
    return repr(key) if isinstance(key, str | int | float | bool | tuple) else type(key).__name__


def _leaf(value: Any) -> tuple[float, float]:
    if value is None:
        return np.nan, KINDS["none"]
    if isinstance(value, BaseException):
        return np.nan, _exception_kind(value)
    if isinstance(value, complex):
        return value.real, KINDS["number"]
    if isinstance(value, Real) or hasattr(value, "__float__"):
        return _number(value)
    if isinstance(value, bytes):
        value = value.hex()
    return label_code(value if isinstance(value, str) else type(value).__name__), KINDS["label"]


def _number(value: Any) -> tuple[float, float]:
    try:
        number = float(value)
    except OverflowError:
        number = math.copysign(math.inf, 1 if value > 0 else -1)
    if math.isnan(number):
        return number, KINDS["nan"]
    return number, KINDS["infinity"] if math.isinf(number) else KINDS["number"]


def fit_layout(batches: list[tuple[Any, int]]) -> Layout:
    """The layout that fits the first trials of both sides.

    Args:
        batches: (raw outputs, number of outputs) per side.
    """
    checked = [(as_batch(raw, n), n) for raw, n in batches]
    arrays = [batch for batch, _ in checked if not isinstance(batch, Raised)]
    if all(is_numeric(batch) for batch in arrays):
        return _array_layout(checked)
    paths: set[str] = set()
    labels: dict[float, str] = {}
    for batch, n in checked:
        for output in iterate_outputs(batch, n):
            paths.update(path for path, _, _ in leaves(output))
            _collect_labels(output, labels)
    ordered = tuple(sorted(paths))
    columns = tuple(name for path in ordered for name in (_readable(path), f"type of {_readable(path)}"))
    return Layout(True, (*columns, "number of unexpected parts"), paths=ordered, labels=tuple(labels.items()))


def _array_layout(checked: list[tuple[Any, int]]) -> Layout:
    widths, raised, labels = set(), False, {}
    for batch, n in checked:
        if isinstance(batch, Raised):
            raised = True
            continue
        widths.add(numeric_rows(batch, n).shape[1])
        if batch.dtype.kind in "US":
            labels.update({label_code(str(name)): str(name) for name in np.unique(batch)})
    width = max(widths, default=0)
    shape_column = raised or len(widths) > 1 or width == 0
    names = ("output",) if width == 1 else tuple(f"coordinate {j}" for j in range(width))
    if shape_column:
        names = (*names, "number of values, or exception")
    return Layout(False, names, width=width, shape_column=shape_column, labels=tuple(sorted(labels.items())))


def _readable(path: str) -> str:
    if path.endswith(("()", "{}")):
        return f"length of output{path[:-2]}"
    return f"output{path}"


def _collect_labels(output: Any, labels: dict[float, str]) -> None:
    if isinstance(output, str):
        if len(labels) < 1000:
            labels[label_code(output)] = output
    elif isinstance(output, Mapping):
        for part in output.values():
            _collect_labels(part, labels)
    elif isinstance(output, list | tuple):
        for part in output:
            _collect_labels(part, labels)
    elif isinstance(output, np.str_):
        labels[label_code(str(output))] = str(output)


def kind_name(code: float) -> str:
    """A kind code in words."""
    return next((name for name, value in KINDS.items() if value == code), "an exception")
