"""What an installed wheel must do, run without the sources: a right verdict each way, and both packages."""

from importlib import metadata, resources
from pathlib import Path

import pytest

import dp_icl
import pytest_snapaudit
from pytest_snapaudit import PrivacyViolation, from_sampler, privacy_audit


def noisy_count(scale):
    """Count people with Laplace noise; epsilon is 1 / scale."""
    return from_sampler(
        lambda people, n, rng: len(people) + rng.laplace(0, scale, n), name=f"count, scale {scale}"
    )


@privacy_audit(epsilon=1.0)
def test_a_correct_mechanism_passes(privacy_auditor):
    """Noise for the claim, found tight."""
    assert privacy_auditor.check(noisy_count(1.0), (["ann"], ["ann", "bob"])).epsilon_lower > 0.9


@pytest.mark.xfail(strict=True, raises=PrivacyViolation)
@privacy_audit(epsilon=1.0)
def test_a_broken_mechanism_fails(privacy_auditor):
    """Half the noise."""
    privacy_auditor.check(noisy_count(0.5), (["ann"], ["ann", "bob"]))


@privacy_audit()
def test_a_reference_mechanism_passes(privacy_auditor):
    """Private voting from the wheel, audited with its certificate."""
    voting = dp_icl.PrivateVoting(labels=("a", "b"), partitions=3, epsilon=8, delta=1e-5)
    assert privacy_auditor.check(voting, (["a", "b", "b"], ["b", "b", "b"])).epsilon_lower > 0.95 * 8


@pytest.mark.parametrize("package", [pytest_snapaudit, dp_icl])
def test_the_wheel_is_what_runs(package):
    """Neither package comes from a source tree, and both carry their types."""
    assert Path(package.__file__).parts[-3] == "site-packages"
    assert resources.files(package).joinpath("py.typed").is_file()


def test_the_wheel_is_described():
    """Its metadata name the licence and keep heavy packages optional."""
    described = metadata.metadata("pytest-snapaudit")
    assert described["License-Expression"] == "Apache-2.0"
    required = [need for need in metadata.requires("pytest-snapaudit") or [] if "extra ==" not in need]
    names = {need.split(">")[0].strip() for need in required}
    assert names == {"pytest", "pluggy", "hypothesis", "numpy", "scipy"}
