"""Certificates of every declared family: they err as rarely as stated, come close, and see what counting cannot.

Error rates are held against the 99.9 % binomial point of the stated α; the certificates are run directly, at few
draws, so that hundreds of them fit. Each family's pair has a known exact loss (``noisy_numbers``).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.budget import CERTIFICATE_SHARE
from pytest_snapaudit.engine.certificates import LossCertificate
from pytest_snapaudit.engine.certificates.loss import CELLS, epsilon_from_losses
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.estimators import analytic_gaussian_sigma, gaussian_delta
from pytest_snapaudit.engine.mechanism import from_sampler
from pytest_snapaudit.engine.noise import NoiseDeclaration
from pytest_snapaudit.engine.result import Verdict
from statistical.mechanisms import DELTA, binomial_point, classical_sigma
from statistical.noisy_numbers import EXPONENTIAL, FAMILIES, FIXED_DENSITY, Family

FAST = [name for name in FAMILIES if "density" not in name]
"""Families whose certificate costs about 10 ms; those of a user's density cost several times as much."""


@pytest.mark.parametrize("name", FAMILIES)
def test_a_location_certificate_errs_no_more_often_than_it_may(name):
    """At α = 0.1, 5 000 draws per side: 200 certificates (25 for a user's density); most of them are given."""
    family, audits = FAMILIES[name], 200 if name in FAST else 25
    bounds = [family.certify((3, i), 5_000, alpha=0.1)[1] for i in range(audits)]
    above = sum(bound.epsilon_lower > family.epsilon for bound in bounds)
    refused = sum(bool(bound.refusals) for bound in bounds)
    assert above <= binomial_point(audits, 0.1)
    assert refused <= binomial_point(audits, 0.004)
    assert np.median([bound.epsilon_lower for bound in bounds]) >= 0.97 * family.epsilon


def test_exponential_noise_is_ruled_out_no_more_often_than_it_may():
    """At δ = 1 − exp(−shift/scale) exactly, ε is 0, and infinite for any smaller scale: the sharpest case."""
    bounds = [EXPONENTIAL.certify((3, i), 5_000, alpha=0.1)[1] for i in range(200)]
    assert sum(bound.epsilon_lower > 0.0 for bound in bounds) <= binomial_point(200, 0.1)
    smaller = [EXPONENTIAL.certify((4, i), 20_000, alpha=1e-3, times=0.95)[1] for i in range(10)]
    assert all(bound.epsilon_lower == np.inf for bound in smaller)


@pytest.mark.parametrize(
    ("family", "width"),
    [(FAMILIES[name], 3) for name in ("Laplace, pure", "discrete Laplace", "Gumbel", "staircase")]
    + [(FIXED_DENSITY, 1)],
    ids=["Laplace", "discrete Laplace", "Gumbel", "staircase", "fixed density"],
)
def test_a_mean_of_losses_errs_no_more_often_than_it_may(family, width):
    """At α = 0.2, δ = 0.05, 30 certificates, with the exact composition by 10⁶ independent losses."""
    delta = 0.05
    exact = composed_epsilon(family, width, delta)
    bounds = [family.certify((3, i), 5_000, alpha=0.2, width=width, delta=delta)[1] for i in range(30)]
    given = [bound.epsilon_lower for bound in bounds if not bound.refusals]
    assert len(given) >= 25
    assert sum(bound > 1.002 * exact for bound in given) <= binomial_point(30, 0.2)
    assert np.median(given) >= 0.8 * exact


def composed_epsilon(family: Family, width: int, delta: float) -> float:
    """ε at ``delta`` of independent coordinates, from 10⁶ draws of the exact loss; to about 0.2 %."""
    law, rng = family.law, np.random.default_rng(17)
    z = family.draw(rng, 1.0, (1_000_000, width))
    both = [
        law.log_density(z, law.scale) - law.log_density(z + s, law.scale)
        for s in (family.shift, -family.shift)
    ]
    found = []
    for losses in (side.sum(axis=1) for side in both):
        low, high = 0.0, float(losses.max())
        for _ in range(30):
            middle = 0.5 * (low + high)
            exceeds = np.maximum(-np.expm1(np.minimum(middle - losses, 0.0)), 0.0).mean() > delta
            low, high = (middle, high) if exceeds else (low, middle)
        found.append(low)
    return max(found)


@pytest.mark.parametrize("times", [1.003, 1.01, 1.03])
@pytest.mark.parametrize("name", FAST)
def test_a_larger_scale_than_declared_never_fails_a_correct_mechanism(name, times):
    family = FAMILIES[name]
    for seed in range(8):
        _, bound = family.certify((5, seed), 40_000, alpha=1e-3, times=times)
        assert bound.epsilon_lower <= family.epsilon


@pytest.mark.parametrize("times", [1.003, 1.01, 1.03])
def test_nor_does_it_in_the_mean_of_losses_where_plain_losses_would_fail_it(times):
    """Losses at the declared scale exceed the declared ε on wider noise; at the bound of the scale they do not."""
    family, delta, plain_fails = FAMILIES["Gumbel"], 0.05, 0
    exact = composed_epsilon(family, 3, delta)
    for seed in range(4):
        certificate, bound = family.certify((5, seed), 100_000, alpha=1e-3, times=times, width=3, delta=delta)
        assert isinstance(certificate, LossCertificate)
        assert bound.epsilon_lower <= exact
        plain = LossCertificate(certificate.frame, family.law.scale, certificate.top)
        rows = family.rows(np.random.default_rng((6, seed)), 100_000, times, 3)
        edges = np.arange(CELLS + 1) * (plain.top / CELLS)
        plain_fails += any(
            epsilon_from_losses(edges, tally.losses, delta, 5e-4) > exact for tally in plain.tally(rows)
        )
    assert (plain_fails >= 3) == (times == 1.03)


@pytest.mark.parametrize("name", FAST)
def test_a_scale_three_per_cent_smaller_is_seen(name):
    family = FAMILIES[name]
    seen = sum(
        family.certify((7, seed), 100_000, alpha=1e-3, times=0.97)[1].epsilon_lower > family.epsilon
        for seed in range(10)
    )
    assert seen >= 9


@dataclass(frozen=True)
class Declared:
    """A mechanism that declares one of the families and draws at ``times`` its scale."""

    family: Family
    times: float = 1.0
    deterministic: bool = True

    @property
    def noise(self) -> NoiseDeclaration:
        return self.family.noise

    def clean(self, dataset, rng):
        return np.asarray(dataset, dtype=float)

    def privatize(self, clean, rng):
        return clean + self.family.draw(rng, self.times, clean.shape)


def test_laplace_is_flagged_at_a_claim_that_counting_cannot_reach():
    """ε truly 20.4 claimed 20 (scale 2 % too small); counting ends below 11."""
    laplace, pair, claim = FAMILIES["Laplace, pure"], (0.0, 40.0), PrivacyClaim(20.0)
    for seed in range(5):
        result = audit(Declared(laplace, 1 / 1.02), pair, claim, seed=seed, n_trials=100_000)
        view = result.views[0]
        assert result.violated
        assert 20.0 < result.epsilon_lower <= 20.4
        assert view.estimator == "Laplace privacy loss"
        assert view.conditional_on.startswith("the declared LaplaceNoise(scale=2.0")
        assert "known shift, noise scale at most" in view.conditional_on
        assert view.attack == "what the noise adds to the known clean outputs"
        correct = audit(Declared(laplace), pair, claim, seed=seed, n_trials=100_000)
        assert correct.verdict is Verdict.CONSISTENT
        assert correct.epsilon_lower > 19.7


def test_the_share_of_alpha_is_printed():
    result = audit(
        Declared(FAMILIES["Gumbel"]), (0.0, 1.0), PrivacyClaim(9.0, 1e-3), confidence=0.99, n_trials=6_000
    )
    spent = dict(result.alpha_spent)
    assert spent["black-box, certificate"] == pytest.approx(0.01 * CERTIFICATE_SHARE)
    assert sum(spent.values()) == pytest.approx(0.01)


def test_audits_of_declared_laplace_noise_fail_no_more_often_than_they_may():
    """Every gate at once on a tight mechanism, γ = 0.9."""
    failed = sum(
        audit(
            Declared(FAMILIES["Laplace, pure"]),
            (0.0, 1.0),
            PrivacyClaim(0.5),
            confidence=0.9,
            n_trials=6_000,
            seed=(5, i),
            claim_curve=lambda epsilon: float(-np.expm1((min(epsilon, 0.5) - 0.5) / 2)),
        ).violated
        for i in range(60)
    )
    assert failed <= binomial_point(60, 0.1)


def test_results_do_not_depend_on_workers():
    """Tallies of residuals and losses, and counts of the claim curve, over threads and in place."""
    for family, width, delta in ((FAMILIES["Laplace, pure"], 1, 0.0), (FAMILIES["Gumbel"], 2, 0.05)):
        pair = (np.zeros(width), np.ones(width))
        with ThreadPoolExecutor(2) as pool:
            first, second = (
                audit(
                    Declared(family),
                    pair,
                    PrivacyClaim(3.0, delta),
                    n_trials=40_000,
                    claim_curve=lambda epsilon: float(np.exp(-epsilon)),
                    executor=executor,
                )
                for executor in (None, pool)
            )
        assert first == second
        assert first.views[0].refusals == ()


def classical_curve(sigma):
    return lambda epsilon: 1.25 * float(np.exp(-0.5 * (sigma * epsilon) ** 2))


@pytest.mark.parametrize("claimed", [16.0, 20.0])
def test_a_claim_curve_refutes_classical_calibration_without_a_declaration(claimed):
    """An undeclared Gaussian at σ = sqrt(2 ln(1.25/δ))/ε; the claim itself is out of reach of counting."""
    sigma = classical_sigma(claimed)
    gaussian = from_sampler(lambda d, n, rng: d + rng.normal(0, sigma, n), name="Gaussian")
    claim = PrivacyClaim(claimed, DELTA)
    assert audit(gaussian, (0.0, 1.0), claim, n_trials=31_000).verdict is Verdict.INCONCLUSIVE
    results = [
        audit(gaussian, (0.0, 1.0), claim, seed=seed, claim_curve=classical_curve(sigma))
        for seed in range(10)
    ]
    assert sum(result.violated for result in results) >= 9
    assert all(result.claim.epsilon < 0.5 * claimed for result in results if result.violated)


@pytest.mark.parametrize("claimed", [1.0, 4.0, 16.0])
def test_a_claim_curve_never_fails_analytic_calibration(claimed):
    """The exact curve of the noise is the sharpest one that is true; γ = 0.999, 10 seeds each."""
    sigma = analytic_gaussian_sigma(claimed, DELTA)
    gaussian = from_sampler(lambda d, n, rng: d + rng.normal(0, sigma, n), name="Gaussian")
    for seed in range(10):
        assert not audit(
            gaussian,
            (0.0, 1.0),
            PrivacyClaim(claimed, DELTA),
            seed=seed,
            n_trials=31_000,
            claim_curve=lambda epsilon: gaussian_delta(1.0 / sigma, epsilon),
        ).violated
