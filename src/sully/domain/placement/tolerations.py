"""Whether a placement tolerates the taints of a cluster, and when the toleration expires.

`judge` answers for all taints of a cluster together, and for both kinds of cluster: one that would
be new to the placement and one that it already has, because `NoSelectIfNew` distinguishes them.
`explain` answers for people. What a toleration covers is in `domain/tolerations.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from sully.api.cluster.types import (
    HEALTH_KEYS,
    NO_SELECT,
    NO_SELECT_IF_NEW,
    PREFER_NO_SELECT,
    Taint,
    Toleration,
)
from sully.domain.placement.options import PlacementOptions
from sully.domain.tolerations import TolerationField, mismatched_field, tolerates
from sully.machinery.compat import Compat

_END_OF_TIME = datetime.max.replace(tzinfo=UTC)
_NANO = 10**9
_WORD = 2**64

Failure = TolerationField | Literal["expired"]


def problem(tolerations: Iterable[Toleration]) -> str | None:
    """Return what makes the tolerations of a placement unusable, as OCM reports it."""
    for toleration in tolerations:
        if not toleration.key and toleration.operator != "Exists":
            return "If the key is empty, operator must be Exists."
        if toleration.operator == "Exists" and toleration.value:
            return "If the operator is Exists, the value should be empty."
    return None


def effective(
    tolerations: Sequence[Toleration], options: PlacementOptions
) -> tuple[Toleration, ...]:
    """Return what a placement tolerates, with the default for health taints where one is set.

    No default is added for a health taint that a toleration of the placement mentions.
    """
    seconds = options.health_toleration_seconds
    if seconds is None:
        return tuple(tolerations)
    added = (
        Toleration(key=key, operator="Exists", effect=NO_SELECT, toleration_seconds=seconds)
        for key in HEALTH_KEYS
        if not any(_speaks_of(toleration, key) for toleration in tolerations)
    )
    return (*tolerations, *added)


def _speaks_of(toleration: Toleration, key: str) -> bool:
    return toleration.key in ("", key) and toleration.effect in ("", NO_SELECT)


def expiry(toleration: Toleration, taint: Taint, compat: Compat) -> datetime | None:
    """Return when a toleration of a taint expires; None if never.

    Seconds are ignored with the effect NoSelectIfNew, as documented; OCM counts them.
    A taint without a time counts as just added, until its time is set. For OCM it was added at the
    beginning of time, so any number of seconds is over.
    """
    seconds = toleration.toleration_seconds
    ignored = toleration.effect == NO_SELECT_IF_NEW and compat.ignores_seconds_if_new
    if seconds is None or ignored:
        return None
    if taint.time_added is None:
        waits = compat.tolerates_taints_without_time and seconds > 0
        return None if waits else datetime.min.replace(tzinfo=UTC)
    exact = compat.exact_toleration_seconds
    try:
        return taint.time_added + timedelta(microseconds=_microseconds(seconds, exact=exact))
    except OverflowError:
        return _END_OF_TIME if seconds > 0 else datetime.min.replace(tzinfo=UTC)


def _microseconds(seconds: int, *, exact: bool) -> int:
    if exact:
        return seconds * 1_000_000
    # OCM counts in nanoseconds of 64 bits, which overflow.
    nanos = (seconds * _NANO + _WORD // 2) % _WORD - _WORD // 2
    return nanos // 1000


class TaintVerdict(msgspec.Struct, frozen=True):
    """The effect of the taints of a cluster on a placement.

    `blocks` is the first taint that prevents the selection of a new cluster, `expels` the first
    that removes a selected one. `stays_until` is when a selected cluster must be evaluated again,
    `expires` when anything in this verdict may change.
    """

    blocks: Taint | None = None
    expels: Taint | None = None
    stays_until: datetime | None = None
    disliked: bool = False
    """A PreferNoSelect taint is there that nothing tolerates."""
    temporary: bool = False
    """A taint is tolerated that will remove the cluster."""
    unhealthy: bool = False
    """Only health taints remove the cluster."""
    expires: datetime | None = None


CLEAN = TaintVerdict()
LAST_TIER = 2
"""From this tier on are clusters that will be removed."""


def tier(verdict: TaintVerdict, compat: Compat, *, selected: bool) -> int:
    """Return the tier in which a cluster is ranked; a lower one is better.

    A cluster that will be removed is the last choice, but it stays where it is selected: that is
    what its toleration is for.
    """
    last = verdict.temporary and not selected and compat.prefers_lasting_clusters
    return LAST_TIER * last + (verdict.disliked and compat.honors_prefer_no_select)


def judge(
    taints: Sequence[Taint],
    tolerations: Sequence[Toleration],
    now: datetime,
    options: PlacementOptions,
) -> TaintVerdict:
    """Weigh all taints of a cluster against all tolerations of a placement."""
    if not taints:
        return CLEAN
    blocks: list[Taint] = []
    ends: list[datetime] = []
    stays_until: list[datetime] = []
    disliked = temporary = False
    for taint in taints:
        soft = taint.effect == PREFER_NO_SELECT
        if soft and not options.compat.honors_prefer_no_select:
            continue
        tolerated, end = _tolerated(taint, tolerations, now, options.compat)
        if not tolerated:
            disliked = disliked or soft
            blocks += () if soft else (taint,)
        elif end is not None:
            ends.append(end)
            temporary = temporary or taint.effect == NO_SELECT
            if taint.effect != NO_SELECT_IF_NEW:
                stays_until.append(end)
    expels = [taint for taint in blocks if taint.effect != NO_SELECT_IF_NEW]
    return TaintVerdict(
        blocks=blocks[0] if blocks else None,
        expels=expels[0] if expels else None,
        stays_until=min(stays_until, default=None),
        disliked=disliked,
        temporary=temporary,
        unhealthy=bool(expels) and all(taint.key in HEALTH_KEYS for taint in expels),
        expires=min(ends, default=None),
    )


def _tolerated(
    taint: Taint, tolerations: Sequence[Toleration], now: datetime, compat: Compat
) -> tuple[bool, datetime | None]:
    """Find the first toleration that covers a taint now; one that lasts longer may follow it."""
    for toleration in tolerations:
        if tolerates(toleration, taint):
            end = expiry(toleration, taint, compat)
            if end is None or now < end:
                return True, end
    return False, None


class TaintFinding(msgspec.Struct, frozen=True):
    """One taint for explanations: tolerated by what and until when, or the closest toleration."""

    taint: Taint
    tolerated: bool
    toleration: Toleration | None = None
    """The one that covers the taint, or the nearest to it."""
    until: datetime | None = None
    """When the toleration ends, or when it ended."""
    failure: Failure | None = None
    """Why the nearest toleration does not cover the taint."""


_NEARNESS: dict[Failure, int] = {"key": 0, "effect": 1, "operator": 2, "value": 3, "expired": 4}


def explain(
    taint: Taint, tolerations: Sequence[Toleration], now: datetime, compat: Compat
) -> TaintFinding:
    """Return by what a taint is tolerated, or the closest toleration and what it lacks."""
    nearest = TaintFinding(taint, tolerated=False)
    for toleration in tolerations:
        failure = mismatched_field(toleration, taint)
        end = expiry(toleration, taint, compat) if failure is None else None
        if failure is None and (end is None or now < end):
            return TaintFinding(taint, tolerated=True, toleration=toleration, until=end)
        finding = TaintFinding(taint, False, toleration, end, failure or "expired")
        if _nearer(finding, nearest):
            nearest = finding
    return nearest


def _nearer(one: TaintFinding, other: TaintFinding) -> bool:
    if one.failure is None or other.failure is None:
        return one.failure is not None
    if _NEARNESS[one.failure] != _NEARNESS[other.failure]:
        return _NEARNESS[one.failure] > _NEARNESS[other.failure]
    # Of two that ran out, the one that lasted longer would have to grow least.
    return one.failure == "expired" and (one.until or _END_OF_TIME) > (other.until or _END_OF_TIME)
