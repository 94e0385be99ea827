"""Declarations of noise: checked at the door, and recognised by name where another package defines them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import laplace, logistic

from pytest_snapaudit.engine.families import law_of
from pytest_snapaudit.engine.mechanism import declared_noise
from pytest_snapaudit.engine.noise import (
    KINDS,
    DensityNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    ExponentialNoise,
    GaussianNoise,
    GumbelNoise,
    LaplaceNoise,
    StaircaseNoise,
    read_declaration,
)

ONE_PARAMETER = [
    (DiscreteGaussianNoise, "sigma"),
    (DiscreteLaplaceNoise, "scale"),
    (GumbelNoise, "scale"),
    (ExponentialNoise, "scale"),
]


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, 10**400, True, "1", None, 1j])
@pytest.mark.parametrize(("kind", "name"), ONE_PARAMETER)
def test_a_scale_must_be_finite_and_positive(kind, name, value):
    with pytest.raises(ValueError, match=f"{kind.__name__}: {name} must be a finite number above 0, got "):
        kind(value)


@pytest.mark.parametrize(("kind", "name"), ONE_PARAMETER)
def test_a_scale_becomes_a_float(kind, name):
    noise = kind(np.int64(2))
    assert type(getattr(noise, name)) is float
    assert not noise.enforced
    assert kind(2, enforced=True).enforced


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0.0, 1.0), "epsilon must be a finite number above 0, got 0.0"),
        ((1.0, -1.0), "sensitivity must be a finite number above 0, got -1.0"),
        ((1.0, 1.0, 0.0), "gamma must be a finite number above 0, got 0.0"),
        ((1.0, 1.0, 1.5), "gamma must lie in (0, 1], got 1.5"),
    ],
)
def test_a_staircase_checks_its_parameters(arguments, words):
    with pytest.raises(ValueError, match=re.escape(f"StaircaseNoise: {words}")):
        StaircaseNoise(*arguments)


def test_a_staircase_chooses_the_step_of_least_error():
    """Least E|Z| over gamma (Geng and Viswanath 2014, Theorem 4), by a grid."""
    chosen = StaircaseNoise(1.3, 1.0).gamma
    assert chosen == pytest.approx(1 / (1 + math.exp(0.65)))
    rest = math.exp(-1.3)
    k = np.arange(200)

    def mean_size(gamma):
        weights = rest**k
        high, low = ((k + gamma) ** 2 - k**2) / 2, ((k + 1) ** 2 - (k + gamma) ** 2) / 2
        return float((weights * (high + rest * low)).sum() / (weights * (gamma + rest * (1 - gamma))).sum())

    grid = np.linspace(0.05, 0.95, 901)
    best = grid[np.argmin([mean_size(gamma) for gamma in grid])]
    assert best == pytest.approx(chosen, abs=2e-3)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"logpdf": 3}, TypeError, "logpdf must be callable, got 3 of type int"),
        (
            {"logpdf": logistic.logpdf, "cdf": 0.5},
            TypeError,
            "cdf must be callable or None, got 0.5 of type float",
        ),
        ({"logpdf": logistic.logpdf, "scale": 0}, ValueError, "scale must be a finite number above 0, got 0"),
        ({"logpdf": logistic.logpdf, "name": 3}, TypeError, "name must be a string, got 3"),
        ({"logpdf": lambda z: 0.0}, ValueError, "logpdf must map an (n,) array of points to an (n,) array"),
        (
            {"logpdf": lambda z: z * np.nan},
            ValueError,
            "logpdf must map an (n,) array of points to an (n,) array",
        ),
        (
            {"logpdf": logistic.logpdf, "cdf": lambda z: z[:1]},
            ValueError,
            "cdf must map an (n,) array of points",
        ),
    ],
)
def test_a_density_is_tried_at_the_door(arguments, error, words):
    with pytest.raises(error, match=re.escape(f"DensityNoise: {words}")):
        DensityNoise(**arguments)


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (DensityNoise(lambda z: -np.abs(z)), "must integrate to 1, got 2"),
        (DensityNoise(lambda z: np.where(z > 50.0, np.nan, -np.abs(z))), "number or -inf at every point"),
        (DensityNoise(logistic.logpdf, laplace.cdf), "cdf must be the integral of exp(logpdf)"),
    ],
)
def test_a_density_must_be_one(noise, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        law_of(noise)


def test_a_density_prints_without_addresses():
    noise = DensityNoise(lambda z: -0.5 * z * z - 0.9189385, scale=2, name="half a bell")
    assert repr(noise) == "DensityNoise('half a bell', scale=2.0)"


@pytest.mark.parametrize(
    "noise",
    [
        GaussianNoise(1.0),
        LaplaceNoise(1.0),
        *(kind(1.5) for kind, _ in ONE_PARAMETER),
        StaircaseNoise(1.0, 2.0),
        DensityNoise(logistic.logpdf),
    ],
)
def test_every_declaration_is_accepted_as_it_is(noise):
    class Mechanism:
        pass

    Mechanism.noise = noise
    assert declared_noise(Mechanism()) is noise
    assert type(noise).__name__ in KINDS


@pytest.mark.parametrize(("name", "expected"), [
    ("DiscreteGaussianNoise", DiscreteGaussianNoise(2.0, enforced=True)),
    ("StaircaseNoise", StaircaseNoise(1.0, 2.0, enforced=True)),
    ("ExponentialNoise", ExponentialNoise(3.0, enforced=True)),
])  # fmt: skip
def test_a_look_alike_of_another_package_is_read_by_its_parameters(name, expected):
    @dataclass
    class Parameters:
        sigma: float = np.float32(2.0)
        scale: int = 3
        epsilon: float = 1.0
        sensitivity: float = 2.0
        enforced: int = 1

    look_alike = type(name, (Parameters,), {})()
    assert read_declaration(look_alike) == expected


def test_a_look_alike_without_the_parameters_is_no_declaration():
    assert read_declaration(type("GumbelNoise", (), {"sigma": 1.0})()) is None
    assert read_declaration("gumbel") is None
    with pytest.raises(ValueError, match=r"GumbelNoise: scale must be a finite number above 0, got -1\.0"):
        read_declaration(type("GumbelNoise", (), {"scale": -1.0})())
