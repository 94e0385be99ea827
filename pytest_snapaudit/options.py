"""Command-line options and their ini twins; the command line wins."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest

from pytest_snapaudit import profile

DEFAULT_SEED = 0
MIN_TRIALS = 100
DEFAULT_CONFIDENCE = 0.999
DEFAULT_DIRECTORY = "privacy_snapshots"
UPDATE_MODES = ("none", "new", "all")
WORKER_SEED = "snapaudit_seed"

T = TypeVar("T")
UpdateMode = Literal["none", "new", "all"]


def parse_seed(text: str) -> int | Literal["random"]:
    """A run seed: a non-negative integer, or ``random`` to draw one."""
    if text == "random":
        return "random"
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if seed < 0:
        msg = f"the run seed must be a non-negative integer or 'random', got {text!r}."
        raise argparse.ArgumentTypeError(msg)
    return seed


def parse_trials(text: str) -> int:
    """Trials per side: an integer; underscores may group digits."""
    try:
        trials = int(text)
    except ValueError:
        trials = 0
    if trials < MIN_TRIALS:
        msg = f"the number of trials per side must be an integer of at least {MIN_TRIALS}, got {text!r}."
        raise argparse.ArgumentTypeError(msg)
    return trials


def parse_confidence(text: str) -> float:
    """The confidence of one test: a number strictly between 0 and 1."""
    try:
        confidence = float(text)
    except ValueError:
        confidence = float("nan")
    if not 0.0 < confidence < 1.0:
        msg = f"the confidence must lie strictly between 0 and 1, got {text!r}."
        raise argparse.ArgumentTypeError(msg)
    return confidence


def parse_update(text: str) -> UpdateMode:
    """Which snapshots may be recorded."""
    for mode in UPDATE_MODES:
        if text == mode:
            return mode  # type: ignore[return-value]
    msg = f"the update mode must be one of {', '.join(UPDATE_MODES)}, got {text!r}."
    raise argparse.ArgumentTypeError(msg)


def add_options(parser: pytest.Parser) -> None:
    """Register every option and its ini twin."""
    group = parser.getgroup("snapaudit", "auditing differential-privacy claims")

    def valued(name: str, metavar: str, parse: Callable[[str], object], text: str) -> None:
        group.addoption(
            f"--snapaudit-{name}",
            dest=f"snapaudit_{name}",
            metavar=metavar,
            type=parse,
            default=None,
            help=text,
        )
        parser.addini(f"snapaudit_{name}", text, type="string", default="")

    def switch(name: str, text: str) -> None:
        group.addoption(
            f"--snapaudit-{name}", dest=f"snapaudit_{name}", action="store_true", default=None, help=text
        )
        parser.addini(f"snapaudit_{name}", text, type="bool", default=False)

    valued(
        "seed",
        "INT|random",
        parse_seed,
        "Run seed from which every audit derives its own; 'random' draws one and prints it. "
        f"Default: {DEFAULT_SEED}.",
    )
    valued(
        "trials",
        "N",
        parse_trials,
        "Trials per side of every audit; on the command line it overrides what tests ask for. "
        "Default: 400000, or 20000 for from_callable.",
    )
    valued(
        "confidence",
        "GAMMA",
        parse_confidence,
        "Confidence of one test, whatever it audits; on the command line it overrides what tests ask for. "
        f"Default: {DEFAULT_CONFIDENCE}.",
    )
    switch("strict", "Fail tests whose audit is INCONCLUSIVE instead of warning. Default: off.")
    switch("disable", "Skip tests marked privacy_audit or using privacy_auditor. Default: off.")
    valued(
        "update",
        "|".join(UPDATE_MODES),
        parse_update,
        "Which snapshots to record: none, the missing ones (new), or all, removing unused ones. "
        "Default: none.",
    )
    parser.addini(
        "snapaudit_dir",
        "Directory of the committed snapshots, relative to the root directory. "
        f"Default: {DEFAULT_DIRECTORY}.",
        type="string",
        default=DEFAULT_DIRECTORY,
    )


class RunOptions:
    """The options of one session, validated; an xdist worker takes the run seed its controller sends.

    Attributes:
        seed: the run seed.
        seed_drawn: whether it was drawn for this session.
        cli_trials, cli_confidence: set on the command line; they override markers and arguments.
        ini_trials, ini_confidence: set in the ini file; markers and arguments override them.
        strict: whether INCONCLUSIVE fails.
        disabled: whether audits are skipped.
        update: which snapshots may be recorded.
        directory: where snapshots are stored, absolute.
        ci: whether a continuous-integration service runs this session.
        is_worker: whether this process is an xdist worker.

    Raises:
        pytest.UsageError: if an ini value is not accepted; it names the key and the value.
    """

    def __init__(self, config: pytest.Config) -> None:
        workerinput: dict[str, Any] | None = getattr(config, "workerinput", None)
        asked = _first(config.getoption("snapaudit_seed"), _ini(config, "snapaudit_seed", parse_seed))
        if workerinput is not None and WORKER_SEED in workerinput:
            self.seed = int(workerinput[WORKER_SEED])
        elif asked == "random":
            self.seed = int.from_bytes(os.urandom(4), "big")
        else:
            self.seed = DEFAULT_SEED if asked is None else int(asked)
        self.seed_drawn: bool = asked == "random"
        self.cli_trials: int | None = config.getoption("snapaudit_trials")
        self.ini_trials: int | None = _ini(config, "snapaudit_trials", parse_trials)
        self.cli_confidence: float | None = config.getoption("snapaudit_confidence")
        self.ini_confidence: float | None = _ini(config, "snapaudit_confidence", parse_confidence)
        self.strict: bool = config.getoption("snapaudit_strict") or config.getini("snapaudit_strict")
        self.disabled: bool = config.getoption("snapaudit_disable") or config.getini("snapaudit_disable")
        self.update: UpdateMode = _first(
            config.getoption("snapaudit_update"), _ini(config, "snapaudit_update", parse_update), "none"
        )
        self.directory: Path = config.rootpath / str(config.getini("snapaudit_dir") or DEFAULT_DIRECTORY)
        self.ci: bool = bool(os.environ.get("CI"))
        self.is_worker: bool = workerinput is not None

    @property
    def confidence(self) -> float:
        """The confidence of a test that asks for none."""
        return self.cli_confidence or self.ini_confidence or DEFAULT_CONFIDENCE

    def header(self) -> list[str]:
        """What the verdicts of this session depend on, for the head of the report."""
        line = f"snapaudit: seed {self.seed}, {100 * self.confidence:.10g}% confidence"
        if self.cli_trials or self.ini_trials:
            line += f", {self.cli_trials or self.ini_trials:,} trials per side"
        line += ", strict" * self.strict + ", disabled" * self.disabled
        if self.seed_drawn:
            line += f"; seed drawn: reproduce with --snapaudit-seed={self.seed}"
        lines = [line, profile.header(trials_stated=bool(self.cli_trials or self.ini_trials))]
        if self.update != "none":
            where = " in CI (the variable CI is set)" if self.ci else ""
            lines.append(f"snapaudit: recording snapshots{where}, --snapaudit-update={self.update}")
        return [line for line in lines if line]


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _ini(config: pytest.Config, key: str, parse: Callable[[str], T]) -> T | None:
    text = str(config.getini(key) or "").strip()
    if not text:
        return None
    try:
        return parse(text)
    except argparse.ArgumentTypeError as error:
        msg = f"ini key {key}: {error}"
        raise pytest.UsageError(msg) from None
