"""Writes the texts of the paper's tables: ``python examples/paper/texts/compose.py``.

A schema of ``schemas/*.txt`` is one line of text with choices: ``{a|b}`` picks an option, ``{name=a|b}`` picks one
and names it, ``{name}`` repeats it. Lines after ``== Label`` carry that label. In dialogues `` // `` starts a new
line, and what follows ``=>`` is the summary. Everything was written for this project and names nobody.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
PER_SCHEMA = {"news": 4, "questions": 4, "dialogues": 10, "articles": 10}
_SLOT = re.compile(r"\{([^{}]*)\}")


def choices(schema: str) -> list[tuple[str, ...]]:
    """The options of every slot that offers a choice, in order."""
    return [tuple(body.rpartition("=")[2].split("|")) for body in _SLOT.findall(schema) if "|" in body]


def fill(schema: str, picks: tuple[str, ...]) -> str:
    """The text with the given options, one per slot that offers a choice."""
    names: dict[str, str] = {}
    pending = iter(picks)

    def slot(match: re.Match[str]) -> str:
        body = match.group(1)
        if "|" not in body:
            return names[body]
        pick, name = next(pending), body.rpartition("=")[0]
        if name:
            names[name] = pick
        return pick

    return _SLOT.sub(slot, schema)


def variants(schema: str, count: int) -> list[str]:
    """``count`` distinct texts of one schema, drawn with a fixed seed.

    Raises:
        ValueError: the schema has fewer texts.
    """
    rng = random.Random(schema)
    slots, seen = choices(schema), dict[str, None]()
    for _ in range(200 * count):
        seen.setdefault(fill(schema, tuple(rng.choice(options) for options in slots)))
        if len(seen) == count:
            return list(seen)
    msg = f"the schema gives fewer than {count} distinct texts; add options to it: {schema!r}"
    raise ValueError(msg)


def records(kind: str) -> Iterator[dict[str, str]]:
    """The records of one kind, schema by schema."""
    label = ""
    for line in (HERE / "schemas" / f"{kind}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            label = line[3:]
            continue
        for text in variants(line, PER_SCHEMA[kind]):
            if label:
                yield {"text": text, "label": label}
            else:
                body, summary = text.split(" => ")
                yield {"text": body.replace(" // ", "\n"), "summary": summary[0].upper() + summary[1:]}


def rendered(kind: str) -> str:
    """One JSON object per line."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records(kind))


def main() -> None:
    for kind in PER_SCHEMA:
        (HERE / f"{kind}.jsonl").write_text(rendered(kind), encoding="utf-8")


if __name__ == "__main__":
    main()
