"""The pytest plugin: hooks, options and the fixture.

What only audits need is imported by the first test that is marked or uses the fixture, so that the plugin
costs next to nothing in a session without audits.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_snapaudit import adapters, hookspecs
from pytest_snapaudit.collector import ResultCollector
from pytest_snapaudit.names import COLLECTOR, DISABLED, FIXTURE, ITEM, MARKER, MARKER_LINE, OPTIONS, RUNNING
from pytest_snapaudit.options import WORKER_SEED, RunOptions, add_options

if TYPE_CHECKING:
    from pytest_snapaudit.auditor import PrivacyAuditor


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the plugin's own extension points, and the adapters that answer them last."""
    pluginmanager.add_hookspecs(hookspecs)
    pluginmanager.register(adapters, "snapaudit-adapters")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options and their ini twins."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Read the options and start collecting results."""
    config.addinivalue_line("markers", MARKER_LINE)
    options = RunOptions(config)
    config.stash[OPTIONS] = options
    collector = ResultCollector(config, options)
    config.stash[COLLECTOR] = collector
    config.pluginmanager.register(collector, "snapaudit-results")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send the run seed to an xdist worker."""
    node.workerinput[WORKER_SEED] = node.config.stash[OPTIONS].seed


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what the verdicts of this session depend on."""
    return config.stash[OPTIONS].header()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip audits when they are disabled."""
    if not config.stash[OPTIONS].disabled:
        return
    skip = pytest.mark.skip(reason=DISABLED)
    for item in items:
        if item.get_closest_marker(MARKER) is not None or FIXTURE in getattr(item, "fixturenames", ()):
            item.add_marker(skip)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Bind the session's auditor to the test, from its first fixture to its last finalizer."""
    stash = item.config.stash
    stash[ITEM] = item
    try:
        return (yield)
    finally:
        stash[ITEM] = None
        if RUNNING in item.stash:
            del item.stash[RUNNING]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin a run of an audited test; a marker that asks for what is not accepted fails it."""
    if not _audited(item):
        return
    from pytest_snapaudit.session import running_test  # noqa: PLC0415

    refusal = running_test(item).start_run()
    if refusal:
        pytest.fail(refusal, pytrace=False)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a marked test that ends without an audit, in its call phase, so that xfail sees it."""
    __tracebackhide__ = True
    outcome = yield
    if _audited(item):
        from pytest_snapaudit.session import running_test  # noqa: PLC0415

        running_test(item).require_a_check()
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the results of the test to its report, as built-in types."""
    if not _audited(item):
        return (yield)
    from pytest_snapaudit.report import attach, failure  # noqa: PLC0415
    from pytest_snapaudit.session import running_test  # noqa: PLC0415

    running, config = running_test(item), item.config
    if call.when != "teardown":
        attach.to_properties(item, running, config.stash[OPTIONS].seed)
    report = yield
    attach.to_report(report, running, config.stash[COLLECTOR].file_tests(running.nodeid))
    failure.tidy(report.longrepr)
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


def _audited(item: pytest.Item) -> bool:
    """Whether the test is marked, uses the fixture, or has asked for it while running."""
    return (
        item.get_closest_marker(MARKER) is not None
        or FIXTURE in getattr(item, "fixturenames", ())
        or RUNNING in item.stash
    )
