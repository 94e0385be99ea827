"""pytest-snapaudit: put differential-privacy claims under test, with valid lower bounds on epsilon.

Public names are loaded on first use: importing this package loads neither NumPy nor SciPy nor Hypothesis.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_snapaudit.auditor import PrivacyAuditor as PrivacyAuditor
    from pytest_snapaudit.engine.audit import audit as audit
    from pytest_snapaudit.engine.claim import PrivacyClaim as PrivacyClaim
    from pytest_snapaudit.engine.errors import BudgetExceeded as BudgetExceeded
    from pytest_snapaudit.engine.errors import DeclarationMismatch as DeclarationMismatch
    from pytest_snapaudit.engine.errors import InconclusiveAudit as InconclusiveAudit
    from pytest_snapaudit.engine.errors import InvalidClaim as InvalidClaim
    from pytest_snapaudit.engine.errors import MechanismError as MechanismError
    from pytest_snapaudit.engine.errors import PrivacyViolation as PrivacyViolation
    from pytest_snapaudit.engine.errors import SensitivityExceeded as SensitivityExceeded
    from pytest_snapaudit.engine.errors import SnapshotCorrupt as SnapshotCorrupt
    from pytest_snapaudit.engine.errors import SnapshotError as SnapshotError
    from pytest_snapaudit.engine.errors import SnapshotMissing as SnapshotMissing
    from pytest_snapaudit.engine.errors import SnapshotStale as SnapshotStale
    from pytest_snapaudit.engine.errors import VacuousAudit as VacuousAudit
    from pytest_snapaudit.engine.mechanism import Mechanism as Mechanism
    from pytest_snapaudit.engine.mechanism import Sampler as Sampler
    from pytest_snapaudit.engine.mechanism import from_callable as from_callable
    from pytest_snapaudit.engine.mechanism import from_sampler as from_sampler
    from pytest_snapaudit.engine.noise import DensityNoise as DensityNoise
    from pytest_snapaudit.engine.noise import DiscreteGaussianNoise as DiscreteGaussianNoise
    from pytest_snapaudit.engine.noise import DiscreteLaplaceNoise as DiscreteLaplaceNoise
    from pytest_snapaudit.engine.noise import ExponentialNoise as ExponentialNoise
    from pytest_snapaudit.engine.noise import GaussianNoise as GaussianNoise
    from pytest_snapaudit.engine.noise import GumbelNoise as GumbelNoise
    from pytest_snapaudit.engine.noise import LaplaceNoise as LaplaceNoise
    from pytest_snapaudit.engine.noise import StaircaseNoise as StaircaseNoise
    from pytest_snapaudit.engine.passive import PassiveResult as PassiveResult
    from pytest_snapaudit.engine.passive import passive_audit as passive_audit
    from pytest_snapaudit.engine.privacy_profile import PrivacyProfile as PrivacyProfile
    from pytest_snapaudit.engine.privacy_profile import privacy_profile as privacy_profile
    from pytest_snapaudit.engine.result import AuditResult as AuditResult
    from pytest_snapaudit.engine.result import Verdict as Verdict
    from pytest_snapaudit.engine.snapshot import Snapshot as Snapshot
    from pytest_snapaudit.engine.snapshot import SnapshotPair as SnapshotPair
    from pytest_snapaudit.engine.stability import VerdictStability as VerdictStability
    from pytest_snapaudit.engine.stability import predicted_stability as predicted_stability
    from pytest_snapaudit.engine.stability import verdict_stability as verdict_stability
    from pytest_snapaudit.markers import privacy_audit as privacy_audit
    from pytest_snapaudit.outcomes import SnapauditWarning as SnapauditWarning
    from pytest_snapaudit.search import SearchResult as SearchResult

__all__ = [
    "AuditResult",
    "BudgetExceeded",
    "DeclarationMismatch",
    "DensityNoise",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "ExponentialNoise",
    "GaussianNoise",
    "GumbelNoise",
    "InconclusiveAudit",
    "InvalidClaim",
    "LaplaceNoise",
    "Mechanism",
    "MechanismError",
    "PassiveResult",
    "PrivacyAuditor",
    "PrivacyClaim",
    "PrivacyProfile",
    "PrivacyViolation",
    "Sampler",
    "SearchResult",
    "SensitivityExceeded",
    "SnapauditWarning",
    "Snapshot",
    "SnapshotCorrupt",
    "SnapshotError",
    "SnapshotMissing",
    "SnapshotPair",
    "SnapshotStale",
    "StaircaseNoise",
    "VacuousAudit",
    "Verdict",
    "VerdictStability",
    "audit",
    "from_callable",
    "from_sampler",
    "passive_audit",
    "predicted_stability",
    "privacy_audit",
    "privacy_profile",
    "verdict_stability",
]

_HOMES = {
    "auditor": ("PrivacyAuditor",),
    "engine.audit": ("audit",),
    "engine.claim": ("PrivacyClaim",),
    "engine.errors": (
        "BudgetExceeded",
        "DeclarationMismatch",
        "InconclusiveAudit",
        "InvalidClaim",
        "MechanismError",
        "PrivacyViolation",
        "SensitivityExceeded",
        "SnapshotCorrupt",
        "SnapshotError",
        "SnapshotMissing",
        "SnapshotStale",
        "VacuousAudit",
    ),
    "engine.mechanism": ("Mechanism", "Sampler", "from_callable", "from_sampler"),
    "engine.noise": (
        "DensityNoise",
        "DiscreteGaussianNoise",
        "DiscreteLaplaceNoise",
        "ExponentialNoise",
        "GaussianNoise",
        "GumbelNoise",
        "LaplaceNoise",
        "StaircaseNoise",
    ),
    "engine.passive": ("PassiveResult", "passive_audit"),
    "engine.privacy_profile": ("PrivacyProfile", "privacy_profile"),
    "engine.result": ("AuditResult", "Verdict"),
    "engine.snapshot": ("Snapshot", "SnapshotPair"),
    "engine.stability": ("VerdictStability", "predicted_stability", "verdict_stability"),
    "markers": ("privacy_audit",),
    "outcomes": ("SnapauditWarning",),
    "search": ("SearchResult",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value: object = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
