"""What can be told to somebody who may not see the object itself: what it does to his own things.

A workload owner asks about the rule that an explanation of his pod names. He may not read rules,
but his pods, claims and records are his.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from sully.api.cluster.types import Placement
from sully.api.sully.types import EvictionRecord
from sully.domain.explaining.evicted import record_tables
from sully.domain.explaining.holdings import Holding
from sully.domain.explaining.story import Explanation, tables
from sully.domain.explaining.wording import ended, listed, moment, number, since
from sully.domain.placement.conditions import SATISFIED
from sully.machinery.meta import find_condition

STATE: Final = "NotVisible"
CAUSE: Final = "NotAllowed"
_ASK: Final = "Ask an admin about the rest, or for the right to read {what}."


def partly_rule(
    name: str,
    namespace: str,
    *,
    kept_off: Sequence[str],
    records: Sequence[EvictionRecord],
    now: datetime,
) -> Explanation:
    """Tell what a rule that somebody may not see does in his namespace."""
    parts = []
    if kept_off:
        parts.append(f"keeps {number(len(kept_off), 'pod')} off devices: {listed(kept_off)}")
    if records:
        parts.append(f"made {number(len(records), 'pod')} leave, {_last(records, now)}")
    return Explanation(
        kind="DeviceTaintRule",
        name=name,
        state=STATE,
        cause=CAUSE,
        summary=(_lead(f"rule {name}", f"in namespace {namespace} it", parts),),
        remedies=(_ASK.format(what="devicetaintrules"),),
        details=tables(*record_tables(records)),
    )


def partly_device(
    name: str,
    namespace: str,
    *,
    holdings: Sequence[Holding],
    records: Sequence[EvictionRecord],
    now: datetime,
) -> Explanation:
    """Tell what somebody's namespace has of a device that he may not see."""
    parts = []
    for each in holdings:
        users = f" for pod {listed(each.pods, 2)}" if each.pods else ""
        parts.append(f"is held by claim {each.claim}{users}")
    if records:
        parts.append(f"was left by {number(len(records), 'pod')}, {_last(records, now)}")
    return Explanation(
        kind="Device",
        name=name,
        state=STATE,
        cause=CAUSE,
        summary=(_lead(f"device {name}", f"in namespace {namespace} it", parts),),
        because=tuple(f"ResourceClaim/{each.claim}" for each in holdings),
        remedies=(_ASK.format(what="resourceslices and devicetaintrules"),),
        details=tables(*record_tables(records)),
    )


def partly_cluster(name: str, namespace: str, placements: Sequence[str]) -> Explanation:
    """Tell which placements of a namespace have a cluster that somebody may not see."""
    has = "has it" if len(placements) == 1 else "have it"
    parts = [f"{number(len(placements), 'placement')} {has}: {listed(placements)}"]
    return Explanation(
        kind="ManagedCluster",
        name=name,
        state=STATE,
        cause=CAUSE,
        summary=(
            _lead(f"cluster {name}", f"in namespace {namespace}", parts if placements else ()),
        ),
        remedies=(_ASK.format(what="managedclusters"),),
    )


def partly_placement(placement: Placement, decided: Sequence[str], now: datetime) -> Explanation:
    """Tell of a placement what its status and decisions say, where clusters may not be seen."""
    metadata, status = placement.metadata, placement.status
    told = find_condition(status.conditions, SATISFIED)
    at = since(told.last_transition_time, now) if told is not None else ""
    names = f" ({listed(decided)})" if decided else ""
    said = f": {ended(told.message)}" if told is not None and told.message else "."
    return Explanation(
        kind="Placement",
        namespace=metadata.namespace,
        name=metadata.name,
        state=STATE,
        cause=CAUSE if told is None else told.reason or CAUSE,
        summary=(
            f"Placement {metadata.namespace}/{metadata.name} has"
            f" {number(len(decided), 'cluster')}{names}{at}{said}",
            "Which clusters there are, and what speaks against them, you may not see.",
        ),
        remedies=(_ASK.format(what="managedclusters, managedclustersets and their bindings"),),
    )


def _lead(what: str, here: str, parts: Iterable[str]) -> str:
    known = list(parts)
    if not known:
        return f"You may not see {what}, and nothing that you may see is about it."
    return f"You may not see {what}; {here} {' and '.join(known)}."


def _last(records: Sequence[EvictionRecord], now: datetime) -> str:
    last = max(records, key=lambda each: each.spec.evicted_time).spec
    return f"the last, {last.pod.namespace}/{last.pod.name}, at {moment(last.evicted_time, now)}"
