"""Since when a cluster has a taint: `timeAdded`, from which tolerationSeconds count.

OCM stamps on create and then refuses every update that does not repeat the stored time.
That makes manifests impossible to apply again, so by default the server keeps the time itself and
only warns that what was sent is not used. Both ways are here; clusters.py selects one.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sully.api.cluster.taints.policy_taints import TaintId
from sully.api.cluster.types import HEALTH_KEYS, NO_SELECT, UNAVAILABLE, UNREACHABLE
from sully.machinery.formats.timestamps import TimeError, format_time, parse_time

Obj = dict[str, Any]
Taints = Sequence[Mapping[str, Any]]

_DUE = {"False": UNAVAILABLE, "Unknown": UNREACHABLE, "": UNREACHABLE}
"""The taint that the hub sets, by the status of availability; a new cluster has none yet."""


def identity(taint: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what makes a taint the same one as before."""
    return taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")


def shared_clock(taint: TaintId) -> TaintId:
    """Return a taint whose time counts for another: health taints of the hub replace each other."""
    health = taint[0] in HEALTH_KEYS and taint[1:] == ("", NO_SELECT)
    return (UNREACHABLE, "", NO_SELECT) if health else taint


def stamped(taints: Taints, before: Taints, now: datetime, *, one_clock: bool) -> list[Obj]:
    """Return taints with their times: the stored one for existing taints, now for new ones.

    With one clock, tolerationSeconds do not restart when an unavailable cluster becomes
    unreachable, or the reverse.
    """
    timed = [taint for taint in before if taint.get("timeAdded")]
    since = {identity(taint): taint["timeAdded"] for taint in timed}
    if one_clock:
        since = {shared_clock(taint): added for taint, added in since.items()} | since
    result = []
    for taint in taints:
        own = identity(taint)
        added = since.get(own) or since.get(shared_clock(own) if one_clock else own)
        result.append({**taint, "timeAdded": added or format_time(now)})
    return result


def still_due(taints: Taints, before: Taints, available: str, ids: frozenset[TaintId]) -> list[Obj]:
    """Return taints of the hub that a write omits although the cluster has not changed.

    Taints are one value: applying a manifest replaces them all. The hub would put its own
    back immediately, but as new, so toleration periods would restart with every write. `ids` are
    those that policies set; a policy that removes one removes its id too.
    """
    due = {(_DUE.get(available), "", NO_SELECT), *ids}
    sent = {identity(taint) for taint in taints}
    return [dict(taint) for taint in before if identity(taint) in due - sent]


def unused_times(taints: Taints, before: Taints) -> Iterator[str]:
    """Yield a warning for each time that was sent and will not be kept."""
    since = {identity(taint): taint.get("timeAdded") for taint in before}
    for index, taint in enumerate(taints):
        sent = taint.get("timeAdded")
        recorded = since.get(identity(taint))
        if sent and not _same(sent, recorded):
            stays = f"the stored {recorded} stays" if recorded else "the time of this write counts"
            yield f"spec.taints[{index}].timeAdded: {sent} is not used: {stays}"


def stamped_as_ocm(
    taints: Taints, before: Taints | None, now: datetime
) -> tuple[list[Obj], list[str]]:
    """Return stamped taints as OCM does it, and the keys it rejects.

    Old taints are looked up by key alone, and the first one of a key counts: that is why two
    taints of one key make every later update fail there. `before` is None on create.
    """
    if before is None:
        return [{**taint, "timeAdded": format_time(now)} for taint in taints], []
    first: dict[str, Mapping[str, Any]] = {}
    for taint in before:
        first.setdefault(taint.get("key", ""), taint)
    result: list[Obj] = []
    refused: list[str] = []
    for taint in taints:
        old = first.get(taint.get("key", ""))
        sent = taint.get("timeAdded")
        if old is not None and identity(old) == identity(taint):
            allowed = _same(sent, old.get("timeAdded"))
            result.append({**taint, "timeAdded": old.get("timeAdded")})
        else:
            allowed = not sent
            result.append({**taint, "timeAdded": format_time(now)})
        if not allowed:
            refused.append(taint.get("key", ""))
    return result, refused


def _same(one: str | None, other: str | None) -> bool:
    """Compare two times as moments, to the second."""
    if not one or not other:
        return not one and not other
    try:
        return format_time(parse_time(one)) == format_time(parse_time(other))
    except TimeError:
        return False
