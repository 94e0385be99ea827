"""Which fields of the recorded inputs differ from those of now."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

ABSENT = "(absent)"

_MAX_LENGTH = 80


def differing_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Lines ``path: old -> new``, one per differing leaf of two normalised JSON mappings, sorted by path."""
    return [f"{path}: {before} -> {after}" for path, before, after in _walk("", old, new)]


def _walk(path: str, old: Any, new: Any) -> Iterator[tuple[str, str, str]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            inner = f"{path}.{key}" if path else key
            if key not in old:
                yield inner, ABSENT, _short(new[key])
            elif key not in new:
                yield inner, _short(old[key]), ABSENT
            else:
                yield from _walk(inner, old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _walk(f"{path}[{i}]", before, after)
    elif _text(old) != _text(new):
        yield path, *_short_pair(_text(old), _text(new))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _short(value: Any) -> str:
    text = _text(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 3]}..."


def _short_pair(old: str, new: str) -> tuple[str, str]:
    """Shorten two different texts around the first place where they differ."""
    if max(len(old), len(new)) <= _MAX_LENGTH:
        return old, new
    same = next(
        (i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    start = max(0, same - _MAX_LENGTH // 4)
    return _window(old, start), _window(new, start)


def _window(text: str, start: int) -> str:
    end = start + _MAX_LENGTH
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"
