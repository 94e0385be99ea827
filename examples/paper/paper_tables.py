"""Tables 2-6, 8, 9 and 13: one planned cell for every printed one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import designs
import truths
from clean_outputs import (
    Clean,
    apart,
    fixed,
    keyword_counts,
    mean_embeddings,
    signal_outputs,
    utilities,
    votes,
)
from plans import Planned
from printed import (
    EFFECTIVE_DISTANCE,
    EPSILONS,
    KEYWORD_COUNTS,
    SIGNAL_DISTANCE,
    SIGNAL_DISTANCES,
    TABLES,
    UTILITIES,
    VOTES,
)
from recordings import EMBEDDINGS, KEYWORDS, RETRIEVAL, SCORES

KIND = {"Agnews": "news", "Trec": "questions", "Samsum": "dialogues", "Xsum": "articles"}
WAYS = (("Black", "passive"), ("Black", "active"), ("White", "passive"), ("White", "active"))
PRINTED_VOTES, PRINTED_UTILITIES, PRINTED_COUNTS = fixed(VOTES), fixed(UTILITIES), fixed(KEYWORD_COUNTS)
EFFECTIVE = apart(EFFECTIVE_DISTANCE)


def names(clean: Clean) -> tuple[str, ...]:
    """One name per label of a vector of counts or utilities."""
    return tuple(f"label {number}" for number in range(len(clean.reference)))


def voting(epsilon: float, clean: Clean, partitions: int = designs.VOTERS) -> Any:
    return designs.private_voting(epsilon, names(clean), partitions)


def classical_voting(epsilon: float, clean: Clean) -> Any:
    return designs.classical_voting(epsilon, names(clean))


def experts(epsilon: float, clean: Clean) -> Any:
    return designs.product_of_experts(epsilon, names(clean))


def embedding_space(epsilon: float, clean: Clean, partitions: int = 1) -> Any:
    return designs.embedding_space(epsilon, clean.known_candidates, partitions)


def unit_embedding_space(epsilon: float, clean: Clean) -> Any:
    return designs.unit_embedding_space(epsilon, clean.known_candidates)


def keywords(epsilon: float, clean: Clean) -> Any:
    return designs.keyword_space(epsilon)


def noisy_counts(epsilon: float, clean: Clean) -> Any:
    return designs.noisy_keyword_counts(epsilon)


def selection(mechanism: Any, clean: Clean) -> float:
    """True ε of a released argmax."""
    return truths.selection(
        mechanism.noise.scale if hasattr(mechanism, "noise") else 1.0 / mechanism.rate, clean
    )


def unbounded(mechanism: Any, clean: Clean) -> float:
    """Noisy scores with Gumbel noise satisfy no pure claim."""
    return math.inf if clean.distance else 0.0


def row(epsilon: float) -> str:
    return f"{epsilon:g}"


def _gaussian(
    table: int,
    design: Callable[[float, Clean], Any],
    cleans: Sequence[Clean],
    vector: Clean,
    limit: Callable[[float], float],
    columns: Sequence[tuple[str, str, str]],
    notes: Callable[[float, str, str], str] = lambda epsilon, view, mode: "",
) -> Iterator[Planned]:
    """Private Voting or Embedding Space Aggregation.

    Args:
        limit: the largest true ε in the paper's setting, by claimed ε.
        columns: column, view, mode; the last one has the plugin's own bound.
        notes: letters by claimed ε, view and mode.
    """
    for epsilon in EPSILONS:
        for column, view, mode in columns:
            yield Planned(
                f"Table {table}",
                row(epsilon),
                column,
                partial(design, epsilon),
                cleans,
                f"{view.lower()}-box",
                mode,
                gaussian=True,
                truth=truths.gaussian,
                printed=TABLES[table].cell(row(epsilon), column),
                limit=limit(epsilon),
                vector=vector,
                gated=column == columns[-1][0],
                many=table in (8, 9),
                notes=notes(epsilon, view, mode),
            )


def _selecting(
    table: int,
    which: str,
    black: Callable[[float, Clean], Any],
    white: Callable[[float, Clean], Any],
    cleans: Sequence[Clean],
    vector: Clean,
) -> Iterator[Planned]:
    """Product of Experts or Keyword Space Aggregation; the white-box view is outside the claim."""
    for epsilon in EPSILONS:
        for view, mode in WAYS:
            covered = view == "Black"
            design = partial(black if covered else white, epsilon)
            limit = selection(design(vector), vector) if which == "KSA" else epsilon
            yield Planned(
                f"Table {table}",
                row(epsilon),
                f"{view}-{which} {mode}",
                design,
                cleans,
                f"{view.lower()}-box",
                mode,
                gaussian=False,
                truth=selection if covered else unbounded,
                printed=TABLES[table].cell(row(epsilon), f"{view}-{which} {mode}"),
                limit=limit if covered else None,
                vector=vector,
                gated=covered and mode == "active",
                many=covered and which == "KSA",
                notes="c" * (epsilon >= 4) if covered else "b",
            )


def _four(which: str) -> list[tuple[str, str, str]]:
    return [(f"{view}-{which} {mode}", view, mode) for view, mode in WAYS]


def _esa_limit(design: Callable[[float, Clean], Any], epsilon: float) -> float:
    at = apart(SIGNAL_DISTANCE)
    return truths.gaussian(design(epsilon, at), at)


def classification(table: int, dataset: str) -> list[Planned]:
    """Tables 2 and 3."""
    scores = SCORES[KIND[dataset]]
    cleans = votes(scores, designs.VOTERS)
    return [
        *_gaussian(table, voting, cleans, PRINTED_VOTES, lambda epsilon: epsilon, _four("PV"), _voting_notes),
        *_selecting(table, "PoE", experts, experts, utilities(scores), PRINTED_UTILITIES),
    ]


def _voting_notes(epsilon: float, view: str, mode: str) -> str:
    return "c" if view == "Black" and epsilon >= 16 else ""


def generation(table: int, dataset: str) -> list[Planned]:
    """Tables 4 and 5."""
    kind = KIND[dataset]
    means = mean_embeddings(EMBEDDINGS[kind, "MSGS"], "MSGS")
    limit = partial(_true_at, embedding_space, apart(SIGNAL_DISTANCE))
    return [
        *_gaussian(table, embedding_space, means, EFFECTIVE, limit, _four("ESA"), lambda *_: "e"),
        *_selecting(table, "KSA", keywords, noisy_counts, keyword_counts(KEYWORDS[kind]), PRINTED_COUNTS),
    ]


def _true_at(design: Callable[[float, Clean], Any], clean: Clean, epsilon: float) -> float:
    return truths.gaussian(design(epsilon, clean), clean)


def signal_sentences() -> list[Planned]:
    """Table 6."""
    found: list[Planned] = []
    for dataset in ("Samsum", "Xsum"):
        for method, distance in SIGNAL_DISTANCES.items():
            means = mean_embeddings(EMBEDDINGS[KIND[dataset], method], method)
            at = apart(distance)
            limit = partial(_true_at, embedding_space, at)
            found += _gaussian(
                6, embedding_space, means, at, limit, [(f"{dataset} {method}", "Black", "active")]
            )
    return [*found, *_searched_sentences()]


def _searched_sentences() -> Iterator[Planned]:
    """ESA at the sentences that the package's own searches found, their embeddings taken as clean outputs."""
    for method, clean in signal_outputs().items():
        for epsilon in EPSILONS:
            yield Planned(
                "Table 6",
                row(epsilon),
                f"found by {method}",
                partial(embedding_space, epsilon),
                [clean],
                "black-box",
                "active",
                gaussian=True,
                truth=truths.gaussian,
            )


def classical() -> list[Planned]:
    """Table 8."""
    found: list[Planned] = []
    limit = partial(_true_at, classical_voting, PRINTED_VOTES)
    for dataset in ("Agnews", "Trec"):
        columns = [(f"{dataset} {mode}", "Black", mode) for mode in ("passive", "active")]
        cleans = votes(SCORES[KIND[dataset]], designs.VOTERS)
        found += _gaussian(8, classical_voting, cleans, PRINTED_VOTES, limit, columns, _classical_notes)
    return found


def _classical_notes(epsilon: float, view: str, mode: str) -> str:
    if epsilon < 16:
        return ""
    return "cdf" if mode == "active" else "cf"


def unit_sensitivity() -> list[Planned]:
    """Table 9."""
    found: list[Planned] = []
    limit = partial(_true_at, unit_embedding_space, apart(SIGNAL_DISTANCE))
    for dataset in ("Samsum", "Xsum"):
        columns = [(f"{dataset} {mode}", "Black", mode) for mode in ("passive", "active")]
        means = mean_embeddings(EMBEDDINGS[KIND[dataset], "MSGS"], "MSGS")
        found += _gaussian(9, unit_embedding_space, means, EFFECTIVE, limit, columns, _unit_notes)
    return found


def _unit_notes(epsilon: float, view: str, mode: str) -> str:
    return "ef" if epsilon > 1 else "e"


def models() -> list[Planned]:
    """Table 13."""
    ours = {
        "Llama-3-8b": (SCORES["questions"], EMBEDDINGS["dialogues", "MSGS"], KEYWORDS["dialogues"]),
        "GPT-oss-20b": (RETRIEVAL["PV"], RETRIEVAL["ESA"], RETRIEVAL["KSA"]),
    }
    found: list[Planned] = []
    for model, (scores, embeddings, flags) in ours.items():
        cases: list[tuple[str, Any, Any, bool, Any, float]] = [
            ("PV", voting, votes(scores, designs.VOTERS), True, truths.gaussian, 2.0),
            ("PoE", experts, utilities(scores), False, selection, 2.0),
            ("ESA", embedding_space, mean_embeddings(embeddings, "MSGS"), True, truths.gaussian, 2.0),
            ("KSA", keywords, keyword_counts(flags), False, selection, 2.0),
        ]
        found += [
            Planned(
                "Table 13",
                model,
                column,
                partial(design, 2.0),
                cleans,
                "black-box",
                "active",
                gaussian,
                truth,
                TABLES[13].cell(model, column),
                limit,
            )
            for column, design, cleans, gaussian, truth, limit in cases
        ]
    return found
