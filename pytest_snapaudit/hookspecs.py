"""Extension points: implement these in a conftest.py or in a plugin of your own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_snapaudit.engine.mechanism import Mechanism, Sampler
    from pytest_snapaudit.engine.result import AuditResult

    Attack = Callable[[Any], Any]


@pytest.hookspec(firstresult=True)
def pytest_snapaudit_as_mechanism(obj: object) -> Mechanism[object] | Sampler[object] | None:
    """Turn an object of a library's own into a mechanism, so that tests pass it to ``check`` directly.

    Args:
        obj: what a test passed to ``privacy_auditor.check`` or ``measure``; it is neither a mechanism nor a
            sampler.

    Returns:
        A mechanism or sampler, or None to leave the object to other plugins; the first answer counts.

    In conftest.py::

        from pytest_snapaudit import PrivacyClaim, from_sampler

        def pytest_snapaudit_as_mechanism(obj):
            if hasattr(obj, "add_noise_to"):
                return from_sampler(
                    lambda dataset, n, rng: obj.add_noise_to([sum(dataset)] * n, rng),
                    name=type(obj).__name__,
                    claim=PrivacyClaim(obj.epsilon),
                )
    """


@pytest.hookspec
def pytest_snapaudit_attacks(item: pytest.Item, mechanism: object) -> Mapping[str, Attack] | None:
    """Attacks of your own, tried on every mechanism beside those that are built in.

    An attack maps n outputs to n numbers; events "above" and "at most" a threshold, and single values, are tried on
    them. The best of all attacks is chosen on tuning trials, so that a further one costs time, never validity.

    Args:
        item: the test that audits.
        mechanism: what it audits, after ``pytest_snapaudit_as_mechanism``.

    Returns:
        A mapping of name to a function from (n, d) outputs to (n,) numbers, or None. An attack that the test itself
        passes under the same name wins.

    In conftest.py::

        def digits_of(outputs):
            return outputs[:, 0] % 10

        def pytest_snapaudit_attacks(item, mechanism):
            if "digits" in item.keywords:
                return {"last digit": digits_of}
    """


@pytest.hookspec
def pytest_snapaudit_result(item: pytest.Item, result: AuditResult) -> None:
    """Called with every new result of ``check`` and ``measure``, before a violation is raised.

    A verdict that is repeated for the same configuration is reported once. Under xdist this is called in the
    worker that ran the test.

    Args:
        item: the test that asked.
        result: the result; ``result.to_dict()`` is ready for JSON.

    In conftest.py::

        import json

        def pytest_snapaudit_result(item, result):
            with open("audits.jsonl", "a") as lines:
                lines.write(json.dumps({"test": item.nodeid, **result.to_dict()}) + "\\n")
    """
