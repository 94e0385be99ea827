"""Numbers as printed: a lower bound is never rounded up."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal


def lower_bound(epsilon_lower: float, claimed: float) -> str:
    """``epsilon_lower`` rounded down to four significant digits, or more to keep it above ``claimed``."""
    if not math.isfinite(epsilon_lower) or epsilon_lower <= 0:
        return f"{epsilon_lower:g}"
    exact = Decimal(repr(float(epsilon_lower)))
    for digits in range(4, 18):
        rounded = Context(prec=digits, rounding=ROUND_FLOOR).plus(exact)
        if epsilon_lower <= claimed or float(rounded) > claimed:
            return f"{float(rounded):.{digits}g}"
    return repr(epsilon_lower)


def factor(value: float) -> str:
    """A factor rounded up to three significant digits, ``x1.04``; ``-`` if there is none."""
    if not math.isfinite(value):
        return "-"
    shown = float(f"{value:.3g}")
    if shown < value:
        shown += 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"x{shown:.3g}"


def percent(confidence: float) -> str:
    """A confidence as a percentage, ``99.9%``."""
    return f"{round(100 * confidence, 10):g}%"


def duration(seconds: float) -> str:
    """A run time in ms below one second, in s above."""
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
