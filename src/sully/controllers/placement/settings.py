"""How placement is set up: what flags say, and what of that the reference leaves."""

from __future__ import annotations

from dataclasses import dataclass

from sully.domain.placement.behaviour import REFERENCE, Behaviour, improved


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSettings:
    """What flags say; None stands for none."""

    toleration_seconds: int | None = None
    """How long placements that say nothing about them tolerate the taints from health."""
    leaves_per_minute: int | None = None
    """How many clusters may leave their placements in a minute because of their health."""


def behaviour(settings: PlacementSettings, *, strict: bool) -> Behaviour:
    """Return how to place; the reference knows none of the settings."""
    if strict:
        return REFERENCE
    return improved(
        health_toleration_seconds=settings.toleration_seconds,
        leaves_per_minute=settings.leaves_per_minute,
    )
