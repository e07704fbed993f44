"""Objects that the caller is not allowed to see: what they do in the caller's own namespace.

A user of one namespace asks for the rule that an explanation of a pod names. That user may not be
allowed to read rules, but the pods, claims and records of the namespace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sully.api.cluster.types import PLACEMENT_LABEL
from sully.api.sully.types import EvictionRecord
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.placement.results.conditions import SATISFIED
from sully.explain.causes import Finding, LimitedFacts, Note, note
from sully.explain.explanation import tables
from sully.explain.facts.devices.allocations import record_table
from sully.explain.facts.devices.devices import evictions_from, match_name
from sully.explain.facts.devices.rules import blocked_pods
from sully.explain.reader import Reader
from sully.machinery.meta import find_condition
from sully.views.devices.name_index import Names
from sully.views.fleet_kinds import DECISIONS, PLACEMENTS
from sully.views.kinds import RULES


def _forbidden_finding(
    kind: str, key: Key, namespace: str, resources: str, notes: list[Note], **more: Any
) -> Finding:
    """Return what is known of an object that the caller is not allowed to see."""
    noun = {"Device": "device", RULES.kind: "rule"}.get(kind, "cluster")
    facts = LimitedFacts(
        object=f"{noun} {key.name}", resources=resources, namespace=namespace, notes=tuple(notes)
    )
    return Finding(kind=kind, name=key.name, cause="NotAllowed", facts=facts, **more)


def _eviction_notes(name: str, records: Sequence[EvictionRecord]) -> list[Note]:
    if not records:
        return []
    spec = records[-1].spec
    last = f"{spec.pod.namespace}/{spec.pod.name}"
    return [note(name, pods=len(records), last=last, at=spec.evicted_time)]


def limited_rule(reader: Reader, key: Key, namespace: str) -> Finding:
    """Find what a rule does in a namespace."""
    origin = (RULES.kind, key.name)
    records = reader.evictions(
        lambda record: any((cause.kind, cause.name) == origin for cause in record.spec.causes)
    )
    pods = list(blocked_pods(reader, key.name))
    notes = [
        *([note("BlocksPods", pods=pods)] if pods else ()),
        *_eviction_notes("HasEvicted", records),
    ]
    details = tables(record_table(records))
    return _forbidden_finding(
        RULES.kind, key, namespace, "devicetaintrules", notes, details=details
    )


def limited_device(reader: Reader, key: Key, namespace: str) -> Finding:
    """Find which claims of a namespace have a device, and which pods were evicted from it."""
    allocations = list(reader.snapshot.usage.allocated(Names()))
    device = match_name((allocation.device for allocation in allocations), key.name)
    _, records = evictions_from(reader, str(device) if device is not None else key.name)
    allocated = [reader.allocation(x.claim, x.result) for x in allocations if x.device == device]
    notes = [note("HeldByClaim", claim=x.claim, pods=x.pods) for x in allocated]
    notes += _eviction_notes("EvictedFrom", records)
    because = tuple(f"ResourceClaim/{x.claim}" for x in allocated)
    more = {"because": because, "details": tables(record_table(records))}
    resources = "resourceslices and devicetaintrules"
    return _forbidden_finding("Device", key, namespace, resources, notes, **more)


def limited_cluster(reader: Reader, key: Key, namespace: str) -> Finding:
    """Find which placements of a namespace select a cluster."""
    keys = sorted(map(key_of, reader.snapshot.of(PLACEMENTS).values()))
    placements = [
        str(placement) for placement in keys if key.name in _selected_clusters(reader, placement)
    ]
    notes = [note("HeldByPlacements", placements=placements)] if placements else []
    return _forbidden_finding("ManagedCluster", key, namespace, "managedclusters", notes)


def limited_placement(reader: Reader, key: Key, _: str) -> Finding | None:
    """Find what the status and the decisions of a placement show."""
    placement = reader.snapshot.get(PLACEMENTS, key)
    if placement is None:
        return None
    condition = find_condition(placement.status.conditions, SATISFIED)
    return Finding(
        kind="Placement",
        namespace=key.namespace,
        name=key.name,
        cause="NotAllowed",
        reason=condition.reason if condition is not None else "",
        facts=LimitedFacts(
            resources="managedclusters, managedclustersets and their bindings",
            clusters=_selected_clusters(reader, key),
            at=condition.last_transition_time if condition is not None else None,
            message=condition.message if condition is not None else "",
        ),
    )


def _selected_clusters(reader: Reader, placement: Key) -> tuple[str, ...]:
    names = [
        decision.cluster_name
        for decisions in reader.snapshot.of(DECISIONS).values()
        if decisions.metadata.namespace == placement.namespace
        and decisions.metadata.labels.get(PLACEMENT_LABEL) == placement.name
        for decision in decisions.status.decisions
    ]
    return tuple(sorted(names))
