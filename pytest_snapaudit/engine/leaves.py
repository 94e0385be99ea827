"""One output of any type as leaves: numbers and labels, each with a path and the kind of thing it is."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import hashlib
import itertools
import math
import pathlib
import re
import textwrap
import uuid
from collections.abc import Iterator, Mapping, Sequence, Set
from numbers import Real
from typing import Any

import numpy as np

KINDS = {"number": 0.0, "nan": 1.0, "infinity": 2.0, "none": 3.0, "missing": 4.0, "label": 5.0}
"""Codes in a kind column; an exception's code is derived from the name of its type."""

KIND_WORDS = {0.0: "a number", 1.0: "NaN", 2.0: "infinite", 3.0: "None", 4.0: "missing", 5.0: "a label"}
"""The same kinds, in words."""

_MESSAGE_WIDTH, _LONGEST_MESSAGE = 100, 1_000
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_SIMPLE = frozenset({float, int, bool, str, type(None)})
_Moment = datetime.date | datetime.time | datetime.timedelta
_Printable = _Moment | uuid.UUID | pathlib.PurePath
_EPOCH = datetime.datetime(1970, 1, 1)


def label_code(text: str) -> float:
    """A number below 2**52 that stands for a label: equal labels, equal codes, in every process."""
    head = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(head, "big") >> 12)


def exception_kind(raised: BaseException) -> float:
    """The code of an exception in a kind column."""
    return 16.0 + label_code(f"exception {type(raised).__name__}")


def message_of(raised: BaseException) -> str:
    """What an exception says, without addresses in memory, which are those of a process and not of the output."""
    try:
        return _ADDRESS.sub("0x", str(raised))[:_LONGEST_MESSAGE]
    except Exception:  # a message that cannot be read says nothing
        return ""


def kind_text(atom: Any) -> str:
    """The type of an atom in words; an exception with the beginning of its message."""
    name = type(atom).__name__
    message = message_of(atom) if isinstance(atom, BaseException) else ""
    return f"{name}: {textwrap.shorten(message, _MESSAGE_WIDTH, placeholder='...')}" if message else name


def leaves(output: Any, path: str = "") -> Iterator[tuple[str, float, float]]:
    """The leaves of one output: (path, value, kind code)."""
    for where, atom in atoms(output, path):
        yield (where, *encoded(atom))


def atoms(output: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The parts of one output that have no parts, with their paths; sizes of containers are parts too."""
    if type(output) in _SIMPLE:
        yield path, output
        return
    if _is_array_like(output):
        output = plain(output)
    if isinstance(output, Real | str | bytes | bytearray | BaseException | enum.Enum) or output is None:
        yield path, output
        if isinstance(output, BaseException) and (message := message_of(output)):
            yield f"{path}.message", message
    elif isinstance(output, complex):
        yield from ((f"{path}.real", output.real), (f"{path}.imag", output.imag))
    elif isinstance(output, Mapping | Set):
        yield f"{path}{{}}", len(output)
        for key in output:
            part = output[key] if isinstance(output, Mapping) else 1.0
            yield from atoms(part, f"{path}[{key_text(key)}]")
    elif isinstance(output, Sequence):
        yield f"{path}()", len(output)
        for i, part in enumerate(output):
            yield from atoms(part, f"{path}[{i}]")
    elif dataclasses.is_dataclass(output) and not isinstance(output, type):
        for field in dataclasses.fields(output):
            yield from atoms(getattr(output, field.name), f"{path}.{field.name}")
    else:
        yield path, output


def _is_array_like(output: Any) -> bool:
    return hasattr(output, "__array__") or (hasattr(output, "detach") and hasattr(output, "cpu"))


def plain(output: Any) -> Any:
    """Arrays, scalars of NumPy and tensors as nested lists, dicts and numbers; anything else as it is."""
    if hasattr(output, "detach") and hasattr(output, "cpu"):
        output = output.detach().cpu().numpy()
    array = np.asarray(output)
    if array.dtype == object and array.ndim == 0:
        return array.item()
    listed = array.tolist()
    if isinstance(listed, np.generic):
        return complex(listed) if array.dtype.kind == "c" else float(listed)
    return listed if array.dtype.names is None else _records(listed, array.dtype.names)


def _records(listed: Any, names: tuple[str, ...]) -> Any:
    if isinstance(listed, list):
        return [_records(part, names) for part in listed]
    return dict(zip(names, listed, strict=True))


def key_text(key: object) -> str:
    """A key of a mapping, or a member of a set, as text that is the same in every process."""
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, enum.Enum):
        return f"{type(key).__name__}.{key.name}"
    if isinstance(key, str):
        return repr(str(key))
    if isinstance(key, int | float | complex | bytes) or key is None:
        return _number_text(key) if isinstance(key, int | float) else repr(key)
    if isinstance(key, tuple):
        return f"({', '.join(map(key_text, key))})"
    if isinstance(key, frozenset):
        return f"{{{', '.join(sorted(map(key_text, key)))}}}"
    return str(key) if isinstance(key, _Printable) else type(key).__name__


def _number_text(key: float) -> str:
    if isinstance(key, bool):
        return repr(key)
    if isinstance(key, float):
        return repr(float(key))
    return repr(int(key)) if abs(key) < 10**100 else hex(key)


def label_text(atom: Any) -> str | None:
    """The text that stands for an atom that is no number; None for numbers, None and exceptions."""
    if isinstance(atom, str):
        return str(atom)
    if isinstance(atom, bytes | bytearray):
        return bytes(atom).hex()
    if atom is None or isinstance(atom, BaseException | Real | _Moment):
        return None
    if isinstance(atom, enum.Enum):
        return f"{type(atom).__name__}.{atom.name}"
    if isinstance(atom, _Printable):
        return str(atom)
    return None if _as_number(atom) is not None else type(atom).__name__


def is_opaque(output: Any) -> bool:
    """Whether an output is an object of which nothing but its type can be told."""
    parts = [atom for _, atom in itertools.islice(atoms(output), 2)]
    if len(parts) != 1 or parts[0] is None:
        return False
    known = isinstance(parts[0], Real | str | bytes | bytearray | BaseException | enum.Enum | _Printable)
    return not known and _as_number(parts[0]) is None


def _seconds(moment: _Moment) -> float:
    """A time as seconds, a date as days: numbers whose order is theirs."""
    if isinstance(moment, datetime.timedelta):
        return moment.total_seconds()
    if isinstance(moment, datetime.datetime):
        return moment.timestamp() if moment.tzinfo is not None else (moment - _EPOCH).total_seconds()
    if isinstance(moment, datetime.date):
        return float(moment.toordinal())
    return 3600.0 * moment.hour + 60.0 * moment.minute + moment.second + 1e-6 * moment.microsecond


def _as_number(atom: Any) -> float | None:
    if not hasattr(atom, "__float__"):
        return None
    try:
        return float(atom)
    except OverflowError:
        return math.inf if atom > 0 else -math.inf
    except (TypeError, ValueError):
        return None


def encoded(atom: Any) -> tuple[float, float]:
    """An atom as (value, kind code)."""
    number: float | None
    if isinstance(atom, float | int):
        number = _as_number(atom)
    elif isinstance(atom, _Moment):
        number = _seconds(atom)
    elif atom is None:
        return np.nan, KINDS["none"]
    elif isinstance(atom, BaseException):
        return np.nan, exception_kind(atom)
    else:
        text = label_text(atom)
        if text is not None:
            return label_code(text), KINDS["label"]
        number = _as_number(atom)
    if number is None or math.isnan(number):
        return np.nan, KINDS["nan"]
    return number, KINDS["infinity"] if math.isinf(number) else KINDS["number"]
