"""Shares of the error probability α inside one audit.

α is split between the covered views; within a view, a fifth goes to a model-based certificate if one may apply,
another fifth to the claim curve if the mechanism states one, and the distribution-free rest is split between the
betting gate and the event counts. A view the claim does not cover never gates, so its (reported) bound has α for
itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CERTIFICATE_SHARE = 0.2
"""A certificate depends on its share of α through one quantile only, so it needs little of it."""


@dataclass(frozen=True)
class AlphaShares:
    """Error probability of each gate on one view."""

    counts: float
    betting: float
    certificate: float
    curve: float = 0.0

    def items(self) -> tuple[tuple[str, float], ...]:
        """Gates that spend something, by name."""
        named = (
            ("event counts", self.counts),
            ("betting", self.betting),
            ("certificate", self.certificate),
            ("claim curve", self.curve),
        )
        return tuple((name, share) for name, share in named if share > 0)


def split(
    alpha: float,
    views: tuple[str, ...],
    covered: frozenset[str],
    *,
    certificate: str | None,
    correction: str,
    estimator: str,
    curve: bool = False,
) -> dict[str, AlphaShares]:
    """Shares per view.

    Args:
        alpha: error probability of the whole audit.
        certificate: the view that a model-based certificate speaks of, if one may apply.
        correction: ``"auto"`` runs both gates side by side; a named one has the view's share alone.
        estimator: ``"gdp"`` converts rates, which the betting gate does not produce.
        curve: whether the mechanism states a claim curve; its covered views have a share for it.
    """
    gated = max(sum(view in covered for view in views), 1)
    shares = {}
    for view in views:
        mine = alpha / gated if view in covered else alpha
        model = mine * CERTIFICATE_SHARE if view == certificate and estimator == "auto" else 0.0
        points = mine * CERTIFICATE_SHARE if curve and view in covered else 0.0
        free = mine - model - points
        if correction == "betting" and estimator != "gdp":
            shares[view] = AlphaShares(0.0, free, model, points)
        elif correction == "auto" and estimator != "gdp":
            shares[view] = AlphaShares(free / 2, free / 2, model, points)
        else:
            shares[view] = AlphaShares(free, 0.0, model, points)
    return shares


def spent(shares: Mapping[str, AlphaShares], covered: frozenset[str]) -> tuple[tuple[str, float], ...]:
    """Every share of the covered views, by name, for the result."""
    return tuple(
        (f"{view}, {gate}", share)
        for view, of_view in shares.items()
        if view in covered
        for gate, share in of_view.items()
    )
