"""Cells and tables as reports show them, and the notes that explain printed values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from printed import Printed
from truths import mean_and_error

TOLERANCE = 0.005
"""Half of the last printed digit."""

NOTES = {
    "a": "Printed above the true ε. A valid lower bound at 95 % seldom is; choosing the threshold on the trials that "
    "are then counted, or using point estimates, makes it common.",
    "b": "Outside the claim, measured only: with Gumbel noise the argmax satisfies the claim, the noisy scores satisfy "
    "no pure claim, so the true ε of this view is infinite.",
    "c": "Rates below what the trials can tell from zero: the bound falls far short of the truth, or to 0.",
    "d": "17.54 needs a false-positive rate of 3.6e-7, which 1,000,000 trials cannot show with confidence.",
    "e": "The printed ESA columns fit sentences 1.30 to 1.35 apart, while Table 14 prints 1.419; at printed outputs, "
    "1.30 is taken.",
    "f": "A flaw of the design: the true ε exceeds the claim.",
    "g": "One or more pairs have equal clean outputs: the model did not follow its exemplar. They count as 0.",
}


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes:
        ours: a bound per pair.
        truth: the true ε per pair, empty where no closed form is known.
        printed: what the paper prints.
        limit: the largest ε that can be true in the paper's setting; a printed value above it is marked.
        vector: the bound, and the true ε, at the clean outputs that the paper prints; None where it prints none.
        gate: the plugin's own bound on the first pair.
        notes: letters of :data:`NOTES`.
    """

    ours: tuple[float, ...]
    truth: tuple[float, ...] = ()
    printed: Printed | None = None
    limit: float | None = None
    vector: tuple[float, float] | None = None
    gate: float | None = None
    notes: str = ""

    @property
    def above_truth(self) -> bool:
        """Whether the printed value exceeds what can be true."""
        if self.printed is None or self.limit is None:
            return False
        return self.printed.mean > self.limit + TOLERANCE

    @property
    def marks(self) -> str:
        """Letters of the notes that apply, in order."""
        return "".join(sorted(set(self.notes) | ({"a"} if self.above_truth else set())))


def spread(values: Sequence[float], digits: int = 2) -> str:
    """``mean ± standard error``, or ``∞``, or a dash for nothing."""
    if not values:
        return "–"
    mean, error = mean_and_error(values)
    if math.isinf(mean):
        return "∞"
    return f"{mean:.{digits}f} ± {error:.{digits}f}" if len(values) > 1 else f"{mean:.{digits}f}"


@dataclass(frozen=True)
class Table:
    """One table or sweep.

    Attributes:
        name: ``"Table 2"`` or ``"Sweep: partitions"``.
        title: what it shows.
        rows: names of the rows; what they are is ``row_label``.
        columns: names of the columns.
        cells: by (row, column).
        remarks: sentences below the table.
        plotted: columns drawn as curves over the rows; empty for no plot.
        logarithmic: whether both axes of the plot are logarithmic.
    """

    name: str
    title: str
    row_label: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    remarks: tuple[str, ...] = ()
    plotted: tuple[str, ...] = ()
    logarithmic: bool = True


@dataclass(frozen=True)
class Facts:
    """A table of texts, for what is not a bound on ε (Tables 7 and 11)."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """Everything that is shown."""

    title: str
    introduction: tuple[str, ...]
    parts: tuple[Table | Facts, ...]
