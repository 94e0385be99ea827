"""The five canary/context pairs of every task, their prompts, and the inputs that identify a recording.

Neighbours differ by the replacement of one exemplar, and the auditor chooses both: the same text with one answer in the
reference context and with another one in the context with the canary. The query is that text, so the partition that
holds the exemplar repeats the answer it was shown. Each partition holds one exemplar; the canary's is the first.

A small model prefers some labels whatever it is shown. So each label is also scored after public exemplars, one per
label, and the average is subtracted (calibration as in Zhao et al., "Calibrate Before Use", ICML 2021). The public
exemplars are the same in both contexts.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from printed import SIGNALS

from dp_icl.models import JSON, digest

TEXTS = Path(__file__).parent / "texts"
PAIRS = 5
EXPERTS = 8
"""Partitions recorded per classification context: the first 3 vote, all are experts and serve the sweep."""
KEYWORD_PARTITIONS = 8
SUMMARY_PARTITIONS = (1, 2)
VOTE_SHOTS = (1, 2, 4)
SUMMARY_SHOTS = (1, 2)
VOTERS = 3

LABELS = {
    "news": ("World", "Sports", "Business", "Science"),
    "questions": ("Abbreviation", "Entity", "Description", "Human", "Location", "Number"),
}
KEYWORDS = ("yes", "no")
TEMPLATES = {
    "news": "News: {text}\nTopic:{answer}",
    "questions": "Text: {text}\nCategory:{answer}",
    "dialogues": "Text: {text}\nSummary:{answer}",
    "articles": "Text: {text}\nSummary:{answer}",
}
KEYWORD_TEMPLATE = "Text: {text}\nCategory:{answer}"
PUBLIC = "The committee will meet again next week."
"""The text of every public exemplar."""


class Exemplar(NamedTuple):
    """One private record: a text and the answer given to it."""

    text: str
    answer: str


Context = tuple[tuple[Exemplar, ...], ...]
"""Partitions of exemplars."""


@dataclass(frozen=True)
class Pair:
    """Neighbouring contexts, the query, and the answers that the canary's exemplar has in either.

    Attributes:
        answers: (without, with) the canary.
    """

    query: str
    answers: tuple[str, str]
    reference: Context
    canary: Context

    @property
    def sides(self) -> tuple[Context, Context]:
        """Reference first."""
        return self.reference, self.canary


@cache
def exemplars(kind: str) -> tuple[Exemplar, ...]:
    """All exemplars of ``news``, ``questions``, ``dialogues`` or ``articles`` with their labels or summaries."""
    lines = (TEXTS / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return tuple(Exemplar(record["text"], record.get("label") or record["summary"]) for record in records)


def prompt(template: str, shown: Sequence[Exemplar], query: str) -> str:
    """Every exemplar with its answer, then the query with its answer left open."""
    parts = [template.format(text=_line(exemplar.text), answer=" " + exemplar.answer) for exemplar in shown]
    return "\n\n".join([*parts, template.format(text=_line(query), answer="")])


def _line(text: str) -> str:
    return text.replace("\n", " ")


def prompts(template: str, context: Context, query: str) -> list[str]:
    """One prompt per partition."""
    return [prompt(template, partition, query) for partition in context]


def _pair(
    query: str,
    answers: tuple[str, str],
    others: Sequence[Exemplar],
    partitions: int,
    shots: int,
    labels: Sequence[str] = (),
) -> Pair:
    """Partition 0 ends with the canary's exemplar; ``others`` fill up all partitions with ``shots`` exemplars.

    After them come the public exemplars, one partition per label.
    """
    supply = iter(others)
    first = tuple(next(supply) for _ in range(shots - 1))
    rest = tuple(tuple(next(supply) for _ in range(shots)) for _ in range(partitions - 1))
    public = tuple((Exemplar(PUBLIC, label),) for label in labels)
    reference, canary = (((*first, Exemplar(query, answer)), *rest, *public) for answer in answers)
    return Pair(query, answers, reference, canary)


def classification(kind: str, pair: int, *, partitions: int = EXPERTS, shots: int = 1) -> Pair:
    """A text with its own label (reference) or another one (canary); the others carry the text's own label.

    Public exemplars follow the partitions with one exemplar.
    """
    rng = random.Random(f"{kind}/{pair}")
    text, label = rng.choice(exemplars(kind))
    wrong = rng.choice([other for other in LABELS[kind] if other != label])
    others = [exemplar for exemplar in exemplars(kind) if exemplar.answer == label and exemplar.text != text]
    rng.shuffle(others)
    return _pair(text, (label, wrong), others, partitions, shots, LABELS[kind] if shots == 1 else ())


def summaries(kind: str, pair: int, method: str, *, partitions: int = 1, shots: int = 1) -> Pair:
    """A text with the signal sentence y1 (canary) or y2 (reference) for a summary, among ordinary summaries."""
    rng = random.Random(f"{kind}/{pair}")
    everything = list(exemplars(kind))
    rng.shuffle(everything)
    y1, y2 = SIGNALS[method]
    return _pair(everything[0].text, (y2, y1), everything[1:], partitions, shots)


def keywords(kind: str, pair: int) -> Pair:
    """A text of the category "yes" (canary) or "no" (reference), among texts with "no"; then public exemplars."""
    rng = random.Random(f"{kind}/{pair}/keywords")
    everything = list(exemplars(kind))
    rng.shuffle(everything)
    others = [Exemplar(exemplar.text, "no") for exemplar in everything[1:]]
    return _pair(everything[0].text, ("no", "yes"), others, KEYWORD_PARTITIONS, 1, KEYWORDS)


def inputs(template: str, pairs: Sequence[Pair], model: JSON, **parameters: JSON) -> dict[str, JSON]:
    """All that a recording of these pairs depends on."""
    return {
        "model": model,
        "template": digest(template),
        "pairs": {
            str(number): {
                side: digest(prompts(template, context, pair.query))
                for side, context in zip(("reference", "canary"), pair.sides, strict=True)
            }
            for number, pair in enumerate(pairs)
        },
        **parameters,
    }
