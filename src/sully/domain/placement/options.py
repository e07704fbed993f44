"""How placements are evaluated: which decisions differ from OCM, and what flags set."""

from __future__ import annotations

from dataclasses import dataclass

from sully.machinery.compat import Compat


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementOptions:
    """How one hub evaluates placements."""

    compat: Compat = Compat.SULLY
    health_toleration_seconds: int | None = None
    """How long placements without such tolerations tolerate the two health taints."""
    removals_per_minute: int | None = None
    """How many clusters may be removed from placements in a minute because of their health."""


OCM = PlacementOptions(compat=Compat.KUBERNETES)
"""As Open Cluster Management evaluates them."""
