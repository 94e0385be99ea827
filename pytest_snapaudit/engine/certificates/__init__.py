"""Model-based certificates: bounds that rest on a declared and tested noise distribution.

Every certificate needs the mechanism's own declaration, one fixed clean output per side, a claim that covers the
white-box view, and white-box draws that pass the tests of the declared shape; which condition fails is reported. It
is conditional on the declaration: no sample can exclude a contamination rarer than it.
"""

from __future__ import annotations

import numpy as np

from pytest_snapaudit.engine.certificates.base import (
    MIN_DRAWS,
    SHAPE_LEVEL,
    Certificate,
    CertificateBound,
    Tallies,
    Tally,
)
from pytest_snapaudit.engine.certificates.gaussian import GaussianCertificate, gaussian_certificate
from pytest_snapaudit.engine.certificates.location import LocationCertificate
from pytest_snapaudit.engine.certificates.loss import LossCertificate, loss_certificate
from pytest_snapaudit.engine.certificates.residuals import make_frame, rough_scale
from pytest_snapaudit.engine.families import FloatArray, NoiseLaw, law_of
from pytest_snapaudit.engine.noise import GaussianNoise
from pytest_snapaudit.engine.outcomes import Rows
from pytest_snapaudit.engine.subject import Subject

__all__ = [
    "MIN_DRAWS",
    "SHAPE_LEVEL",
    "Certificate",
    "CertificateBound",
    "GaussianCertificate",
    "LocationCertificate",
    "LossCertificate",
    "Tallies",
    "Tally",
    "certificate_for",
    "prepare",
    "static_refusals",
]

_MOST_COLUMNS = 512


def static_refusals(subject: Subject, *, gaussian: bool = False) -> tuple[str, ...]:
    """Conditions of a certificate that can be decided without a draw; empty if all hold.

    Args:
        subject: what is audited.
        gaussian: whether only Gaussian noise will do, for reading the rates of an event on any audited view by
            the Gaussian trade-off.
    """
    noise = subject.noise
    if noise is None or (gaussian and not isinstance(noise, GaussianNoise)):
        return ("the mechanism declares no GaussianNoise(sigma)",)
    refusals = []
    if subject.clean != "fixed" or subject.clean_rows is None:
        refusals.append(
            "the clean stage is random or not declared deterministic (it needs one fixed clean output per side)"
        )
    elif subject.clean_direction is None:
        refusals.append("the clean outputs are not finite numbers")
    if not (subject.noise_stage_claimed if gaussian else subject.noise_stage_covered):
        refusals.append("the claim does not cover the white-box view, or that view is not audited")
    return tuple(refusals)


def prepare(
    subject: Subject,
    pilot: tuple[Rows, Rows] | None,
    *,
    delta: float = 0.0,
    planned: int = 400_000,
    alpha: float = 1e-3,
    gaussian: bool = False,
) -> Certificate | tuple[str, ...]:
    """The certificate, set up on pilot draws of the white-box view, or why it does not apply.

    Args:
        subject: what is audited.
        pilot: (h, d) draws per side that are not tallied later.
        delta: of the claim.
        planned: draws per side that will be tallied in all.
        alpha: error probability of the certificate on the last look.
        gaussian: whether only Gaussian noise will do.
    """
    refusals = static_refusals(subject, gaussian=gaussian)
    direction, noise = subject.clean_direction, subject.noise
    if refusals or noise is None or direction is None or subject.clean_rows is None or pilot is None:
        return refusals or ("there are no white-box draws",)
    if pilot[0].shape[1] != len(direction):
        return (
            f"privatize returns {pilot[0].shape[1]} numbers for {len(direction)} clean ones, so the noise is not "
            "seen alone",
        )
    law = law_of(noise)
    if law is None:
        return gaussian_certificate(direction, pilot)
    clean = np.stack([rows.reshape(len(rows), -1)[0].astype(np.float64) for rows in subject.clean_rows])
    return certificate_for(law, clean, pilot, delta=delta, planned=planned, alpha=alpha)


def certificate_for(
    law: NoiseLaw, clean: FloatArray, pilot: tuple[Rows, Rows], *, delta: float, planned: int, alpha: float
) -> Certificate | tuple[str, ...]:
    """The certificate of a law other than the Gaussian, or why it does not apply.

    Coordinates in which the clean outputs agree, and those of the smallest differences beyond 512, are left out,
    which only loses: the rest alone is post-processing.

    Args:
        law: of the noise on every coordinate, independent between them.
        clean: (2, d) clean outputs.
        pilot: (h, d) draws per side that are not tallied later.
        delta, planned, alpha: as in :func:`prepare`.
    """
    shift = clean[1] - clean[0]
    columns = np.argsort(-np.abs(shift), kind="stable")[: min(np.count_nonzero(shift), _MOST_COLUMNS)]
    if law.whole and np.abs(shift[columns] - np.rint(shift[columns])).max() > 1e-9:
        return (f"the clean outputs are not whole numbers apart, which {law.name} noise needs",)
    centres = clean[:, columns]
    residuals = np.concatenate([pilot[side][:, columns] - centres[side] for side in (0, 1)])
    scale = rough_scale(law, np.asarray(residuals, dtype=np.float64))
    if scale is None or not np.isfinite(residuals).all():
        return ("the white-box draws are constant or not finite where the clean outputs differ",)
    frame = make_frame(law, columns, centres, scale if law.scaled else law.scale)
    if law.scaled and (len(columns) == 1 or delta == 0.0):
        return LocationCertificate(frame)
    return loss_certificate(frame, pilot, planned=planned, alpha=alpha)
