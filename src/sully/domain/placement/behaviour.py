"""Where Sully places differently from OCM, each with its own switch.

With everything off, as in `Behaviour()`, placements come out as Open Cluster Management decides
them. `improved()` is what runs without `--compat reference`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """The switches; see `docs/compatibility.md` for what each changes for a user."""

    prefer: bool = False
    """PreferNoSelect counts: clusters without an untolerated one come first."""
    hold: bool = False
    """A placement that cannot be evaluated keeps the clusters it has instead of losing them."""
    exact_seconds: bool = False
    """More than 9223372036 tolerated seconds mean a long time; OCM overflows."""
    quoted_group_size: bool = False
    """A group size such as `"5"` is a number; its schema allows it and its scheduler does not."""
    built_in_once: bool = False
    """A built-in with a stray `addOn` replaces the default weight instead of adding to it."""
    watch_scores: bool = False
    """Look again when an add-on score runs out, not only when something changes."""
    health_toleration_seconds: int | None = None
    """How long placements that say nothing about them tolerate the two health taints."""
    leaves_per_minute: int | None = None
    """How many clusters per minute may be removed from their placements because of their health."""


REFERENCE = Behaviour()


def improved(
    *, health_toleration_seconds: int | None = None, leaves_per_minute: int | None = None
) -> Behaviour:
    """Return the behavior of Sully, unless that of OCM was asked for."""
    return Behaviour(
        prefer=True,
        hold=True,
        exact_seconds=True,
        quoted_group_size=True,
        built_in_once=True,
        watch_scores=True,
        health_toleration_seconds=health_toleration_seconds,
        leaves_per_minute=leaves_per_minute,
    )
