"""Results as ``user_properties``, which pytest writes into JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_snapaudit.report.rows import AuditRow

PREFIX = "snapaudit"
_FIELDS = (
    "verdict",
    "name",
    "epsilon",
    "delta",
    "epsilon_lower",
    "confidence",
    "view",
    "estimator",
    "n_trials",
    "smallest_factor_caught",
    "max_detectable_epsilon",
    "configurations",
    "reproducible",
    "seconds",
)


def properties(rows: Sequence[AuditRow], seed: int) -> list[tuple[str, object]]:
    """The properties of one test: ``snapaudit.verdict``, ...; then ``snapaudit[1].verdict``, ...

    Args:
        rows: results of the test, the worst first.
        seed: the run seed.
    """
    found: list[tuple[str, object]] = [(f"{PREFIX}.seed", seed)] if rows else []
    for number, row in enumerate(rows):
        owner = f"{PREFIX}[{number}]" if number else PREFIX
        plain = row.to_dict()
        found += [(f"{owner}.{name}", plain[name]) for name in _FIELDS]
    return found


def replace_properties(existing: list[tuple[str, object]], new: list[tuple[str, object]]) -> None:
    """Put ``new`` in the place of what an earlier run of the test left in ``existing``."""
    existing[:] = [entry for entry in existing if not _is_ours(entry[0])]
    existing.extend(new)


def _is_ours(name: str) -> bool:
    return name.startswith((f"{PREFIX}.", f"{PREFIX}["))
