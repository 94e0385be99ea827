"""All bugs and hazards of the zoo."""

from __future__ import annotations

from types import MappingProxyType

from . import (
    clipping,
    composition,
    data_dependent,
    distribution,
    floating_point,
    generative,
    local_dp,
    sampling,
    scale_calibration,
    selection,
    sensitivity,
)
from .entry import ZooEntry
from .hazards import HAZARDS

CATEGORIES = MappingProxyType(
    {
        "sensitivity": sensitivity.BUGS,
        "clipping": clipping.BUGS,
        "scale_calibration": scale_calibration.BUGS,
        "composition": composition.BUGS,
        "selection": selection.BUGS,
        "distribution": distribution.BUGS,
        "local_dp": local_dp.BUGS,
        "data_dependent": data_dependent.BUGS,
        "sampling": sampling.BUGS,
        "generative": generative.BUGS,
        "floating_point": floating_point.BUGS,
    }
)

BUGS: tuple[ZooEntry, ...] = tuple(entry for entries in CATEGORIES.values() for entry in entries)

__all__ = ["BUGS", "CATEGORIES", "HAZARDS"]
