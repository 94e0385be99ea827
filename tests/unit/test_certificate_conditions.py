"""Every condition of a certificate that can fail: the refusal names it, and no bound is given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import logistic
from statistical.noisy_numbers import EXPONENTIAL, FAMILIES, FIXED_DENSITY

from pytest_snapaudit.engine.audit import audit
from pytest_snapaudit.engine.certificates import (
    LocationCertificate,
    LossCertificate,
    certificate_for,
    conditions,
)
from pytest_snapaudit.engine.certificates.residuals import make_frame, rough_scale, scale_at, within
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.noise import DensityNoise, DiscreteLaplaceNoise, ExponentialNoise, LaplaceNoise

LAPLACE = FAMILIES["Laplace, pure"]
WHOLE = FAMILIES["discrete Laplace"]
N = 20_000


def bound_of(family, rows, *, width=1, delta=0.0, clean=None, pilot=None):
    clean = np.stack([np.zeros(width), np.full(width, family.shift)]) if clean is None else clean
    rng = np.random.default_rng(1)
    pilot = family.rows(rng, 500, 1.0, width) if pilot is None else pilot
    certificate = certificate_for(family.law, clean, pilot, delta=delta, planned=N, alpha=1e-3)
    assert not isinstance(certificate, tuple), certificate
    return certificate.bound(certificate.tally(rows), 1e-3, delta)


def refusal(family, rows, **options):
    bound = bound_of(family, rows, **options)
    assert bound.refusals
    assert bound.epsilon_lower == 0.0
    return "; ".join(bound.refusals)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_as_declared_nothing_is_refused(rng):
    assert bound_of(LAPLACE, LAPLACE.rows(rng, N)).refusals == ()


def test_too_few_draws(rng):
    words = refusal(LAPLACE, LAPLACE.rows(rng, 4_999))
    assert words == "4,999 white-box draws per side are too few to test the shape (5,000 needed)"


@pytest.mark.parametrize(
    "other",
    [
        lambda rng: rng.normal(0, 2.8, (N, 1)),
        lambda rng: rng.logistic(0, 1.5, (N, 1)),
        lambda rng: np.round(rng.laplace(0, 2.0, (N, 1)), 0),
        lambda rng: np.clip(rng.laplace(0, 2.0, (N, 1)), -6.0, 6.0),
        lambda rng: rng.laplace(0, 2.0, (N, 1)) * np.where(rng.random((N, 1)) < 0.01, 4.0, 1.0),
        lambda rng: rng.laplace(0.2, 2.0, (N, 1)),
    ],
    ids=["normal", "logistic", "rounded", "clipped", "contaminated", "off centre"],
)
def test_another_shape_on_one_side(rng, other):
    assert "the noise on the reference side is not Laplace" in refusal(
        LAPLACE, (other(rng), LAPLACE.rows(rng, N)[1])
    )


def test_values_that_no_such_law_gives(rng):
    a, b = EXPONENTIAL.rows(rng, N)
    a[5] = -1e-3
    assert "a value of -0.001 lies below its support" in refusal(EXPONENTIAL, (a, b), delta=0.1)
    a, b = WHOLE.rows(rng, N)
    b[5] += 0.25
    assert "canary side is not discrete Laplace: 1 values are not whole numbers" in refusal(WHOLE, (a, b))
    a, b = LAPLACE.rows(rng, N)
    a[:2, 0] = np.nan, np.inf
    assert "2 draws are not finite" in refusal(LAPLACE, (a, b))
    assert "the values have no spread" in refusal(LAPLACE, (np.zeros((N, 1)), b))


def test_another_scale_on_one_side(rng):
    a, b = LAPLACE.rows(rng, N)[0], LAPLACE.rows(rng, N, 1.1)[1]
    assert "the noise scale differs between the sides (" in refusal(LAPLACE, (a, b))


@pytest.mark.parametrize("mix", ["same sign", "same size"])
def test_dependent_coordinates(rng, mix):
    a, b = LAPLACE.rows(rng, N, width=3)
    if mix == "same sign":
        a = np.abs(a) * np.sign(a[:, :1])
    else:
        a[:, 2] = np.abs(a[:, 1]) * np.sign(a[:, 2])
    assert refusal(LAPLACE, (a, b), width=3) == "the noise of different coordinates is not independent"


def test_a_scale_above_the_declared_one_stops_the_mean_of_losses(rng):
    rows = LAPLACE.rows(rng, N, 1.05, width=3)
    words = refusal(LAPLACE, rows, width=3, delta=1e-2, pilot=LAPLACE.rows(rng, 500, 1.0, 3))
    assert "the noise scale is only known to be at most" in words


@pytest.mark.parametrize("times", [0.93, 1.08])
def test_a_density_without_a_scale_must_have_its_scale(rng, times):
    words = refusal(FIXED_DENSITY, FIXED_DENSITY.rows(rng, N, times), delta=1e-2)
    assert "times the declared one, beyond" in words


def test_clean_outputs_that_are_not_whole_numbers_apart():
    clean = np.array([[0.0], [0.5]])
    found = certificate_for(
        WHOLE.law, clean, WHOLE.rows(np.random.default_rng(0), 500), delta=0.0, planned=N, alpha=0.1
    )
    assert found == ("the clean outputs are not whole numbers apart, which discrete Laplace noise needs",)


def test_constant_draws():
    clean = np.array([[0.0], [1.0]])
    pilot = np.zeros((500, 1)), np.ones((500, 1))
    found = certificate_for(LAPLACE.law, clean, pilot, delta=0.0, planned=N, alpha=0.1)
    assert found == ("the white-box draws are constant or not finite where the clean outputs differ",)


def test_which_certificate_applies_when(rng):
    def kind(family, width, delta):
        clean = np.stack([np.zeros(width), np.full(width, family.shift)])
        pilot = family.rows(rng, 500, 1.0, width)
        return type(certificate_for(family.law, clean, pilot, delta=delta, planned=N, alpha=0.1))

    assert kind(LAPLACE, 1, 1e-3) is kind(LAPLACE, 3, 0.0) is LocationCertificate
    assert kind(LAPLACE, 3, 1e-3) is kind(FIXED_DENSITY, 1, 1e-3) is LossCertificate


def test_coordinates_without_a_difference_are_left_out(rng):
    a, b = LAPLACE.rows(rng, N, width=3)
    a[:, 0] = b[:, 0] = 0.0
    b[:, 2] += 1.0
    clean = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]])
    bound = bound_of(LAPLACE, (a, b), width=3, clean=clean, pilot=(a[:500], b[:500]))
    assert bound.refusals == ()
    assert 1.4 < bound.epsilon_lower < 1.5


def test_tallies_merge_to_the_tally_of_all_draws(rng):
    family = FAMILIES["Gumbel"]
    rows = family.rows(rng, 3_000, width=2)
    frame = make_frame(family.law, np.arange(2), np.array([[0.0, 0.0], [1.0, 1.0]]), 1.5)
    whole = frame.tally(frame.residuals(rows[1], 1))
    parts = [frame.tally(frame.residuals(rows[1][part], 1)) for part in (slice(1_000), slice(1_000, None))]
    merged = parts[1].merge(parts[0])
    assert (merged.rows, merged.inside, merged.low, merged.high) == (
        whole.rows,
        whole.inside,
        whole.low,
        whole.high,
    )
    assert merged.sum_of_sizes == pytest.approx(whole.sum_of_sizes)
    assert np.array_equal(merged.cells, whole.cells)
    assert np.array_equal(merged.products, whole.products)


@pytest.mark.parametrize("family", [*FAMILIES.values(), EXPONENTIAL], ids=[*FAMILIES, "exponential"])
def test_the_scale_is_found_from_the_interval_about_zero(family):
    law = family.law
    half_width = 1.5 if law.whole else 1.3 * law.scale
    share = within(law, half_width, 0.8 * law.scale)
    assert scale_at(law, half_width, share, 3.0 * law.scale) == pytest.approx(0.8 * law.scale)
    values = family.draw(np.random.default_rng(3), 0.5, 4_000)
    assert rough_scale(law, values) == pytest.approx(0.5 * law.scale, rel=0.1)


BOUNDED = {name: FAMILIES[name] for name in ("Laplace, pure", "discrete Laplace", "Gumbel", "staircase")} | {
    "exponential": EXPONENTIAL
}


@pytest.mark.parametrize("family", BOUNDED.values(), ids=BOUNDED)
def test_bounds_of_the_scale_miss_as_rarely_as_they_say(family):
    """300 pairs of tallies at α = 0.1: at most 48 misses, the 99.9 % binomial point."""
    law, rng = family.law, np.random.default_rng(11)
    frame = make_frame(law, np.zeros(1, dtype=np.intp), np.zeros((2, 1)), law.scale)
    above = below = 0
    for _ in range(300):
        pair = tuple(frame.tally(family.draw(rng, 1.0, (500, 1))) for _ in (0, 1))
        above += conditions.scale_upper(pair, 0.1) < law.scale
        below += conditions.scale_lower(pair, 0.1) > law.scale
    assert 5 <= above <= 48
    assert 2 <= below <= 48


def test_a_family_may_leave_the_scale_unbounded():
    frame = make_frame(WHOLE.law, np.zeros(1, dtype=np.intp), np.zeros((2, 1)), 1.5)
    outside = frame.tally(np.full((6_000, 1), 50.0))
    assert conditions.scale_upper((outside, outside), 0.1) == np.inf
    inside = replace(outside, inside=outside.rows)
    assert conditions.scale_lower((inside, inside), 0.1) == 0.0


class Numbers:
    """A number, or a few, with declared noise; the draws are of ``times`` the declared scale."""

    deterministic = True

    def __init__(self, family=LAPLACE, **attributes):
        self.family, self.noise = family, family.noise
        self.__dict__.update(attributes)

    def clean(self, dataset, rng):
        return np.asarray(dataset, dtype=float)

    def privatize(self, clean, rng):
        return clean + self.family.draw(rng, 1.0, clean.shape)


CLAIM = PrivacyClaim(5.0)


def refusals_of(mechanism, neighbours=(0.0, 1.0), **options):
    return "; ".join(audit(mechanism, neighbours, CLAIM, n_trials=8_000, **options).views[0].refusals)


def test_conditions_that_need_no_draw():
    assert refusals_of(Numbers()) == ""
    assert "the clean stage is random or not declared deterministic" in refusals_of(
        Numbers(deterministic=False), n_snapshots=100
    )
    released = Numbers(release=lambda noisy, rng: noisy > 0.5)
    assert "does not cover the white-box view" in refusals_of(released)
    assert "declares no GaussianNoise(sigma)" in refusals_of(Numbers(), estimator="gdp")


def test_noise_that_is_not_seen_alone():
    mechanism = Numbers()
    mechanism.privatize = lambda clean, rng: rng.laplace(clean.sum(axis=1), 2.0)
    words = refusals_of(mechanism, (np.zeros(3), np.ones(3)))
    assert words == "privatize returns 1 numbers for 3 clean ones, so the noise is not seen alone"


def test_enforced_declarations_of_every_family():
    from pytest_snapaudit.engine.errors import DeclarationMismatch

    for noise in (
        ExponentialNoise(2.0, enforced=True),
        DiscreteLaplaceNoise(2.0, enforced=True),
        DensityNoise(logistic.logpdf, enforced=True),
    ):
        with pytest.raises(DeclarationMismatch, match="asks to be held to it"):
            audit(Numbers(noise=noise), (0.0, 1.0), CLAIM, n_trials=1_000)
    assert not audit(
        Numbers(noise=LaplaceNoise(2.0, enforced=True)), (0.0, 1.0), CLAIM, n_trials=1_000
    ).violated
