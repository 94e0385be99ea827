"""jax: functions of a key and a dataset, vectorised over keys."""

import jax
import jax.numpy as jnp
import pytest

from pytest_snapaudit import PrivacyClaim, PrivacyViolation, privacy_audit
from pytest_snapaudit.adapters.jax import from_jax

ONE_MORE = (jnp.array([0.5, 0.2]), jnp.array([0.5, 0.2, 7.0]))

pytestmark = privacy_audit(epsilon=1.0, n_trials=100_000)


def noisy_sum(key, values):
    return jnp.clip(values, 0, 1).sum() + jax.random.laplace(key)


def the_largest(key, scores):
    return jnp.argmax(scores + 2 * jax.random.gumbel(key, scores.shape))


def test_a_clipped_sum(privacy_auditor):
    result = privacy_auditor.check(from_jax(noisy_sum), ONE_MORE)
    assert "two draws from one seed are equal" in dict(result.diagnostics)["reproducibility"]


def test_a_jitted_function_as_it_is(privacy_auditor):
    privacy_auditor.check(jax.jit(noisy_sum), ONE_MORE)


def test_the_exponential_mechanism(privacy_auditor):
    privacy_auditor.check(from_jax(the_largest), (jnp.array([1, 0, 0]), jnp.array([0, 1, 1])))


def test_a_python_branch_on_the_dataset_is_no_obstacle(privacy_auditor):
    def noisy_count(key, names):
        return float(len(names)) + jax.random.laplace(key) if names else jax.random.laplace(key)

    privacy_auditor.check(from_jax(noisy_count), ([], ["ann"]))


def one_key_twice(key, values):
    """Both outputs carry the same noise, so their difference carries none."""
    return noisy_sum(key, values) + values[-1], noisy_sum(key, values)


def half_the_noise(key, values):
    return jnp.clip(values, 0, 1).sum() + jax.random.laplace(key) / 2


def unclipped(key, values):
    return values.sum() + jax.random.laplace(key)


@pytest.mark.xfail(strict=True, raises=PrivacyViolation)
@pytest.mark.parametrize("fn", [half_the_noise, unclipped])
def test_a_planted_regression(privacy_auditor, fn):
    privacy_auditor.check(from_jax(fn), ONE_MORE)


@pytest.mark.xfail(strict=True, raises=PrivacyViolation)
def test_one_key_for_two_outputs(privacy_auditor):
    privacy_auditor.check(from_jax(one_key_twice, claim=PrivacyClaim(2.0)), ONE_MORE, epsilon=2.0)
