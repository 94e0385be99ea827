"""What a recorded pair says about itself; see :mod:`pytest_snapaudit.engine.snapshot_diagnostics`."""

from pytest_snapaudit.engine.snapshot_diagnostics import NORMS, snapshot_diagnostics, unseen_mass_upper

__all__ = ["NORMS", "snapshot_diagnostics", "unseen_mass_upper"]
