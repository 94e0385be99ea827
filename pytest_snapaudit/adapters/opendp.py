"""OpenDP measurements: the claim is what the measurement's own privacy map says at an input distance.

A measurement makes a promise for every input distance, so ``check`` cannot know which one a pair of neighbours is
meant to have: say it with :func:`from_measurement`. Noise comes from the operating system and ignores seeds; the result
says so, and :func:`~pytest_snapaudit.engine.stability.verdict_stability` says what it amounts to.

A call costs a fraction of a millisecond, most of it on the way between Python and Rust. Outputs are therefore drawn
through the library's own non-interactive composition, which "computes [measurement0(x), measurement1(x), ...]"
(documentation of ``make_composition``): of k copies of a measurement that is k independent outputs on one dataset.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator

from pytest_snapaudit.adapters.conversions import (
    positive_delta,
    renyi_to_delta,
    smallest_epsilon,
    zcdp_to_delta,
)
from pytest_snapaudit.adapters.sampler import LibrarySampler
from pytest_snapaudit.engine.claim import PrivacyClaim, validate_delta
from pytest_snapaudit.engine.errors import MechanismError

_CALL = "from_measurement(measurement, d_in=1)"
_IMPORT = "from pytest_snapaudit.adapters.opendp import from_measurement"
_MEASURES = (
    "MaxDivergence, SmoothedMaxDivergence, ZeroConcentratedDivergence, RenyiDivergence and Approximate(...)"
)
_APPROXIMATE = re.compile(r"Approximate\((\w+)\)")
_COMPOSED = 1_000

Curve = Callable[[float], float]

__tracebackhide__ = True  # frames of this module say nothing to the author of a test


def from_measurement(
    measurement: Any,
    d_in: Any,
    *,
    delta: float | None = None,
    composed: bool = True,
    name: str | None = None,
) -> LibrarySampler:
    """A measurement as a sampler whose claim is ``measurement.map(d_in)``.

    The claim by output measure: pure ε is (ε, 0); a fixed pair is itself; ρ-zCDP, Rényi bounds and privacy profiles
    are curves δ(ε), of which the claim is the point at ``delta`` and the audit tests the others too.

    Args:
        measurement: an OpenDP ``Measurement``, or a function without arguments that builds one. With worker processes
            (``check(..., executor=)``) it must be such a function, defined at the top level of a module, since
            measurements hold pointers.
        d_in: distance of the neighbours under the measurement's input metric, for example 1 row for
            ``SymmetricDistance`` or 1.0 for ``AbsoluteDistance(f64)``.
        delta: of the claim; needed for curves. For pure ε and fixed pairs it may only be larger than theirs.
        composed: draw many outputs through one composition. False calls the measurement once per output, for one
            that raises on some of them; it is done by itself if a composition raises when it is first tried.
        name: printed in reports.

    Returns:
        A sampler that draws 20 000 outputs per side unless told otherwise.

    Raises:
        TypeError: not a measurement, or nothing that builds one.
        ValueError: ``d_in`` is not one of the measurement's input metric, or has no finite loss; ``delta`` is missing
            or too small; or the output measure is unknown.

    Example::

        from pytest_snapaudit.adapters.opendp import from_measurement

        @privacy_audit()
        def test_count(privacy_auditor):
            privacy_auditor.check(from_measurement(count, d_in=1), (["ann"], ["ann", "bob"]))
    """
    if isinstance(measurement, type):
        msg = (
            "from_measurement takes an OpenDP Measurement or a function that builds one, got the class "
            f"{measurement.__name__}; build one with a constructor of opendp.measurements."
        )
        raise TypeError(msg)
    source = _Source(measurement, composable=bool(composed))
    resolved = source.measurement()
    claim, curve = _claim(resolved, d_in, delta)
    return LibrarySampler(
        fn=_Outputs(source), name=name or _label(resolved, d_in), claim=claim, claim_curve=curve
    )


def as_mechanism(obj: object) -> LibrarySampler | None:
    """Refuse a bare OpenDP object, showing the call that says what is missing.

    Raises:
        TypeError: always, for objects of OpenDP's own classes.
    """
    kind = _kind(obj)
    if kind is None:
        return None
    if kind == "Measurement":
        metric = getattr(obj, "input_metric", "its input metric")
        msg = (
            "an OpenDP measurement promises something for every input distance; say which one these neighbours have "
            f"under {metric}: check({_CALL}, ...), after {_IMPORT}."
        )
    else:
        msg = (
            f"check takes an OpenDP Measurement, got {kind}: build one (a transformation needs noise chained to it, a "
            f"partial constructor an input space, a query of a Context its measurement) and write check({_CALL}, ...), "
            f"after {_IMPORT}."
        )
    raise TypeError(msg)


def _kind(obj: object) -> str | None:
    """The name of the OpenDP class of an object, preferring ``Measurement`` among its bases."""
    names = [cls.__name__ for cls in type(obj).__mro__ if cls.__module__.partition(".")[0] == "opendp"]
    if not names:
        return None
    return "Measurement" if "Measurement" in names else names[0]


@dataclass
class _Source:
    """A measurement, or how to build one; what is built is kept, and stays in its process."""

    given: Any
    built: Any = field(default=None, repr=False)
    composition: Any = field(default=None, repr=False)
    composable: bool = field(default=True, repr=False)

    def measurement(self) -> Any:
        if self.built is None:
            self.built = self._build()
        return self.built

    def composed(self, copies: int) -> Any:
        """The composition of so many copies of the measurement, or None if OpenDP does not compose it."""
        if not self.composable:
            return None
        if copies == _COMPOSED and self.composition is not None:
            return self.composition
        measurement = self.measurement()
        try:
            composition = importlib.import_module("opendp.combinators").make_composition(
                [measurement] * copies
            )
        except Exception:  # a feature that is off, a measure without a composition theorem
            self.composable = False
            return None
        if copies == _COMPOSED:
            self.composition = composition
        return composition

    def _build(self) -> Any:
        if _kind(self.given) == "Measurement":
            return self.given
        if _kind(self.given) is None and callable(self.given):
            built = self.given()
            if _kind(built) == "Measurement":
                return built
            got = f"a function that returned {built!r} of type {type(built).__name__}"
        else:
            got = f"{self.given!r} of type {type(self.given).__name__}"
        msg = f"from_measurement takes an OpenDP Measurement or a function that builds one, got {got}."
        raise TypeError(msg)

    def __reduce__(self) -> tuple[Any, ...]:
        if _kind(self.given) == "Measurement":
            msg = (
                "an OpenDP measurement holds pointers and cannot be sent to another process: give from_measurement the "
                "function that builds it, defined at the top level of a module: from_measurement(make_count, d_in=1)."
            )
            raise TypeError(msg)
        return type(self), (self.given, None, None, self.composable)


@dataclass(frozen=True)
class _Outputs:
    """Many outputs of one measurement on one dataset; ``rng`` is ignored, as OpenDP draws from the system."""

    source: _Source
    tried: list[Any] = field(default_factory=list, repr=False, compare=False)

    def __call__(self, dataset: Any, n: int, rng: Generator) -> list[Any]:
        del rng
        outputs: list[Any] = []
        while len(outputs) < n:
            copies = min(_COMPOSED, n - len(outputs))
            composition = self._composition(dataset, copies)
            if composition is None:
                outputs += self._one_by_one(dataset, copies)
                continue
            try:
                outputs += composition(dataset)
            except Exception as error:
                msg = (
                    f"from_measurement: one of {copies:,} outputs failed, and with it the composition they are drawn "
                    f"through ({_first_line(error)}); draw them one by one: from_measurement(..., composed=False)."
                )
                raise MechanismError(msg) from error
        return outputs

    def _composition(self, dataset: Any, copies: int) -> Any:
        """The composition, unless one fails on this dataset when first tried: a failure of one output fails them all.

        The outputs of that trial are dropped, so that whether a dataset is composed depends on nothing that is counted.
        """
        if not any(tried is dataset for tried in self.tried):
            self.tried.append(dataset)
            trial = self.source.composed(_COMPOSED)
            try:
                if trial is not None:
                    trial(dataset)
            except Exception:
                self.source.composable = False
        return self.source.composed(copies)

    def _one_by_one(self, dataset: Any, n: int) -> list[Any]:
        measurement = self.source.measurement()
        outputs: list[Any] = []
        for _ in range(n):
            try:
                outputs.append(measurement(dataset))
            except Exception as raised:
                outputs.append(raised)
        return outputs


def _label(measurement: Any, d_in: Any) -> str:
    return f"OpenDP {measurement.input_domain}, {measurement.input_metric}, {measurement.output_measure}, d_in={d_in}"


def _claim(measurement: Any, d_in: Any, delta: float | None) -> tuple[PrivacyClaim, Curve | None]:
    measure, loss = str(measurement.output_measure), _loss(measurement, d_in)
    if delta is not None:
        delta = validate_delta(delta)
    wrapped = _APPROXIMATE.fullmatch(measure)
    floor = 0.0
    if wrapped is not None:
        measure, (loss, floor) = wrapped[1], loss
    if measure == "MaxDivergence":
        return _pair(float(loss), float(floor), delta), None
    if measure == "FixedSmoothedMaxDivergence":
        return _pair(float(loss[0]), float(loss[1]), delta), None
    curve = _curve(measurement, measure, loss, float(floor))
    if delta is None:
        msg = (
            f"from_measurement: {measurement.output_measure} promises a curve of (epsilon, delta) pairs; say at which "
            "delta: from_measurement(measurement, d_in=..., delta=1e-6)."
        )
        raise ValueError(msg)
    delta = positive_delta("from_measurement", delta)
    return PrivacyClaim(smallest_epsilon(curve, delta), delta), curve


def _first_line(error: Exception) -> str:
    """What an exception of OpenDP says, without the frames of Rust that follow."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _loss(measurement: Any, d_in: Any) -> Any:
    try:
        return measurement.map(d_in.item() if isinstance(d_in, np.generic) else d_in)
    except Exception as error:
        msg = (
            f"from_measurement: d_in={d_in!r} is no distance under {measurement.input_metric} that the map of the "
            f"measurement accepts: {_first_line(error)}."
        )
        raise ValueError(msg) from error


def _pair(epsilon: float, floor: float, delta: float | None) -> PrivacyClaim:
    if delta is not None and delta < floor:
        msg = f"from_measurement: the measurement promises delta={floor:g} here, got the smaller delta={delta:g}."
        raise ValueError(msg)
    if not 0.0 < epsilon < math.inf and (delta or floor) == 0.0:
        msg = (
            f"from_measurement: the measurement's map gives epsilon={epsilon:g} for this d_in, of which nothing can be "
            "tested; neighbours differ, so d_in must be above 0, and the scale of the noise, too."
        )
        raise ValueError(msg)
    return PrivacyClaim(epsilon, floor if delta is None else delta)


def _curve(measurement: Any, measure: str, loss: Any, floor: float) -> Curve:
    """δ(ε) of a measure that is a curve; ``floor`` is the δ of its approximate version."""
    curve: Curve
    if measure == "ZeroConcentratedDivergence":
        rho = float(loss)

        def curve(epsilon: float) -> float:
            return zcdp_to_delta(rho, epsilon)

    elif measure == "RenyiDivergence":

        def curve(epsilon: float) -> float:
            return renyi_to_delta(loss, epsilon)

    elif measure == "SmoothedMaxDivergence":

        def curve(epsilon: float) -> float:
            return float(loss.delta(epsilon))

    else:
        msg = (
            f"from_measurement: no (epsilon, delta) can be read off {measurement.output_measure}; known are "
            f"{_MEASURES}. Convert it in OpenDP, or state the claim yourself: from_callable(measurement) and "
            "privacy_audit(epsilon=...)."
        )
        raise ValueError(msg)
    return lambda epsilon: min(1.0, floor + (1.0 - floor) * curve(epsilon))
