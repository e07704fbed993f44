"""How placement is set up: what flags say, and what of that applies."""

from __future__ import annotations

from dataclasses import dataclass

from sully.domain.placement.options import PlacementOptions
from sully.machinery.compat import Compat


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSettings:
    """What flags say; None stands for none."""

    toleration_seconds: int | None = None
    """How long placements that say nothing about them tolerate the taints from health."""
    removals_per_minute: int | None = None
    """How many clusters may leave their placements in a minute because of their health."""


def placement_options(settings: PlacementSettings, compat: Compat) -> PlacementOptions:
    """Return how placements are evaluated; OCM has none of the settings."""
    if not compat.allows_placement_limits:
        return PlacementOptions(compat=compat)
    return PlacementOptions(
        compat=compat,
        health_toleration_seconds=settings.toleration_seconds,
        removals_per_minute=settings.removals_per_minute,
    )
