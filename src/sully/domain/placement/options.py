"""How placements are evaluated: which decisions differ from OCM, and what flags set."""

from __future__ import annotations

import msgspec

from sully.machinery.compat import Compat


class PlacementOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How one hub evaluates placements."""

    compat: Compat = Compat.SULLY
    health_toleration_seconds: int | None = None
    """How long placements without such tolerations tolerate the two health taints."""
    removals_per_minute: int | None = None
    """How many clusters may be removed from placements in a minute because of their health."""


OCM = PlacementOptions(compat=Compat.KUBERNETES)
"""As Open Cluster Management evaluates them."""
