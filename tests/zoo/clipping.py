"""Values are bounded in the wrong place, in the wrong norm, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .entry import TwoStageMechanism, ZooEntry
from .laws import gaussian_epsilon, gaussian_mu
from .stages import add_gaussian, add_laplace, column_sums

DELTA = 1e-5
MU = gaussian_mu(1.0, DELTA)
SIGMA = 1 / MU
"""Noise for sensitivity 1 at (1, 1e-5)."""

PRIME = 13
CAP = 4.0


def covariance(rows: Sequence[Sequence[float]]) -> float:
    """Sample covariance of two columns."""
    return float(np.cov(np.asarray(rows, float), rowvar=False)[0, 1])


def covariance_of_raw_rows(rows: Sequence[Sequence[float]]) -> float:
    """Clips into a variable that nothing reads again."""
    _clipped = np.clip(rows, 0.0, 1.0)
    return covariance(rows)


def covariance_of_clipped_rows(rows: Sequence[Sequence[float]]) -> float:
    """Covariance after clipping to the public bounds [0, 1]."""
    return covariance(np.clip(rows, 0.0, 1.0).tolist())


def clipped_mean_gradient(gradients: Sequence[float]) -> float:
    """Clips the mean over a microbatch, not each record, to [−1, 1]."""
    return float(np.clip(np.mean(gradients), -1.0, 1.0))


def clip_every_tensor(update: Sequence[float]) -> NDArray[np.float64]:
    """Bounds each parameter tensor (here one number) by 1."""
    return np.clip(update, -1.0, 1.0)


def clip_whole_update(update: Sequence[float]) -> NDArray[np.float64]:
    """Bounds the L2 norm over all parameter tensors by 1."""
    vector = np.asarray(update, float)
    return np.asarray(vector / max(1.0, float(np.linalg.norm(vector))), float)


def capped_sum(users: Sequence[Sequence[float]], *, modulus: int | None) -> NDArray[np.float64]:
    """Sum of two-entry contributions; a user over the cap keeps at most the cap, in the first entry.

    With a ``modulus`` the user's total is compared with the cap only after reduction.
    """
    accepted = []
    for user in users:
        claimed_total = sum(user) if modulus is None else sum(user) % modulus
        accepted.append(user if claimed_total <= CAP else [min(user[0], CAP), 0.0])
    return column_sums(accepted, width=2)


def unclipped_votes(votes: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Label counts over neighbours, each neighbour with as many votes as it casts."""
    return column_sums(votes, width=4)


def clipped_votes(votes: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Label counts after scaling every neighbour's votes to L1 norm at most 1."""
    bounded = [np.asarray(vote, float) / max(1.0, float(np.abs(vote).sum())) for vote in votes]
    return column_sums([vote.tolist() for vote in bounded], width=4)


BUGS = (
    ZooEntry(
        id="sn-synth-cov-raw",
        library="SmartNoise SDK (synthesizers)",
        link="https://github.com/opendp/smartnoise-sdk/issues/622",
        see_also=("https://github.com/opendp/smartnoise-sdk/pull/624",),
        summary=(
            "The rows are clipped and imputed into a new variable; the covariance is then taken over the raw "
            "rows, so that a single outlier moves it without limit."
        ),
        evidence="issue; fix merged",
        epsilon=1.0,
        pair="one of ten rows moves to (2.2, 2.2), outside the bounds [0, 1]",
        neighbours=([[0.5, 0.5]] * 10, [[0.5, 0.5]] * 9 + [[2.2, 2.2]]),
        broken=TwoStageMechanism(covariance_of_raw_rows, partial(add_laplace, scale=0.1)),
        fixed=TwoStageMechanism(covariance_of_clipped_rows, partial(add_laplace, scale=0.1)),
        true_epsilon=1.7**2 / 10 / 0.1,
        why="the covariance moves by 1.7²/10 at scale 0.1; without a bound in the size of the outlier",
    ),
    ZooEntry(
        id="tfp-microbatch-mean",
        library="TensorFlow Privacy",
        link="https://github.com/tensorflow/privacy/issues/620",
        see_also=(
            "https://github.com/tensorflow/privacy/issues/81",
            "https://github.com/tensorflow/privacy/issues/46",
        ),
        summary=(
            "With microbatches of several records, the mean gradient of a microbatch is clipped to norm "
            "C. One record can swing that mean from +C to −C, yet the accountant charges C."
        ),
        evidence="issues; newer interfaces account for it",
        epsilon=1.0,
        delta=DELTA,
        pair="a record with gradient −3 joins a microbatch, C = 1",
        neighbours=([1.0], [1.0, -3.0]),
        broken=TwoStageMechanism(clipped_mean_gradient, partial(add_gaussian, sigma=SIGMA)),
        fixed=TwoStageMechanism(clipped_mean_gradient, partial(add_gaussian, sigma=2 * SIGMA)),
        true_epsilon=gaussian_epsilon(2 * MU, DELTA),
        why="from +1 to −1 is twice the shift that the noise allows",
    ),
    ZooEntry(
        id="fedbiomed-per-tensor-clip",
        library="Fed-BioMed",
        link="https://github.com/fedbiomed/fedbiomed/issues/1443",
        summary=(
            "A client's update is clipped to norm C in each parameter tensor instead of over all of them: "
            "with k tensors its L2 sensitivity is √k·C."
        ),
        evidence="issue by a maintainer, worded as probable",
        epsilon=1.0,
        delta=DELTA,
        pair="a client's update over four tensors in place of none",
        neighbours=([0.0] * 4, [5.0] * 4),
        broken=TwoStageMechanism(clip_every_tensor, partial(add_gaussian, sigma=SIGMA)),
        fixed=TwoStageMechanism(clip_whole_update, partial(add_gaussian, sigma=SIGMA)),
        true_epsilon=gaussian_epsilon(2 * MU, DELTA),
        why="√4 times the shift that the noise allows",
    ),
    ZooEntry(
        id="ipa-wrapping-cap",
        library="Interoperable Private Attribution",
        link="https://github.com/private-attribution/ipa/issues/520",
        see_also=("https://github.com/private-attribution/ipa/pull/589",),
        summary=(
            "The cap on a user's contribution is checked on a sum in a prime field. Contributions chosen "
            "to wrap around pass the check with a large true total."
        ),
        evidence="fix merged; numbers chosen here",
        epsilon=1.0,
        pair="one more user, who submits 7 and 7 against cap 4 modulo 13",
        neighbours=([[1.0, 1.0]], [[1.0, 1.0], [7.0, 7.0]]),
        broken=TwoStageMechanism(partial(capped_sum, modulus=PRIME), partial(add_laplace, scale=CAP)),
        fixed=TwoStageMechanism(partial(capped_sum, modulus=None), partial(add_laplace, scale=CAP)),
        true_epsilon=14 / CAP,
        why="a contribution of 14 at scale 4",
    ),
    ZooEntry(
        id="privateknn-unclipped-votes",
        library="Private-kNN",
        link="https://github.com/jeremy43/Private_kNN/issues/2",
        summary=(
            "The votes of a multi-label neighbour are clipped into one variable, but the unclipped votes are "
            "the ones aggregated and noised."
        ),
        evidence="fixed by the author",
        epsilon=1.0,
        delta=DELTA,
        pair="one more neighbour, who votes for all four labels; noise for L2 sensitivity 1",
        neighbours=([[0.25] * 4] * 12, [[0.25] * 4] * 12 + [[1.0] * 4]),
        broken=TwoStageMechanism(unclipped_votes, partial(add_gaussian, sigma=SIGMA)),
        fixed=TwoStageMechanism(clipped_votes, partial(add_gaussian, sigma=SIGMA)),
        true_epsilon=gaussian_epsilon(2 * MU, DELTA),
        why="four votes are L2 distance 2, twice the shift that the noise allows",
    ),
)
