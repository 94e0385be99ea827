"""Table 7, cost per trial, Table 11, clean outputs and how much they vary, and Table 12, membership inference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import experiments as ex
import numpy as np
from audits import Finding, Key
from cells import Facts
from clean_outputs import keyword_counts, mean_embeddings, utilities, votes
from numpy.typing import NDArray
from plans import Settings
from printed import TABLE_7, TABLE_11
from probe_table import PRINTED, PRINTED_DEFENDED, probe_rows, recorded_scores, withheld
from recordings import EMBEDDINGS, KEYWORDS, REPEATED, SCORES, Recording

EVALUATIONS = 2_000
"""Clean evaluations per side that the paper spreads over its 400,000 trials."""
COLUMNS = {
    "PV": ("Table 3", "Black-PV"),
    "PoE": ("Table 3", "Black-PoE"),
    "KSA": ("Table 4", "Black-KSA"),
    "ESA": ("Table 4", "Black-ESA"),
}


PROMPTS = {"PV": ex.VOTERS, "PoE": ex.EXPERTS, "KSA": ex.KEYWORD_PARTITIONS, "ESA": 1}
"""How many prompts one clean evaluation takes."""


def seconds_per_evaluation(pipeline: str) -> float:
    """CPU-seconds of one clean evaluation on one side, from what the repeated recordings took per prompt."""
    recording = REPEATED["PoE" if pipeline == "PV" else pipeline]
    seconds = float(recording.load().reference.provenance["cpu_seconds_per_evaluation"])
    return seconds / len(recording.pairs[0].reference) * PROMPTS[pipeline]


def table_7(findings: Mapping[Key, Finding], settings: Settings) -> Facts:
    """Cost per trial of either way, and their ratio."""
    rows = []
    for pipeline in TABLE_7.columns:
        table, column = COLUMNS[pipeline]
        audits = [finding for key, finding in findings.items() if key[::2] == (table, f"{column} active")]
        noise = float(np.median([audit.cpu_seconds for audit in audits])) / (2 * settings.n_trials)
        passive = seconds_per_evaluation(pipeline)
        active = noise + passive * EVALUATIONS / settings.n_trials
        once = noise + passive / settings.n_trials
        printed = TABLE_7.cell("Passive", pipeline).mean, TABLE_7.cell("Active", pipeline).mean
        rows.append(
            (
                pipeline,
                f"{1e3 * passive:.0f} ms",
                f"{1e6 * noise:.2f} µs",
                f"{1e3 * active:.2f} ms",
                f"{passive / active:.0f}",
                f"{passive / once:,.0f}",
                f"{printed[0]:g} / {printed[1]:g} ms = {printed[0] / printed[1]:.0f}",
            )
        )
    columns = (
        "pipeline",
        "passive trial",
        "noise and attack",
        "active trial, 2,000 evaluations a side",
        "ratio",
        "ratio, one evaluation a side",
        "paper: passive / active = ratio",
    )
    remarks = (
        "Measured: CPU time of SmolLM2-135M (float32, one thread) per clean evaluation, when it was recorded, and CPU "
        "time of an active audit per trial, now. A passive trial is one clean evaluation; an active one is the noise, "
        "the attack and the clean evaluations spread over the trials. The final answer that KSA asks for is counted "
        "in neither. With 2,000 evaluations for 400,000 trials the ratio cannot exceed 200; at temperature 0 one "
        "evaluation says the same.",
    )
    return Facts("Table 7", "Cost per trial", columns, tuple(rows), remarks)


def variance(recording: Recording, clean: Callable[[NDArray[Any]], NDArray[np.float64]]) -> tuple[float, int]:
    """Largest variance of a coordinate of the clean output over repeated evaluations, and the evaluations per side.

    No attack's success probability h(v) varies when the clean output v does not.
    """
    pair = recording.load()
    largest = 0.0
    for side in (pair.reference, pair.canary):
        if len(side.rows) == 1:  # equal to the last bit
            continue
        outputs = np.array([clean(row[0]) for row in side.expand()])
        largest = max(largest, float(outputs.var(axis=0, ddof=1).max()))
    return largest, pair.reference.size


def table_11(findings: Mapping[Key, Finding], settings: Settings) -> Facts:
    """Clean outputs of the first pair, and their variance over repeated evaluations; no audit is needed."""

    def vector(values: NDArray[Any]) -> str:
        return "[" + ", ".join(f"{value:.4g}" for value in values) + "]"

    scores, counts = SCORES["questions"], KEYWORDS["dialogues"]
    means = mean_embeddings(EMBEDDINGS["dialogues", "MSGS"], "MSGS")[0]
    ours = {
        "PV": votes(scores, ex.VOTERS)[0],
        "PoE": utilities(scores)[0],
        "KSA": keyword_counts(counts)[0],
    }
    shown = {name: f"{vector(clean.canary)} / {vector(clean.reference)}" for name, clean in ours.items()} | {
        "ESA": f"mean embeddings {means.distance:.3f} apart"
    }
    rows = []
    for printed in TABLE_11:
        recording = REPEATED["PoE" if printed.pipeline == "PV" else printed.pipeline]
        spread, repeats = variance(recording, lambda row: np.asarray(row, np.float64).ravel())
        rows.append(
            (
                printed.pipeline,
                shown[printed.pipeline],
                f"{spread:.2g} ({repeats} evaluations a side)",
                printed.output,
                printed.variance,
            )
        )
    remarks = (
        "With / without the canary, first pair. Variance: the largest of any recorded number (log-probability or "
        "embedding coordinate) over repeated evaluations of equal prompts by the model itself, without a journal; "
        "where it is 0, so is that of every attack's success probability. The paper varies the partition as well for "
        "ESA and KSA.",
    )
    columns = ("pipeline", "clean output", "variance", "paper: clean output", "paper: variance")
    return Facts("Table 11", "Clean outputs and their variance", columns, tuple(rows), remarks)


def table_12(findings: Mapping[Key, Finding], settings: Settings) -> Facts:
    """AUC of membership inference by query, defence and mechanism, on recorded answers; no audit is needed."""
    cells = probe_rows()
    mechanisms = tuple(dict.fromkeys(cell.mechanism for cell in cells))
    printed_defences = {"none": PRINTED, "basic": PRINTED_DEFENDED}
    rows = []
    for query, defence in dict.fromkeys((cell.query, cell.defence) for cell in cells):
        aucs = {cell.mechanism: cell.auc for cell in cells if (cell.query, cell.defence) == (query, defence)}
        paper = printed_defences.get(defence, {}).get(query, {})
        rows.append(
            (
                query,
                defence,
                *(f"{aucs[each]}{' ?' if aucs[each].at_chance else ''}" for each in mechanisms),
                ", ".join(f"{name} {auc:.2f}" for name, auc in paper.items()) or "–",
            )
        )
    shares = withheld(recorded_scores())
    remarks = (
        "SmolLM2-135M, 20 contexts with the canary and 20 without; intervals at 95 % make no assumption on the scores. "
        "? The interval holds 0.5: at chance, or too few contexts to tell. Yes/No questions are beyond this model: "
        "below 0.5 it rather says No where the canary is. The continuation query, which the paper does not ask, scores "
        "the second half of the canary after its first. 'answer' is the canary's partition alone.",
        "The second model withholds "
        + ", ".join(
            f"{with_canary:.0%} of {query} answers with the canary and {without:.0%} without"
            for query, (with_canary, without) in shares.items()
        )
        + ". The paper prints one figure for its defences, shown beside the basic one.",
    )
    columns = ("query", "defence", *mechanisms, "paper")
    return Facts("Table 12", "AUC of membership inference", columns, tuple(rows), remarks)
