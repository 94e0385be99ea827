"""The tables of the SnapAudit paper beside the truth, from committed recordings.

``python examples/paper/tables.py`` prints Tables 2-9 and 11-13 and the first version's sweeps, and writes them with
plots to one HTML file with ``--out FILE.html``. ``--quick`` draws few trials for one pair only, to look at the layout.
No model, torch or network is needed. To add a table, name it in :data:`TABLES` with a function that plans its cells, or
add a function that returns :class:`~cells.Facts` to :data:`FACTS`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import facts
import paper_tables
import report_html
import report_text
import sweeps
from audits import Finding, Key, run_all
from cells import Facts, Report, Table
from plans import QUICK, Planned, Settings, cells_of
from printed import DELTA, V1_FIGURES
from remarks import INTRODUCTION, REMARKS

CLAIM = "claimed ε"


@dataclass(frozen=True)
class Shown:
    """How a table is shown, and the function that plans its cells."""

    title: str
    row_label: str
    plan: Callable[[], list[Planned]]
    plotted: tuple[str, ...]
    logarithmic: bool = True


TABLES = {
    "Table 2": Shown(
        "Private Voting and Product of Experts, news (the paper: Agnews)",
        CLAIM,
        partial(paper_tables.classification, 2, "Agnews"),
        ("Black-PV active", "Black-PV passive", "White-PV active", "Black-PoE active"),
    ),
    "Table 3": Shown(
        "Private Voting and Product of Experts, questions (the paper: Trec)",
        CLAIM,
        partial(paper_tables.classification, 3, "Trec"),
        ("Black-PV active", "Black-PV passive", "White-PV active", "Black-PoE active"),
    ),
    "Table 4": Shown(
        "Embedding and Keyword Space Aggregation, dialogues (the paper: Samsum)",
        CLAIM,
        partial(paper_tables.generation, 4, "Samsum"),
        ("Black-ESA active", "Black-ESA passive", "White-ESA active", "Black-KSA active"),
    ),
    "Table 5": Shown(
        "Embedding and Keyword Space Aggregation, articles (the paper: Xsum)",
        CLAIM,
        partial(paper_tables.generation, 5, "Xsum"),
        ("Black-ESA active", "Black-ESA passive", "White-ESA active", "Black-KSA active"),
    ),
    "Table 6": Shown(
        "Signal sentences by method, black-box ESA; at print: at the distance that Table 14 prints",
        CLAIM,
        paper_tables.signal_sentences,
        ("Samsum MSGS", "Samsum GS", "Samsum LLM", "found by gradient-guided"),
    ),
    "Table 8": Shown(
        "Private Voting with the classical Gaussian calibration, black-box",
        CLAIM,
        paper_tables.classical,
        ("Agnews active", "Agnews passive"),
    ),
    "Table 9": Shown(
        "Embedding Space Aggregation with the classical σ for sensitivity 1 (incorrect), black-box",
        CLAIM,
        paper_tables.unit_sensitivity,
        ("Samsum active", "Samsum passive"),
    ),
    "Table 13": Shown(
        "Two models, black-box active, ε = 2; Llama-3-8b: here SmolLM2-135M; GPT-oss-20b: here no language model but "
        "the answer of the exemplar nearest under MiniLM",
        "model",
        paper_tables.models,
        (),
    ),
    "Sweep: partitions": Shown(
        "The number of partitions T; news and dialogues, ε = 4",
        "partitions T",
        sweeps.partitions,
        ("PV active", "PV passive", "ESA active"),
    ),
    "Sweep: shots": Shown(
        "Exemplars per partition; news and dialogues, ε = 4",
        "shots",
        sweeps.shots,
        ("PV active", "ESA active"),
    ),
    "Sweep: flips": Shown(
        "The rate at which the clean output flips; printed votes, ε = 4, distribution-free",
        "flip rate",
        sweeps.flips,
        ("PV active",),
        logarithmic=False,
    ),
    "Sweep: distance": Shown(
        "The distance of the signal sentences; ESA, T = 1, ε = 4",
        "distance",
        sweeps.distances,
        ("ESA active", "ESA passive"),
        logarithmic=False,
    ),
    "Sweep: model": Shown(
        "Two models at every ε: SmolLM2-135M, and the answer of the exemplar nearest under MiniLM",
        CLAIM,
        sweeps.models,
        ("PV SmolLM2", "PV MiniLM", "ESA SmolLM2", "ESA MiniLM"),
    ),
}
FACTS: tuple[Callable[[Mapping[Key, Finding], Settings], Facts], ...] = (
    facts.table_7,
    facts.table_11,
    facts.table_12,
)
"""Tables of texts, each from all findings."""


LAYOUT_ONLY = (
    "LAYOUT ONLY: drawn with --quick, from few trials on one pair. The bounds are valid but loose, and compare with "
    "nothing that is printed; run without --quick for the tables."
)


def report(settings: Settings) -> Report:
    """Run every audit and put the tables together."""
    planned = {name: shown.plan() for name, shown in TABLES.items()}
    jobs = [job for cells in planned.values() for cell in cells for job in cell.jobs(settings)]
    findings = run_all(jobs, settings.processes)
    parts: list[Table | Facts] = []
    for name, shown in TABLES.items():
        cells, remarks = planned[name], REMARKS.get(name, ())
        rows = tuple(dict.fromkeys(cell.row for cell in cells))
        if name.startswith("Sweep"):
            rows = tuple(sorted(rows, key=float))
            remarks = (*remarks, f"The paper's first version: {V1_FIGURES[name.removeprefix('Sweep: ')]}.")
        columns = tuple(dict.fromkeys(cell.column for cell in cells))
        found = cells_of(cells, findings, settings)
        parts.append(
            Table(
                name,
                shown.title,
                shown.row_label,
                rows,
                columns,
                found,
                remarks,
                shown.plotted,
                shown.logarithmic,
            )
        )
    parts += [make(findings, settings) for make in FACTS]
    parts.sort(key=_order)
    drawn = (
        f"Here: {settings.n_trials:,} trials per side of an active audit ({settings.many_trials:,} in Tables 8 and 9 "
        f"and for Black-KSA), {settings.pairs} pair{'s' * (settings.pairs > 1)}, δ = {DELTA:g}."
    )
    title = "The tables of the SnapAudit paper beside the truth"
    if settings == QUICK:
        return Report(f"{title} (layout only)", (LAYOUT_ONLY, *INTRODUCTION, drawn), tuple(parts))
    return Report(title, (*INTRODUCTION, drawn), tuple(parts))


def _order(part: Table | Facts) -> tuple[int, int]:
    kind, _, number = part.name.partition(" ")
    return (0, int(number)) if kind == "Table" else (1, 0)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, metavar="FILE.html", help="write the report with plots to this file"
    )
    parser.add_argument("--quick", action="store_true", help="10,000 trials, one pair, one process")
    parser.add_argument(
        "--processes", type=int, default=2, metavar="N", help="processes that share the audits [2]"
    )
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    found = report(QUICK if options.quick else Settings(processes=options.processes))
    print(report_text.render(found), end="")
    if options.out is not None:
        options.out.write_text(report_html.render(found), encoding="utf-8")
        print(f"written to {options.out}")
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
