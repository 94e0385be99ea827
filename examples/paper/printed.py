"""What the SnapAudit paper prints: its Tables 2-9, 11 and 13, its clean outputs, and its first version's sweeps.

What it prints in Table 12 is in ``probe_table.py``.

A cell is (mean, standard error), the error None where none is printed. δ = 1e-5 and γ = 0.95 throughout; ± is over
five independently drawn canary/context pairs (paper, Section 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
DELTA = 1e-5
CONFIDENCE = 0.95


class Printed(NamedTuple):
    """One printed cell: ``mean ± error``."""

    mean: float
    error: float | None = None

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.error is None else f"{self.mean:.2f} ± {self.error:.2f}"


@dataclass(frozen=True)
class PrintedTable:
    """A table as printed.

    Attributes:
        number: of the table in the paper.
        title: its caption.
        columns: column names, from left to right.
        rows: row names to one cell per column.
    """

    number: int
    title: str
    columns: tuple[str, ...]
    rows: dict[str, tuple[Printed, ...]]

    def cell(self, row: str, column: str) -> Printed:
        """The printed cell."""
        return self.rows[row][self.columns.index(column)]


def _cell(text: str) -> Printed:
    mean, _, error = text.partition("±")
    return Printed(float(mean), float(error) if error else None)


def _table(number: int, title: str, columns: tuple[str, ...], body: str) -> PrintedTable:
    rows = {}
    for line in body.strip().splitlines():
        name, *cells = line.split()
        rows[name] = tuple(_cell(cell) for cell in cells)
        if len(rows[name]) != len(columns):
            msg = f"Table {number}: row {name} has {len(cells)} cells for {len(columns)} columns."
            raise ValueError(msg)
    return PrintedTable(number, title, columns, rows)


def _both(*mechanisms: str) -> tuple[str, ...]:
    return tuple(
        f"{view}-{name} {way}"
        for name in mechanisms
        for view in ("Black", "White")
        for way in ("passive", "active")
    )


TABLE_2 = _table(
    2,
    "Auditing results on the Agnews dataset",
    _both("PV", "PoE"),
    """
    1  0.58±0.16 0.97±0.01 0.77±0.15 1.05±0.12 0.47±0.12 0.65±0.15 0.53±0.11 0.74±0.09
    2  1.46±0.14 1.97±0.01 1.85±0.24 1.98±0.01 0.83±0.31 1.45±0.29 1.27±0.30 1.52±0.20
    4  3.29±0.23 3.95±0.01 3.76±0.06 3.98±0.02 0.42±0.94 2.69±0.34 2.67±0.34 3.11±0.32
    8  6.43±0.12 7.90±0.03 7.60±0.20 8.06±0.13 0.57±1.27 0.93±2.09 4.65±0.53 6.08±0.78
    16 6.27±0.34 14.62±0.75 15.64±0.66 16.09±0.13 0.00±0.00 1.04±2.33 6.26±0.05 10.67±0.91
    """,
)
TABLE_3 = _table(
    3,
    "Auditing results on the Trec dataset",
    _both("PV", "PoE"),
    """
    1  0.52±0.13 0.96±0.01 0.77±0.20 0.99±0.01 0.35±0.09 0.60±0.04 0.44±0.04 0.66±0.05
    2  1.53±0.07 1.96±0.01 1.80±0.09 1.98±0.01 0.61±0.33 1.31±0.11 1.13±0.13 1.36±0.11
    4  3.31±0.19 3.95±0.01 3.85±0.33 3.99±0.01 0.03±0.06 2.21±0.46 2.36±0.28 2.84±0.30
    8  6.59±0.39 7.91±0.06 7.60±0.24 8.03±0.09 0.00±0.00 0.30±0.60 4.32±0.30 5.51±0.29
    16 6.27±0.24 14.34±0.31 15.48±0.63 16.20±0.46 0.00±0.00 0.00±0.00 6.23±0.09 10.20±0.45
    """,
)
TABLE_4 = _table(
    4,
    "Auditing results on the Samsum dataset",
    _both("ESA", "KSA"),
    """
    1  0.35±0.29 0.60±0.05 0.44±0.23 0.64±0.01 0.82±0.47 0.89±0.01 0.89±0.31 0.92±0.02
    2  0.89±0.37 1.20±0.11 0.99±0.31 1.28±0.03 0.05±0.12 1.72±0.05 1.70±0.29 1.89±0.02
    4  1.84±0.38 2.38±0.20 2.15±0.45 2.52±0.00 0.00±0.00 0.47±0.93 3.65±0.77 3.83±0.10
    8  4.13±0.65 4.73±0.36 4.43±0.39 4.99±0.04 0.00±0.00 0.00±0.00 6.06±0.21 7.48±0.10
    16 8.24±1.03 9.24±0.75 8.59±0.56 9.77±0.10 0.00±0.00 0.00±0.00 6.21±0.20 11.10±0.23
    """,
)
TABLE_5 = _table(
    5,
    "Auditing results on the Xsum dataset",
    _both("ESA", "KSA"),
    """
    1  0.13±0.16 0.61±0.01 0.24±0.22 0.66±0.04 0.83±0.47 0.90±0.04 0.90±0.36 0.94±0.03
    2  1.02±0.29 1.23±0.02 1.06±0.31 1.25±0.02 0.05±0.12 1.75±0.07 1.67±0.24 1.90±0.01
    4  2.23±0.42 2.46±0.04 2.32±0.28 2.49±0.05 0.00±0.00 0.00±0.00 3.73±0.86 3.89±0.11
    8  4.15±0.42 4.84±0.08 4.39±0.41 4.90±0.06 0.00±0.00 0.00±0.00 6.14±0.06 7.54±0.09
    16 8.92±0.77 9.41±0.22 9.06±0.37 9.62±0.11 0.00±0.00 0.00±0.00 6.29±0.00 11.22±0.01
    """,
)
TABLE_6 = _table(
    6,
    "MSGS and its baselines, black-box ESA",
    ("Samsum MSGS", "Samsum GS", "Samsum LLM", "Xsum MSGS", "Xsum GS", "Xsum LLM"),
    """
    1  0.60±0.05 0.47±0.01 0.45±0.01 0.61±0.01 0.48±0.02 0.47±0.03
    2  1.20±0.11 0.97±0.02 0.93±0.01 1.23±0.02 1.01±0.09 0.94±0.05
    4  2.38±0.20 1.95±0.04 1.94±0.05 2.46±0.04 1.99±0.03 1.91±0.07
    8  4.73±0.36 3.82±0.10 3.79±0.07 4.84±0.08 3.94±0.22 3.85±0.19
    16 9.24±0.75 7.32±0.23 7.29±0.21 9.41±0.22 7.44±0.15 7.41±0.14
    """,
)
TABLE_7 = _table(
    7,
    "Amortized time cost per audit trial, ms",
    ("PV", "PoE", "KSA", "ESA"),
    """
    Passive 87 117 485 400
    Active  0.42 1.48 2.21 2.01
    """,
)
TABLE_8 = _table(
    8,
    "PV with classical Gaussian noise",
    ("Agnews passive", "Agnews active", "Trec passive", "Trec active"),
    """
    1  0.36±0.15 0.74±0.00 0.39±0.04 0.74±0.00
    2  1.12±0.14 1.60±0.00 1.14±0.24 1.60±0.00
    4  2.82±0.24 3.50±0.00 3.00±0.18 3.50±0.00
    8  6.40±0.09 7.90±0.01 6.76±0.60 7.90±0.01
    16 5.15±0.29 17.54±0.48 4.95±0.25 17.54±0.48
    """,
)
TABLE_9 = _table(
    9,
    "ESA with sensitivity 1 (incorrect)",
    ("Samsum passive", "Samsum active", "Xsum passive", "Xsum active"),
    """
    1  0.30±0.33 0.97±0.08 0.03±0.04 0.99±0.02
    2  1.20±0.59 2.10±0.19 1.51±0.25 2.16±0.04
    4  3.75±0.59 4.68±0.38 3.85±0.34 4.80±0.09
    8  9.13±0.17 10.83±0.86 9.38±0.55 10.99±0.29
    16 22.12±0.97 26.84±2.16 21.90±1.92 25.70±2.06
    """,
)
TABLE_13 = _table(
    13,
    "Black-box active auditing across models, ε = 2",
    ("PV", "PoE", "ESA", "KSA"),
    """
    Llama-3-8b  1.96±0.01 0.67±0.20 1.20±0.11 1.70±0.29
    GPT-oss-20b 1.97±0.01 0.72±0.18 1.24±0.06 1.77±0.06
    """,
)
TABLES = {
    table.number: table
    for table in (TABLE_2, TABLE_3, TABLE_4, TABLE_5, TABLE_6, TABLE_7, TABLE_8, TABLE_9, TABLE_13)
}


class CleanOutput(NamedTuple):
    """A row of Table 11: an example of the clean output and the variance over 2000 snapshots, as printed."""

    pipeline: str
    dataset: str
    output: str
    variance: str


TABLE_11 = (
    CleanOutput("PV", "Trec", "Vote vector [n_yes, n_no]: [1, 2] / [0, 3]", "0"),
    CleanOutput("PoE", "Trec", "Utility vector [u_yes, u_no]: [-25.11, -10.13] / [-28.76, -5.15]", "0"),
    CleanOutput("ESA", "Samsum", "Mapping score (frac > 0): 0.564", "<1e-6"),
    CleanOutput("KSA", "Samsum", "Canary recall (Yes/J): 0.125", "<0.001"),
)

# Clean outputs without and with the canary: labels, utilities and keywords in the order (yes, no).
VOTES = ((0, 3), (1, 2))
UTILITIES = ((-28.76, -5.15), (-25.11, -10.13))
KEYWORD_COUNTS = ((0, 8), (1, 7))
SIGNAL_DISTANCE = 1.419
EFFECTIVE_DISTANCE = 1.30
"""The distance that the paper's ESA tables fit; MSGS reports 1.419 for the sentences themselves."""

SIGNALS = {
    "MSGS": (
        "FOXBOROUGH superjacent Looking at his ridiculously conservatively oleic body, with pharmacomania "
        "biceps unlaced hardly an ounce of fat.",
        "reconcilableness autosender designing towards itinerary etymologization charwoman concatenation leach "
        "with interrogative rededicatory labyrinth pay wavement hub backcast dompt",
    ),
    "GS": (
        "grotto glossopalatinus sigmatism numerosity catella chromocytometer quinquagenarian melagabbro "
        "dreadingly gerated",
        "hurleyhouse wharfrae schoolward myall tirwit wharfrae clomben faugh prearm vicinity",
    ),
    "LLM": (
        "cityness slunge searcherlike unlighted scatterling cowroid scotchman apocalypticism congee unadjust",
        "galvanoplastical resolidification resisting determined rondelle disconnector microcrystalline "
        "interbedded anodically tub",
    ),
}
"""Table 14's sentences (y1, y2) by method."""
SIGNAL_DISTANCES = {"MSGS": 1.419, "GS": 1.254, "LLM": 1.214}

V1_VOTES = ((0, 10), (1, 9))
"""The first version's worked example (its Figure 3), without and with the canary."""
V1_DISTANCES = (0.5562, 0.645, 0.7476)
"""Distances of signal pairs that the first version lists; the effect of distance is its Figure 18."""
V1_FIGURES = {
    "partitions": "Figures 6 and 14: effect of the number of partitions (curves only, no number is printed)",
    "shots": "Figures 7 and 15: number of shots and empirical ε (curves only)",
    "flips": "Figure 10: LLM temperature and empirical ε; here as the rate at which the clean output flips",
    "distance": "Figure 18: signal embedding distance and empirical ε; pairs 0.5562, 0.645 and 0.7476 apart",
    "model": "Figure 20: LLMs and empirical ε (curves only)",
}
