"""The text of a failed audit: numbers first, the repair last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_snapaudit.report.numbers import factor, lower_bound, percent

if TYPE_CHECKING:
    from pytest_snapaudit.engine.result import AuditResult
    from pytest_snapaudit.examples import Example

_LONGEST = 200


def headline(result: AuditResult) -> str:
    """``epsilon >= 12.27 > 8 claimed``."""
    claimed = result.claim.epsilon
    if result.epsilon_lower < claimed * (1 + 1e-9):
        return f"epsilon > {claimed:g} claimed"
    return f"epsilon >= {lower_bound(result.epsilon_lower, claimed)} > {claimed:g} claimed"


def describe(result: AuditResult) -> str:
    """What was audited and how, in one line."""
    parts = [result.name, result.view, result.estimator, f"{result.n_trials:,} trials per side"]
    if result.n_snapshots > 1:
        parts.append(f"{result.n_snapshots:,} clean outputs per side")
    return ", ".join(part for part in parts if part)


def violation(
    result: AuditResult,
    *,
    confidence: float,
    example: Example | None,
    first: str,
    reproduce: str,
    searched: str = "",
) -> str:
    """The message of a :class:`~pytest_snapaudit.engine.errors.PrivacyViolation`.

    Args:
        result: refutes its claim.
        confidence: of the test as a whole.
        example: the Hypothesis example that failed, if any.
        first: the first configuration this test refuted, in words; "" if it is this one.
        searched: what a search says about the configuration.
        reproduce: the command that repeats the audit.
    """
    lines = [f"{headline(result)} (delta={result.claim.delta:g}, {percent(confidence)} confidence)"]
    lines.append(f"  {describe(result)}")
    lines += _evidence(result)
    lines += [f"  {name}: {text}" for name, text in result.diagnostics]
    if example is not None:
        lines.append(
            f"  the confidence covers all of at most {example.budget} examples "
            f"(max_examples={example.max_examples}, {example.explicit} explicit)"
        )
        if first:
            lines.append(f"  first failing configuration: {first}")
    if searched:
        lines.append(f"  {searched}")
    lines.append(f"  reproduce: {reproduce}")
    return "\n".join(lines)


def configuration(result: AuditResult, neighbours: object) -> str:
    """A refuted configuration in one line, with its neighbours unless they are recorded or nameless."""
    text = f"{result.name}: {headline(result)} (delta={result.claim.delta:g})"
    pair = shortened(neighbours) if isinstance(neighbours, tuple | list) else ""
    return f"{text}, neighbours={pair}" if pair else text


def shortened(value: object) -> str:
    """The ``repr`` of a value in one line, cut after 200 characters; "" if it holds an address."""
    text = " ".join(repr(value).split())
    if " at 0x" in text:
        return ""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def inconclusive(result: AuditResult, *, reproduce: str) -> str:
    """The message of an audit that could not have refuted its claim."""
    lines = [
        f"inconclusive: epsilon >= {lower_bound(result.epsilon_lower, result.claim.epsilon)} "
        f"against {result.claim.epsilon:g} claimed (delta={result.claim.delta:g}); "
        f"at most {result.max_detectable_epsilon:.4g} was detectable",
        f"  {describe(result)}",
    ]
    if result.reason:
        lines.append(f"  {result.reason}")
    lines.append(f"  reproduce: {reproduce}")
    return "\n".join(lines)


def too_weak(result: AuditResult, detects: float, *, reproduce: str) -> str:
    """Why ``detects`` is not met, or "" if it is.

    Two causes are told apart: the audit cannot certify an epsilon that large whatever the mechanism
    does, or it could, but this pair of neighbours does not exhibit the loss.
    """
    wanted = result.claim.epsilon * detects
    certified = (
        f"only epsilon >= {lower_bound(result.epsilon_lower, result.claim.epsilon)} of "
        f"{result.claim.epsilon:g} claimed, so it would catch a mechanism "
        f"{factor(result.smallest_factor_caught)[1:]} times worse"
        if result.epsilon_lower > 0
        else "nothing"
    )
    if wanted > result.max_detectable_epsilon:
        head = (
            f"audit too weak: detects={detects:g} asks for epsilon {wanted:.4g}, but "
            f"{result.n_trials:,} trials per side can certify at most {result.max_detectable_epsilon:.4g}"
        )
        repair = (
            "raise n_trials (or --snapaudit-trials), declare the mechanism's noise so that a model-based "
            "certificate applies, or lower detects"
        )
    elif result.smallest_factor_caught > detects:
        head = (
            f"pair too weak: detects={detects:g} is within reach of the audit (up to epsilon "
            f"{result.max_detectable_epsilon:.4g}), but on these neighbours it certifies {certified}"
        )
        repair = (
            "choose neighbours further apart (at the declared sensitivity), audit a view closer to the "
            "noise, raise n_trials, or lower detects"
        )
    else:
        return ""
    return f"{head}\n  {describe(result)}\n  {repair}\n  reproduce: {reproduce}"


def _evidence(result: AuditResult) -> list[str]:
    lines = [f"  attack: {result.attack}"] if result.attack else []
    best = next((view for view in result.views if view.view == result.view), None)
    if best is not None and best.rates is not None:
        rates = best.rates
        lines.append(
            f"  its rate is {rates.p:.4g} on one side and {rates.q:.4g} on the other "
            f"(at least {rates.p_lower:.4g}, at most {rates.q_upper:.4g}; {rates.trials:,} trials each)"
        )
    if best is not None and best.conditional_on:
        lines.append(f"  conditional on {best.conditional_on}")
    return lines


def tidy(longrepr: Any) -> None:
    """Leave out what a reader of an audit's failure does not need.

    The exception's module, in the short summary, which is cut at the margin; and the remark that all frames
    are hidden, which is so when a marked test audits nothing.
    """
    traceback = getattr(longrepr, "reprtraceback", None)
    crash = getattr(longrepr, "reprcrash", None)
    message = getattr(crash, "message", "")
    plain = message.removeprefix("pytest_snapaudit.engine.errors.").removeprefix(
        "pytest_snapaudit.store.failures."
    )
    if crash is not None and plain != message:
        crash.message = plain
        if traceback is not None and getattr(traceback, "extraline", None):
            traceback.extraline = None
