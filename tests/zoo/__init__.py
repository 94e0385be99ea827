"""Real privacy bugs with repaired twins, and correct mechanisms that look wrong."""

from .catalogue import BUGS, CATEGORIES, HAZARDS
from .entry import Hazard, TwoStageMechanism, ZooEntry

__all__ = ["BUGS", "CATEGORIES", "HAZARDS", "Hazard", "TwoStageMechanism", "ZooEntry"]
