"""Strict JSON, its canonical form and digest, and the names an entry may have."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

MAX_DEPTH = 50
MAX_INTEGER_BITS = 4096
MAX_NAME_LENGTH = 100
DIGEST_LENGTH = 32

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*", re.ASCII)
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul"} | {f"{port}{i}" for port in ("com", "lpt") for i in range(10)}
)


def validate_name(name: object) -> str:
    """Return ``name`` if it can be the name of an entry, on every file system.

    Raises:
        TypeError: if it is not a string.
        ValueError: unless it consists of 1 to 100 ASCII letters, digits, ``-``, ``_`` and ``.``, starts with
            a letter, digit or ``_``, holds no ``..``, does not end with ``.``, and is no device name.
    """
    if not isinstance(name, str):
        msg = f"snapshot name must be a string, got {name!r} of type {type(name).__name__}."
        raise TypeError(msg)
    if (
        len(name) > MAX_NAME_LENGTH
        or not _NAME.fullmatch(name)
        or ".." in name
        or name.endswith(".")
        or name.split(".")[0].lower() in _DEVICES
    ):
        msg = (
            f"snapshot name must be 1 to {MAX_NAME_LENGTH} letters, digits, '-', '_' or '.', starting with a "
            f"letter, digit or '_', without '..', not ending in '.', no device name of Windows; got {name!r}."
        )
        raise ValueError(msg)
    return name


def normalise(value: object, where: str) -> Any:
    """Return ``value`` built from dict, list, str, int, float, bool and None alone, keys sorted.

    Args:
        value: mappings with string keys, sequences and scalars, at most ``MAX_DEPTH`` levels deep.
        where: what the value is, for the error message.

    Raises:
        TypeError: for anything JSON cannot hold.
        ValueError: for NaN, infinities, lone surrogates, integers above 4096 bits, or too deep a nesting.
    """
    return _normalise(value, where, MAX_DEPTH)


def _normalise(value: object, where: str, depth: int) -> Any:
    if depth == 0:
        msg = f"{where.partition('[')[0]} is nested more than {MAX_DEPTH} levels deep."
        raise ValueError(msg)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, where)
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            msg = f"{where} must be an integer of at most {MAX_INTEGER_BITS} bits, got {value.bit_length()}."
            raise ValueError(msg)
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            msg = f"{where} must be finite, got {value!r}."
            raise ValueError(msg)
        return float(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                msg = f"{where} must have string keys, got {key!r} of type {type(key).__name__}."
                raise TypeError(msg)
        pairs = {_text(key, f"a key of {where}"): item for key, item in value.items()}
        return {key: _normalise(pairs[key], f"{where}[{key!r}]", depth - 1) for key in sorted(pairs)}
    if isinstance(value, list | tuple):
        return [_normalise(item, f"{where}[{i}]", depth - 1) for i, item in enumerate(value)]
    msg = (
        f"{where} must be JSON (None, bool, int, float, str, list, or dict with string keys), "
        f"got {value!r} of type {type(value).__name__}."
    )
    raise TypeError(msg)


def _text(value: str, where: str) -> str:
    text = str.__str__(value)
    if any("\ud800" <= character <= "\udfff" for character in text):
        msg = f"{where} must be text that UTF-8 can encode, got {text!r}."
        raise ValueError(msg)
    return text


def normalise_mapping(value: object, where: str) -> dict[str, Any]:
    """As :func:`normalise`, for a value that must be a mapping."""
    if not isinstance(value, Mapping):
        msg = f"{where} must be a mapping with string keys, got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)
    normal: dict[str, Any] = normalise(value, where)
    return normal


def inputs_sha256(inputs: Mapping[str, JSON]) -> str:
    """SHA-256, in hexadecimal, of the canonical JSON of ``inputs``: sorted keys, no spaces, UTF-8.

    Raises:
        TypeError, ValueError: as :func:`normalise`.
    """
    normal = normalise_mapping(inputs, "inputs")
    text = json.dumps(normal, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def inputs_digest(inputs: Mapping[str, JSON]) -> str:
    """The part of :func:`inputs_sha256` that names the files of an entry: its first 128 bits."""
    return inputs_sha256(inputs)[:DIGEST_LENGTH]


def is_digest(text: str) -> bool:
    """Whether ``text`` can be what :func:`inputs_digest` returns."""
    return re.fullmatch(rf"[0-9a-f]{{{DIGEST_LENGTH}}}", text, re.ASCII) is not None


def entry_key(name: str, inputs: Mapping[str, JSON]) -> str:
    """``<name>/<inputs digest>``, equal to :attr:`StoredEntry.key` of the entry that holds these inputs.

    Raises:
        TypeError, ValueError: if the name or the inputs are invalid.
    """
    return f"{validate_name(name)}/{inputs_digest(inputs)}"


def parse_strict(text: str) -> Any:
    """Parse JSON, refusing duplicate keys, NaN, infinities, overflowing numbers and absurd nesting.

    Raises:
        ValueError: saying what is wrong.
    """
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        msg = "is nested too deeply"
        raise ValueError(msg) from None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            msg = f"holds the key {key!r} twice"
            raise ValueError(msg)
        found[key] = value
    return found


def _refuse(constant: str) -> NoReturn:
    msg = f"holds {constant}, which is not JSON"
    raise ValueError(msg)


def _finite(literal: str) -> float:
    value = float(literal)
    if not math.isfinite(value):
        msg = f"holds the number {literal}, which is out of range"
        raise ValueError(msg)
    return value
