"""Outputs of any type as rows of numbers, with columns that have names.

An output may be a number, a label, a vector, a tuple, a dict whose keys vary, ``None``, NaN, an infinity or
an exception. A :class:`Layout`, fixed on the first trials of both sides, turns every batch into an (n, d)
array of floats, so that attacks see one kind of thing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_snapaudit.engine.batches import (
    Columns,
    Raised,
    Rows,
    as_batch,
    is_numeric,
    iterate_outputs,
    numeric_parts,
)
from pytest_snapaudit.engine.leaves import (
    KIND_WORDS,
    KINDS,
    atoms,
    encoded,
    exception_kind,
    kind_text,
    label_code,
    label_text,
    leaves,
)
from pytest_snapaudit.engine.texts import MANY_LABELS, TextReader, fit_reader
from pytest_snapaudit.engine.uniform import uniform_numbers

__all__ = ["FORM", "KIND_PREFIX", "Layout", "Raised", "Rows", "as_batch", "fit_layout"]

KIND_PREFIX, FORM = "type of ", "form of the output"
"""Names of columns whose values stand for kinds of things."""

_MAX_LABELS, _MAX_PATHS, _MAX_TEXTS = 1000, 200, 4


@dataclass(frozen=True)
class Layout:
    """How a batch of outputs becomes an (n, d) array.

    Attributes:
        structured: outputs are Python objects, flattened leaf by leaf; otherwise numeric arrays.
        columns: a name per column of the encoded array.
        paths: for structured outputs, the leaves seen (most often) in the first trials, in sorted order.
        parts: for array outputs, each component with its number of columns.
        shape_column: array outputs had more than one form, or raised: a last column tells them apart.
        labels: codes of the labels seen, for naming them in reports.
        kinds: codes of the kinds of parts (exceptions by type) and of the forms seen, likewise.
        texts: for structured outputs, how to read the leaves that are texts; their numbers follow the leaves.
    """

    structured: bool
    columns: tuple[str, ...]
    paths: tuple[str, ...] = ()
    parts: tuple[tuple[str, int], ...] = ()
    shape_column: bool = False
    labels: tuple[tuple[float, str], ...] = ()
    kinds: tuple[tuple[float, str], ...] = ()
    texts: tuple[tuple[str, TextReader], ...] = ()

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
            many = _many_numbers(batch)
            if many is not None and many[1].shape[1] == self.width:
                return self._with_kind(many[1], _form_code_of(self.parts))
            return self._encode_unexpected(batch, n)
        return self._encode_parts(numeric_parts(batch, n), n)

    def _with_kind(self, values: Rows, kind: float | NDArray[np.float64]) -> Rows:
        if not self.shape_column:
            return values
        return np.column_stack([values, np.broadcast_to(kind, len(values))])

    def _encode_parts(self, given: dict[str, Rows], n: int) -> Rows:
        if tuple((key, part.shape[1]) for key, part in given.items()) == self.parts:
            values = (
                next(iter(given.values())) if len(given) == 1 else np.concatenate([*given.values()], axis=1)
            )
            return self._with_kind(values, _form_code_of(self.parts))
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
                kind = next(kind for _, _, kind in found if kind not in _NUMERIC_KINDS)
                kinds[i] = kind if kind > max(KINDS.values()) else -1.0 - kind
        return self._with_kind(values, kinds)

    def _encode_objects(self, batch: Any, n: int) -> Rows:
        uniform = uniform_numbers(batch) if isinstance(batch, list) else None
        if uniform is not None:
            return self._encode_uniform(*uniform)
        where = {path: 2 * i for i, path in enumerate(self.paths)}
        leaf_columns = 2 * len(self.paths)
        starts = np.cumsum([leaf_columns, *(reader.width for _, reader in self.texts)])
        readers = {path: (int(at), reader) for at, (path, reader) in zip(starts, self.texts, strict=False)}
        table = self._empty_table(n)
        for i, output in enumerate(iterate_outputs(batch, n)):
            for path, atom in atoms(output):
                at = where.get(path)
                if at is None:
                    table[i, -1] += 1.0
                    continue
                table[i, at], table[i, at + 1] = encoded(atom)
                if path in readers and isinstance(atom, str):
                    start, reader = readers[path]
                    table[i, start : start + reader.width] = reader.read(atom)
        return table

    def _encode_uniform(self, paths: list[str], values: NDArray[np.float64]) -> Rows:
        where = {path: 2 * i for i, path in enumerate(self.paths)}
        table = self._empty_table(len(values))
        for path, column in zip(paths, values.T, strict=True):
            at = where.get(path)
            if at is None:
                table[:, -1] += 1.0
                continue
            table[:, at] = column
            table[:, at + 1] = np.where(
                np.isnan(column), KINDS["nan"], np.where(np.isinf(column), KINDS["infinity"], KINDS["number"])
            )
        return table

    def _empty_table(self, n: int) -> NDArray[np.float64]:
        leaf_columns = 2 * len(self.paths)
        table = np.full((n, leaf_columns + sum(reader.width for _, reader in self.texts) + 1), np.nan)
        table[:, 1:leaf_columns:2] = KINDS["missing"]
        table[:, -1] = 0.0
        return table

    def names_of(self, column: int) -> dict[float, str]:
        """What values of a column stand for, as far as it was seen in the first trials; empty for numbers."""
        name = self.columns[column]
        if name.startswith(KIND_PREFIX):
            return {code: KIND_WORDS.get(code, f"an exception ({text})") for code, text in self.kinds}
        return dict(self.kinds) if name == FORM else {code: repr(text) for code, text in self.labels}

    @property
    def missing_text(self) -> str:
        """What NaN in a column of values stands for, as far as it was seen in the first trials."""
        if not self.structured:
            return "NaN or absent" if self.shape_column else "NaN"
        seen = [
            KIND_WORDS.get(code, f"an exception ({text})") for code, text in self.kinds if code not in _VALUES
        ]
        return " or ".join(seen[:4]) or "missing"


_VALUES = (KINDS["number"], KINDS["infinity"], KINDS["label"])
_NUMERIC_KINDS = (KINDS["number"], KINDS["nan"], KINDS["infinity"])


def fit_layout(batches: list[tuple[Any, int]]) -> Layout:
    """The layout that fits the first trials of both sides.

    Args:
        batches: (raw outputs, number of outputs) per side.
    """
    checked = [(as_batch(raw, n), n) for raw, n in batches]
    arrays = all(isinstance(batch, Raised) or is_numeric(batch) for batch, _ in checked)
    if arrays and not any(_are_texts(batch) for batch, _ in checked):
        return _array_layout(checked)
    many = [_many_numbers(batch) for batch, _ in checked]
    if all(side is not None and side[0] == (many[0] or ((),))[0] for side in many):
        columns = (many[0] or ((),))[0]
        return Layout(False, columns, parts=(("", len(columns)),))
    paths: Counter[str] = Counter()
    labels: dict[float, str] = {}
    kinds: dict[float, str] = {}
    strings: list[dict[str, list[str]]] = [{} for _ in checked]
    for (batch, n), of_side in zip(checked, strings, strict=True):
        for output in iterate_outputs(batch, n):
            for path, atom in atoms(output):
                paths[path] += 1
                if isinstance(atom, str):
                    of_side.setdefault(path, []).append(str(atom))
                kinds.setdefault(encoded(atom)[1], kind_text(atom))
                _note_label(atom, labels)
    if len(set(paths.values()) | {sum(n for _, n in checked)}) > 1:
        kinds[KINDS["missing"]] = "missing"
    ordered = tuple(sorted(sorted(paths, key=lambda path: (-paths[path], path))[:_MAX_PATHS]))
    columns = tuple(name for path in ordered for name in (_readable(path), KIND_PREFIX + _readable(path)))
    texts = tuple(_text_readers(ordered, strings))
    read = tuple(name for path, reader in texts for name in reader.columns(_readable(path)))
    return Layout(
        True,
        (*columns, *read, "number of unexpected parts"),
        paths=ordered,
        labels=tuple(sorted(labels.items())),
        kinds=tuple(sorted(kinds.items())),
        texts=texts,
    )


def _many_numbers(batch: Any) -> tuple[tuple[str, ...], Rows] | None:
    """Names and values of uniform outputs with more numbers than leaves are read one by one."""
    uniform = uniform_numbers(batch) if isinstance(batch, list) else None
    if uniform is None or len(uniform[0]) <= _MAX_PATHS:
        return None
    kept = [j for j, path in enumerate(uniform[0]) if not path.endswith(("()", "{}"))]
    return tuple(_readable(uniform[0][j]) for j in kept), uniform[1][:, kept]


def _text_readers(
    paths: tuple[str, ...], strings: list[dict[str, list[str]]]
) -> Iterator[tuple[str, TextReader]]:
    """Readers for the leaves at which many different strings were seen; for a few of them at most."""
    many = [
        path for path in paths if len({*(s for side in strings for s in side.get(path, ()))}) > MANY_LABELS
    ]
    for path in many[:_MAX_TEXTS]:
        yield path, fit_reader([side.get(path, ()) for side in strings])


def _are_texts(batch: Any) -> bool:
    return (
        isinstance(batch, np.ndarray)
        and batch.dtype.kind == "U"
        and batch.ndim == 1
        and len(np.unique(batch)) > MANY_LABELS
    )


def _array_layout(checked: list[tuple[Any, int]]) -> Layout:
    forms: list[tuple[tuple[str, int], ...]] = []
    labels: dict[float, str] = {}
    kinds: dict[float, str] = {}
    raised = False
    for batch, n in checked:
        if isinstance(batch, Raised):
            raised = True
            kinds[exception_kind(batch.exception)] = kind_text(batch.exception)
            continue
        given = numeric_parts(batch, n)
        forms.append(tuple((key, part.shape[1]) for key, part in given.items()))
        _note_array_labels(batch, labels)
    widths: dict[str, int] = {}
    for key, width in (pair for form in forms for pair in form):
        widths[key] = max(width, widths.get(key, 0))
    parts = tuple(widths.items()) if len(set(forms)) > 1 else forms[0] if forms else (("", 0),)
    several = len(set(forms)) > 1
    if several or raised:
        kinds.update({_form_code_of(form): _form_text(form) for form in [*forms, parts]})
    names = tuple(name for key, width in parts for name in _column_names(key, width))
    shape_column = raised or several or sum(widths.values()) == 0
    if shape_column:
        names = (*names, FORM)
    return Layout(
        False,
        names,
        parts=parts,
        shape_column=shape_column,
        labels=tuple(sorted(labels.items())),
        kinds=tuple(sorted(kinds.items())),
    )


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


def _form_text(form: tuple[tuple[str, int], ...]) -> str:
    if [key for key, _ in form] == [""]:
        return f"{form[0][1]} values"
    return f"keys {', '.join(f'{key[1:-1]} ({width})' if width > 1 else key[1:-1] for key, width in form)}"


def _note_array_labels(batch: Any, labels: dict[float, str]) -> None:
    for array in batch.parts.values() if isinstance(batch, Columns) else [batch]:
        if array.dtype.kind in "US":
            for name in np.unique(array)[:_MAX_LABELS]:
                _note_label(name.item(), labels)


def _note_label(atom: Any, labels: dict[float, str]) -> None:
    """Remember what a label will be called."""
    text = None if type(atom) is float or type(atom) is int else label_text(atom)
    if text is not None and len(labels) < _MAX_LABELS:
        labels[label_code(text)] = str(atom) if isinstance(atom, str | bytes) else text


def _readable(path: str) -> str:
    if path.endswith(("()", "{}")):
        return f"length of output{path[:-2]}"
    return f"output{path}"
