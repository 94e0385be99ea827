"""From what a cell needs to its audits, and from their findings to the cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audits import GATE, VECTOR, Finding, Job, Key
from cells import Cell
from clean_outputs import Clean
from printed import Printed

Truth = Callable[[Any, Clean], float]


@dataclass(frozen=True)
class Settings:
    """How much is drawn.

    Attributes:
        n_trials: per side of an active audit.
        many_trials: of the flawed designs (the paper takes more in its Table 8 too) and of Black-KSA.
        pairs: canary/context pairs, at most five.
        processes: that share the audits.
        extras: whether the plugin's own bound and the bounds at printed outputs are computed.
    """

    n_trials: int = 400_000
    many_trials: int = 1_000_000
    pairs: int = 5
    processes: int = 2
    extras: bool = True


QUICK = Settings(n_trials=10_000, many_trials=10_000, pairs=1, processes=1, extras=False)


@dataclass(frozen=True)
class Planned:
    """A cell before its audits have run.

    Attributes:
        table, row, column: where it is.
        make: the mechanism for one pair of clean outputs.
        cleans: clean outputs, one element per pair; none for a column that only has the printed outputs.
        view, mode, gaussian, flips: of the audits, see :class:`~audits.Job`.
        truth: the true ε of a mechanism for one pair of clean outputs.
        printed: what the paper prints.
        limit: the largest ε that can be true in the paper's setting.
        vector: the clean outputs that the paper prints.
        gated: whether the plugin's own bound is wanted too.
        many: whether the larger number of trials is drawn.
        notes: letters of notes that always apply.
    """

    table: str
    row: str
    column: str
    make: Callable[[Clean], Any]
    cleans: Sequence[Clean]
    view: str
    mode: str
    gaussian: bool
    truth: Truth | None = None
    printed: Printed | None = None
    limit: float | None = None
    vector: Clean | None = None
    gated: bool = False
    many: bool = False
    flips: float = 0.0
    notes: str = ""

    def jobs(self, settings: Settings) -> list[Job]:
        """The audits: one per pair, one at the printed outputs, and the plugin's own bound."""
        found = [
            self._job(pair, clean, self.mode, settings) for pair, clean in enumerate(self._cleans(settings))
        ]
        if self.vector is not None and settings.extras:
            found.append(self._job(VECTOR, self.vector, self.mode, settings))
        if self.gated and settings.extras:
            found.append(self._job(GATE, (self.vector or self.cleans[0]), "gate", settings))
        return found

    def cell(self, findings: Mapping[Key, Finding], settings: Settings) -> Cell:
        """The cell, from the findings of all audits."""
        cleans = self._cleans(settings)
        ours = tuple(findings[self._key(pair)].epsilon_lower for pair in range(len(cleans)))
        truth: tuple[float, ...] = ()
        vector = None
        if self.truth is not None:
            truth = tuple(self.truth(self.make(clean), clean) for clean in cleans)
        if self.vector is not None and settings.extras:
            true = self.truth(self.make(self.vector), self.vector) if self.truth else float("nan")
            vector = (findings[self._key(VECTOR)].epsilon_lower, true)
        gate = findings[self._key(GATE)].epsilon_lower if self.gated and settings.extras else None
        weak = any(not clean.distance for clean in cleans)
        notes = self.notes + ("g" if weak else "")
        return Cell(ours, truth, self.printed, self.limit, vector, gate, notes)

    def _cleans(self, settings: Settings) -> Sequence[Clean]:
        return self.cleans[: settings.pairs]

    def _key(self, pair: int) -> Key:
        return Key(self.table, self.row, self.column, pair)

    def _job(self, pair: int, clean: Clean, mode: str, settings: Settings) -> Job:
        trials = settings.many_trials if self.many else settings.n_trials
        mechanism = self.make(clean)
        return Job(self._key(pair), mechanism, clean, self.view, mode, self.gaussian, trials, self.flips)


def cells_of(
    planned: Iterable[Planned], findings: Mapping[Key, Finding], settings: Settings
) -> dict[tuple[str, str], Cell]:
    """Cells by (row, column)."""
    return {(each.row, each.column): each.cell(findings, settings) for each in planned}
