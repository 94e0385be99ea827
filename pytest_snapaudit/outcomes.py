"""What a test session says about an audit beside passing and failing."""

from __future__ import annotations

import pytest


class SnapauditWarning(pytest.PytestWarning):
    """An audit whose verdict is INCONCLUSIVE, in a run that was not asked to be strict."""
