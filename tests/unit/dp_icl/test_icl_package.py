"""What dp_icl needs, and how an auditor sees its mechanisms."""

import subprocess
import sys

import numpy as np
import pytest

from dp_icl import EmbeddingSpaceAggregation, PrivateVoting
from dp_icl.flawed import (
    ClassicalPrivateVoting,
    LeakingTieBreakPrivateVoting,
    OneLabelNoisePrivateVoting,
    UnitSensitivityEmbeddingSpaceAggregation,
    UnitSensitivityPrivateVoting,
)
from pytest_snapaudit.engine.claim import PrivacyClaim
from pytest_snapaudit.engine.mechanism import Mechanism, claimed_views, declared_noise
from pytest_snapaudit.engine.noise import GaussianNoise

MECHANISMS = [
    (PrivateVoting(("yes", "no"), 3, 1.0, 1e-5), ["yes", "no", "no"]),
    (ClassicalPrivateVoting(("yes", "no"), 3, 1.0, 1e-5), ["yes", "no", "no"]),
    (UnitSensitivityPrivateVoting(("yes", "no"), 3, 1.0, 1e-5), ["yes", "no", "no"]),
    (LeakingTieBreakPrivateVoting(("yes", "no"), 3, 1.0, 1e-5), ["yes", "no", "no"]),
    (OneLabelNoisePrivateVoting(("yes", "no"), 3, 1.0, 1e-5), ["yes", "no", "no"]),
    (EmbeddingSpaceAggregation(2, 1.0, 1e-5, candidates=np.eye(3)), np.eye(3)[:2]),
    (UnitSensitivityEmbeddingSpaceAggregation(2, 1.0, 1e-5, candidates=np.eye(3)), np.eye(3)[:2]),
]


def test_importing_it_needs_neither_the_auditor_nor_pytest_nor_torch():
    program = (
        "import sys\n"
        "for name in ('pytest_snapaudit', 'pytest', 'hypothesis', 'torch', 'transformers'):\n"
        "    sys.modules[name] = None\n"
        "import dp_icl, dp_icl.flawed, dp_icl.membership\n"
        "print(dp_icl.PrivateVoting.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "PrivateVoting\n", done.stderr


@pytest.mark.parametrize(("mechanism", "dataset"), MECHANISMS, ids=lambda value: type(value).__name__)
def test_an_auditor_recognises_the_mechanism_and_its_declarations(mechanism, dataset):
    assert isinstance(mechanism, Mechanism)
    assert declared_noise(mechanism) == GaussianNoise(mechanism.sigma)
    assert claimed_views(mechanism) == ("white-box", "black-box")
    assert PrivacyClaim(*mechanism.claim) == PrivacyClaim(1.0, 1e-5)


@pytest.mark.parametrize(("mechanism", "dataset"), MECHANISMS, ids=lambda value: type(value).__name__)
def test_the_stages_fit_together(mechanism, dataset):
    rng = np.random.default_rng(0)
    clean = mechanism.clean(dataset, rng)
    assert (clean == mechanism.clean(dataset, rng)).all()
    noisy = mechanism.privatize(np.broadcast_to(clean, (50, *clean.shape)), rng)
    assert noisy.shape == (50, *clean.shape)
    assert noisy.flags.c_contiguous
    released = mechanism.release(noisy, rng)
    assert released.shape == (50,)
    assert released.dtype == np.intp
