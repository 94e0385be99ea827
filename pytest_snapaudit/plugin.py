"""The pytest plugin: hooks, options and the fixture. NumPy is loaded by the first test that audits."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_snapaudit import hookspecs
from pytest_snapaudit.collector import COLLECTOR, ResultCollector, attach
from pytest_snapaudit.engine.errors import VacuousAudit
from pytest_snapaudit.markers import MARKER, MARKER_LINE
from pytest_snapaudit.options import WORKER_SEED, RunOptions, add_options
from pytest_snapaudit.report.failure import shorten_summary
from pytest_snapaudit.report.numbers import percent
from pytest_snapaudit.session import OPTIONS, RUNNING, RunningTest

if TYPE_CHECKING:
    from pytest_snapaudit.auditor import PrivacyAuditor

FIXTURE = "privacy_auditor"


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the plugin's own extension points."""
    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options and their ini twins."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Read the options and start collecting results."""
    config.addinivalue_line("markers", MARKER_LINE)
    options = RunOptions.from_config(config)
    config.stash[OPTIONS] = options
    collector = ResultCollector(config)
    config.stash[COLLECTOR] = collector
    config.pluginmanager.register(collector, "snapaudit-results")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send the run seed to an xdist worker."""
    node.workerinput[WORKER_SEED] = node.config.stash[OPTIONS].seed


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what the verdicts of this session depend on."""
    options = config.stash[OPTIONS]
    line = f"snapaudit: seed {options.seed}, {percent(options.confidence)} confidence"
    if options.cli_trials or options.ini_trials:
        line += f", {options.cli_trials or options.ini_trials:,} trials per side"
    if options.strict:
        line += ", strict"
    if options.disabled:
        line += ", disabled"
    if options.seed_drawn:
        line += f"; seed drawn: reproduce with --snapaudit-seed={options.seed}"
    lines = [line]
    if options.update != "none":
        where = " in CI (the variable CI is set)" if options.ci else ""
        lines.append(f"snapaudit: recording snapshots{where}, --snapaudit-update={options.update}")
    return lines


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip audits when they are disabled."""
    if not config.stash[OPTIONS].disabled:
        return
    skip = pytest.mark.skip(reason="privacy audits are disabled (--snapaudit-disable or ini snapaudit_disable)")
    for item in items:
        if item.get_closest_marker(MARKER) is not None or FIXTURE in getattr(item, "fixturenames", ()):
            item.add_marker(skip)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Bind the session's auditor to the test, from its first fixture to its last finalizer."""
    stash = item.config.stash
    stash[RUNNING] = RunningTest.of(item)
    try:
        return (yield)
    finally:
        stash[RUNNING] = None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin a run of the test; a marker that asks for what is not accepted fails it."""
    running = item.config.stash.get(RUNNING, None)
    if running is not None and running.item is item:
        try:
            running.start_run()
        except (TypeError, ValueError) as error:
            pytest.fail(f"{type(error).__name__}: {error}", pytrace=False)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a marked test that ends without an audit, in its call phase, so that xfail sees it."""
    __tracebackhide__ = True
    outcome = yield
    running = item.config.stash.get(RUNNING, None)
    if running is not None and running.item is item and running.marked and running.checks == 0:
        msg = (
            f"{running.nodeid} is marked privacy_audit but checked nothing: call "
            "privacy_auditor.check(mechanism, neighbours) in it (measure alone gates nothing), or remove the marker."
        )
        raise VacuousAudit(msg)
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the results of the test to its report, as built-in types."""
    running = item.config.stash.get(RUNNING, None)
    bound = running is not None and running.item is item
    if bound and running is not None and call.when != "teardown":
        attach.properties(item, running, item.config.stash[OPTIONS].seed)
    report = yield
    if bound and running is not None:
        attach.report(report, running)
    shorten_summary(report.longrepr)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table of audits and what became of snapshots."""
    config.stash[COLLECTOR].write(terminalreporter)


@pytest.fixture(scope="session")
def privacy_auditor(request: pytest.FixtureRequest) -> PrivacyAuditor:
    """Audits differential-privacy claims: ``check``, ``measure`` and ``snapshot``.

    See :class:`pytest_snapaudit.PrivacyAuditor`.
    """
    from pytest_snapaudit.auditor import PrivacyAuditor  # noqa: PLC0415 - loads NumPy and SciPy

    return PrivacyAuditor(request.config)
