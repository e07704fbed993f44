"""The settings of placement: the values of flags, and which of them apply."""

from __future__ import annotations

import msgspec

from sully.domain.placement.options import PlacementOptions
from sully.machinery.compat import Compat


class PlacementSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The values of flags; None disables a setting."""

    toleration_seconds: int | None = None
    """How long placements without a matching toleration tolerate the taints of health."""
    removals_per_minute: int | None = None
    """How many clusters may be removed from placements in a minute because of their health."""


def placement_options(settings: PlacementSettings, compat: Compat) -> PlacementOptions:
    """Return the options of placements; OCM has none of the settings."""
    if not compat.allows_placement_limits:
        return PlacementOptions(compat=compat)
    return PlacementOptions(
        compat=compat,
        health_toleration_seconds=settings.toleration_seconds,
        removals_per_minute=settings.removals_per_minute,
    )
