"""Every attack on laws in which its event is planted, and on the same laws mixed so that both sides are equal.

Power: that the planted event is found and refutes the claim. Null: on the mixture no bound above 0 more often than
the 99.9 % point of the binomial law of the audits, each of which errs with probability 1 - γ = 5 %.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from pytest_snapaudit.engine.attacks.choice import choose_event
from pytest_snapaudit.engine.attacks.moments import ColumnMoments
from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.estimators import gaussian_delta
from pytest_snapaudit.engine.mechanism import from_callable, from_sampler
from pytest_snapaudit.engine.outcomes import fit_layout
from statistical.mechanisms import binomial_point, seeds
from statistical.planted import PLANTED, H

AUDITS, TRIALS = len(seeds(24)), 2_000
AUDITS_OF_WIDE_OUTPUTS = 6
ATTACKS = {"of sines": lambda rows: np.sin(1e3 * rows).sum(axis=1)}


def planted(plant):
    return from_sampler(lambda side, n, rng: plant(rng)[side][:n], name=plant.__name__)


def mixed(plant):
    """The planted law with each output from a side of its own: the sides are equal, and as intricate."""

    def sample(side, n, rng):
        sides = plant(rng)
        return np.where(rng.random((n, 1)) < 0.5, sides[0][:n], sides[1][:n])

    return from_sampler(sample, name=f"mixed {plant.__name__}")


@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_event_refutes_the_claim(plant):
    assert TRIALS <= H
    assert audit(planted(plant), (0, 1), PrivacyClaim(0.5), n_trials=TRIALS, seed=5).violated


@pytest.mark.parametrize("plant", PLANTED)
def test_and_on_the_mixture_nothing_is_certified(plant):
    wide = plant(np.random.default_rng(0))[0].shape[1] > 16
    audits = AUDITS_OF_WIDE_OUTPUTS if wide else AUDITS
    bounds = [
        audit(
            mixed(plant),
            (0, 1),
            PrivacyClaim(0.2),
            confidence=0.95,
            n_trials=TRIALS,
            attacks=ATTACKS,
            side_channels=("low-bit",),
            seed=(3, i),
        ).epsilon_lower
        for i in range(audits)
    ]
    assert sum(bound > 0 for bound in bounds) <= binomial_point(audits, 0.05)


def seeded(tables):
    """A generator with a short seed: 9,000 outputs of three coordinates, in no order, on either side."""
    rows = np.random.default_rng(0).normal(size=(2, 9_000, 3))
    return from_sampler(lambda side, n, rng: rows[tables[side]][rng.integers(0, 9_000, n)], name="seeded")


def test_rows_from_a_short_seed_are_told_apart_one_by_one():
    result = audit(seeded((0, 1)), (0, 1), PrivacyClaim(3.0), n_trials=100_000)
    assert result.violated
    assert "values seen of the whole output" in result.attack


def test_and_with_the_same_table_on_both_sides_nothing_is_certified():
    bounds = [
        audit(seeded((0, 0)), (0, 1), PrivacyClaim(0.2), confidence=0.95, n_trials=20_000, seed=(6, i))
        for i in range(AUDITS_OF_WIDE_OUTPUTS)
    ]
    above = sum(result.epsilon_lower > 0 for result in bounds)
    assert above <= binomial_point(AUDITS_OF_WIDE_OUTPUTS, 0.05)


def bump(side, n, rng):
    """One output in 50 of the canary falls into an interval of a thousandth."""
    values = rng.random(n)
    values[rng.random(n) < 0.02 * side] = 0.3
    return values + 0.001 * rng.random(n)


def copied(side, n, rng):
    """One of twelve coordinates repeats another, nearly, in one output of twelve of the canary."""
    rows = rng.normal(size=(n, 12))
    copies = rng.random(n) < side / 12
    rows[copies, 10] = rows[copies, 3] + 0.01 * rng.normal(size=np.count_nonzero(copies))
    return rows


def by_category(side, n, rng):
    """A public category of 40, and a value whose sign, in half of the categories, tells the other way round."""
    category = rng.integers(0, 40, n)
    sign = np.where(rng.random(n) < (0.8 if side else 0.2), 1.0, -1.0) * np.where(category % 2, 1.0, -1.0)
    return np.column_stack([category, sign * rng.exponential(size=n)])


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (bump, "output in ("),
        (copied, "coordinate 10 minus coordinate 3 in ("),
        (by_category, "given coordinate 0"),
    ],
)
def test_what_few_trials_do_not_show_is_found_with_more(law, words):
    result = audit(from_sampler(law), (0, 1), PrivacyClaim(1.0, 1e-3), n_trials=100_000, seed=5)
    assert result.violated
    assert words in result.attack


@pytest.mark.parametrize("law", [bump, copied, by_category])
def test_and_nothing_is_found_where_both_sides_have_it(law):
    null = from_sampler(lambda side, n, rng: law(1, n, rng), name="null")
    bounds = [
        audit(null, (0, 1), PrivacyClaim(0.2), confidence=0.95, n_trials=20_000, seed=(8, i)).epsilon_lower
        for i in range(AUDITS_OF_WIDE_OUTPUTS)
    ]
    assert sum(bound > 0 for bound in bounds) <= binomial_point(AUDITS_OF_WIDE_OUTPUTS, 0.05)


def test_the_time_of_equal_calls_certifies_nothing_on_a_drifting_clock(monkeypatch):
    """The machine runs at half its speed half of the time, which is no difference between the sides."""
    now, calls = [0.0], [0]

    def steady(dataset):
        calls[0] += 1
        now[0] += 1e-6 * (1 + 0.05 * np.random.random()) * (2 if calls[0] // 1_000 % 2 else 1)
        return 1

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    bounds = []
    for i in range(AUDITS):
        calls[0] = 157 * i
        result = audit(
            from_callable(steady),
            (0, 1),
            PrivacyClaim(0.2),
            confidence=0.95,
            n_trials=1_000,
            side_channels=("timing",),
            seed=(4, i),
        )
        bounds.append(result.epsilon_lower)
    assert sum(bound > 0 for bound in bounds) <= binomial_point(AUDITS, 0.05)


SIGNS = np.where(np.arange(400) % 2, 1.0, -1.0).astype(np.float32)


def wide(shift):
    """Four hundred coordinates; a look of 25,000 leaves more trials behind than are kept as rows."""
    return from_sampler(
        lambda side, n, rng: (
            rng.standard_normal((n, 400), dtype=np.float32) + np.float32(shift * side) * SIGNS
        ),
        name="wide",
    )


def test_a_direction_learnt_from_counted_trials_is_chosen():
    """A shift of 0.4 in all, in a direction that a thousand rows per side hardly show."""
    rng = np.random.default_rng(8)
    tuning, counted = ([wide(0.02).fn(side, n, rng) for side in (0, 1)] for n in (1_000, 40_000))
    layout = fit_layout([(side, len(side)) for side in tuning])
    options = {"claim": PrivacyClaim(0.5, 1e-5), "n_certify": 125_000, "alpha": 1e-3}
    event = choose_event(*tuning, layout, moments=ColumnMoments.of(*counted), **options)
    assert event.score.name == "linear discriminant of the output, from earlier trials"
    without = choose_event(*tuning, layout, **options)
    fresh = [wide(0.02).fn(side, 40_000, rng) for side in (0, 1)]
    apart = [
        each.hits(fresh[each.likelier_on]).mean() - each.hits(fresh[1 - each.likelier_on]).mean()
        for each in (event, without)
    ]
    assert apart[0] > 0.1
    assert apart[0] > 2 * apart[1]


def test_and_on_equal_laws_nothing_is_certified():
    bounds = [
        audit(
            wide(0.0), (0, 1), PrivacyClaim(0.2), confidence=0.95, n_trials=31_000, seed=(7, i)
        ).epsilon_lower
        for i in range(AUDITS_OF_WIDE_OUTPUTS)
    ]
    assert sum(bound > 0 for bound in bounds) <= binomial_point(AUDITS_OF_WIDE_OUTPUTS, 0.05)


F4 = np.float32


def a_third_in_short_floats(side, n, rng):
    return ((rng.normal(0, 3, (n, 2)).astype(F4) + F4(3 * side) * F4([1, 0])) / F4(3)).astype(np.float64)


def short_floats_without_their_mean(side, n, rng):
    return (rng.standard_normal(n, dtype=F4) + F4(128 + side)).astype(np.float64) - 128.3


def half_precision(side, n, rng):
    return (rng.standard_normal(n, dtype=F4) + F4(side)).astype(np.float16)


@pytest.mark.parametrize(
    "law",
    [a_third_in_short_floats, short_floats_without_their_mean, half_precision],
    ids=lambda law: law.__name__,
)
def test_the_spacing_of_short_floats_is_no_lattice_and_no_set_of_values(law):
    """Gaussian noise for (ε, δ) = (1, 0.127), tight: rounding gives nothing away unless low bits are asked for."""
    claim = PrivacyClaim(1.0, float(gaussian_delta(1.0, 1.0)))
    bounds = [
        audit(from_sampler(law), (0, 1), claim, confidence=0.95, n_trials=20_000, seed=(7, i)).epsilon_lower
        for i in range(AUDITS_OF_WIDE_OUTPUTS)
    ]
    assert sum(bound > 1.0 for bound in bounds) <= binomial_point(AUDITS_OF_WIDE_OUTPUTS, 0.05)
