"""Planted events are found, whatever their form; on identical laws nothing is certified."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from statistical.planted import PLANTED, H, threshold

from pytest_snapaudit.engine.attacks import choice
from pytest_snapaudit.engine.attacks.choice import choose_event
from pytest_snapaudit.engine.attacks.fitting import candidate_scores
from pytest_snapaudit.engine.attacks.selection import best_event
from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.mechanism import from_callable, from_sampler
from pytest_snapaudit.engine.outcomes import fit_layout
from pytest_snapaudit.engine.snapshot import Snapshot, SnapshotPair


def chosen(reference, canary, **options: Any):
    layout = fit_layout([(reference, len(reference)), (canary, len(canary))])
    return choose_event(
        reference,
        canary,
        layout,
        **{"claim": PrivacyClaim(0.2), "n_certify": 25_000, "alpha": 5e-4, **options},
    )


def ratio(hits_p, hits_q) -> float:
    """What a generous audit would certify of an event: the log of shrunken rates."""
    p, q = (hits.mean() for hits in (hits_p, hits_q))
    return math.log((p + 1e-3) / (q + 1e-3))


@pytest.mark.parametrize("plant", PLANTED)
@pytest.mark.parametrize("swapped", [False, True], ids=["as planted", "sides swapped"])
def test_a_planted_event_is_found_on_either_side(plant, swapped):
    reference, canary, holds = plant(np.random.default_rng(1))
    fresh = plant(np.random.default_rng(2))[:2]
    sides = [reference, canary]
    if swapped:
        sides, fresh = sides[::-1], fresh[::-1]
    event = chosen(*sides)
    found = event.hits(fresh[event.likelier_on]), event.hits(fresh[1 - event.likelier_on])
    planted = [holds(rows) for rows in fresh]
    best = max(
        ratio(planted[i] == inside, planted[1 - i] == inside) for i in (0, 1) for inside in (True, False)
    )
    assert found[0].mean() > found[1].mean()
    assert ratio(*found) > 0.7 * best
    assert event.likelier_on == int(planted[1].mean() > planted[0].mean()) or event.op != "=="


def test_scores_are_fitted_and_compared_on_different_trials(monkeypatch):
    reference, canary, _ = threshold(np.random.default_rng(1))
    fitted, compared = [], []

    def spy_on_fit(first, second, *args, **options):
        fitted.append((first, second))
        return candidate_scores(first, second, *args, **options)

    def spy_on_comparison(score, first, second, goal):
        compared.append((first, second))
        return best_event(score, first, second, goal)

    monkeypatch.setattr(choice, "candidate_scores", spy_on_fit)
    monkeypatch.setattr(choice, "best_event", spy_on_comparison)
    event = chosen(reference, canary)
    ((first, second),) = fitted
    for rows, of_fit, of_comparison in zip((reference, canary), (first, second), compared[0], strict=True):
        np.testing.assert_array_equal(np.concatenate([of_fit, of_comparison]), rows)
    assert all(len(rows) == H // 2 for pair in compared[:-1] for rows in pair)
    assert [len(rows) for rows in compared[-1]] == [H, H]
    assert event.tuned_on == H


@pytest.mark.parametrize("plant", PLANTED)
def test_the_same_trials_give_the_same_event(plant):
    sides = plant(np.random.default_rng(1))[:2]
    first, second = chosen(*sides), chosen(*sides)
    assert (first.describe(), first.threshold, first.p, first.q) == (
        second.describe(),
        second.threshold,
        second.p,
        second.q,
    )


def test_a_missing_key_is_found_and_named():
    rng = np.random.default_rng(3)
    sides = [
        [{"kept": 1.0, **({"rare": 2.0} if rng.random() < rate else {})} for _ in range(2000)]
        for rate in (0.02, 0.2)
    ]
    layout = fit_layout([(side, 2000) for side in sides])
    event = choose_event(
        *(layout.encode(side, 2000) for side in sides),
        layout,
        claim=PrivacyClaim(1.0),
        n_certify=5000,
        alpha=1e-3,
    )
    assert "output['rare']" in event.describe() or "length of output" in event.describe()
    assert (event.p, event.q) == pytest.approx((0.2, 0.02), abs=0.04)


def test_the_direction_of_the_snapshots_is_used_in_384_dimensions():
    rng = np.random.default_rng(4)
    direction = rng.normal(size=384)
    direction /= np.linalg.norm(direction)
    noise = [rng.normal(size=(500, 384)) for _ in range(2)]
    event = chosen(noise[0], noise[1] + 3.0 * direction, direction=direction)
    assert event.describe().startswith("projection on the difference of the clean outputs above ")
    assert event.likelier_on == 1
    assert event.p - event.q > 0.6
    blind = chosen(noise[0], noise[1] + 3.0 * direction)
    fresh = [rng.normal(size=(4000, 384)) + shift * direction for shift in (0.0, 3.0)]
    found = [abs(one.hits(fresh[1]).mean() - one.hits(fresh[0]).mean()) for one in (event, blind)]
    assert found[0] > found[1] > 0.2


def test_a_user_attack_wins_where_it_is_the_best():
    def parity(rows):
        return (np.floor(1000 * rows[:, 1]) % 2 == rows[:, 0]).astype(float)

    result = audit(
        from_sampler(planted_parity),
        (0, 1),
        PrivacyClaim(1.0),
        n_trials=2000,
        attacks={"parity": parity},
    )
    assert result.violated
    assert result.attack.startswith("attack 'parity' ")
    unaided = audit(from_sampler(planted_parity), (0, 1), PrivacyClaim(1.0), n_trials=2000)
    assert not unaided.violated


def planted_parity(dataset, n, rng):
    rows = rng.random((n, 6))
    digit = np.floor(1000 * rows[:, 1]) % 2
    rows[:, 0] = np.where(rng.random(n) < (0.9 if dataset else 0.1), digit, 1 - digit)
    return rows


def test_a_user_attack_that_is_useless_does_no_harm():
    result = audit(
        from_sampler(lambda dataset, n, rng: rng.laplace(size=n) + 3 * dataset),
        (0, 1),
        PrivacyClaim(1.0),
        n_trials=2000,
        attacks={"zero": lambda rows: np.zeros(len(rows)), "nan": lambda rows: np.full(len(rows), np.nan)},
    )
    assert result.violated
    assert "attack" not in result.attack


def test_the_low_bits_of_the_noise_are_attacked_on_request():
    def coarse(dataset, n, rng):
        """Noise on a grid of 2**-10 is added to 0 or to 2**-20."""
        return np.round(1024 * rng.laplace(size=n)) / 1024 + dataset * 2.0**-20

    for side_channels, violated in (((), False), (("low-bit",), True)):
        result = audit(
            from_sampler(coarse), (0, 1), PrivacyClaim(2.0), n_trials=5000, side_channels=side_channels
        )
        assert result.violated == violated
    assert "side channel" in result.attack


def test_the_time_of_a_call_is_attacked_on_request(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def slow_on_the_canary(dataset):
        now[0] += 1e-6 * (1 + np.random.random() + 0.5 * dataset)
        return 1

    sampler = from_callable(slow_on_the_canary)
    assert not audit(sampler, (0, 1), PrivacyClaim(1.0), n_trials=500).violated
    timed = audit(sampler, (0, 1), PrivacyClaim(1.0), n_trials=500, side_channels=("timing",))
    assert timed.violated
    assert "output[1]" in timed.attack


NULLS: dict[str, Any] = {
    "normal": lambda d, n, rng: rng.normal(size=n),
    "heavy tails": lambda d, n, rng: rng.standard_cauchy(size=n),
    "coin": lambda d, n, rng: rng.integers(0, 2, n),
    "constant": lambda d, n, rng: np.ones(n),
    "many columns": lambda d, n, rng: rng.normal(size=(n, 20)),
    "discrete rows": lambda d, n, rng: rng.integers(0, 3, (n, 3)),
    "labels": lambda d, n, rng: rng.choice(list("abcdef"), n),
    "often NaN": lambda d, n, rng: np.where(rng.random((n, 2)) < 0.3, np.nan, rng.random((n, 2))),
    "objects": lambda d, n, rng: [{f"k{i}": 1.0} if i < 5 else None for i in rng.integers(0, 8, n)],
}
CONFIDENCE, SEEDS = 0.9, 3


@pytest.mark.parametrize("correction", ["auto", "betting", "clopper-pearson"])
def test_identical_laws_are_certified_0_nearly_always(correction):
    """A bound above 0 errs at epsilon = 0: in at most 10 % of the audits, 1e-6 by a binomial law beyond that."""
    errors, audits = 0, 0
    for law in NULLS.values():
        for seed in range(SEEDS):
            result = audit(
                from_sampler(law),
                ("a", "b"),
                PrivacyClaim(0.5),
                n_trials=2000,
                confidence=CONFIDENCE,
                correction=correction,
                seed=seed,
            )
            assert not result.violated
            errors += result.epsilon_lower > 0
            audits += 1
    assert errors <= binom.ppf(1 - 1e-6, audits, 1 - CONFIDENCE)


class RandomClean:
    def clean(self, dataset, rng):
        return rng.normal(size=3)

    def privatize(self, clean, rng):
        return clean + 0.1 * rng.normal(size=clean.shape)


def test_identical_random_clean_stages_are_certified_0_nearly_always():
    """The attack is chosen on rows of their own; on the certifying rows it would find differences."""
    errors = 0
    for seed in range(20):
        result = audit(
            RandomClean(),
            ("a", "b"),
            PrivacyClaim(1.0),
            n_trials=1000,
            n_snapshots=100,
            confidence=0.95,
            seed=seed,
        )
        assert not result.violated
        errors += result.epsilon_lower > 0
    assert errors <= binom.ppf(1 - 1e-6, 20, 0.05)


def test_identical_recorded_rows_are_certified_0_nearly_always():
    errors = 0
    for seed in range(20):
        rows = np.random.default_rng(seed).normal(size=(2, 100, 4))
        sides = [Snapshot(side, np.ones(100, dtype=int)) for side in rows]
        result = audit(
            RandomClean(), SnapshotPair(*sides), PrivacyClaim(1.0), n_trials=1000, confidence=0.95, seed=seed
        )
        errors += result.epsilon_lower > 0
    assert errors <= binom.ppf(1 - 1e-6, 20, 0.05)
