"""Claims: why they have no devices, keep them, or cannot be deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from sully.api.resource.types import ResourceClaim
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.claims.lifecycle import is_pod, is_terminating, owning_pod
from sully.domain.devices.taints import SourcedTaint
from sully.explain.causes import ClaimFacts, Finding, note
from sully.explain.explanation import Table, tables
from sully.explain.facts.devices.allocations import AllocatedDeviceFacts, device_table
from sully.explain.facts.pods.pods import find_pod
from sully.explain.reader import Reader
from sully.explain.shortages import exact_requests
from sully.explain.sources import origins_of
from sully.explain.text import toleration_text
from sully.views.kinds import CLAIMS
from sully.views.snapshot.kinds import PODS

_MAX_TAINTS = 3


def find_claim(reader: Reader, key: Key) -> Finding | None:
    claim = reader.snapshot.get(CLAIMS, key)
    if claim is None:
        return None
    allocated = reader.allocated(claim)
    if is_terminating(claim):
        finding = _deleting(claim)
    elif claim.status.allocation is None:
        finding = _pending(reader, claim)
    else:
        finding = _allocated(reader, claim, allocated)
    details = tables(device_table(allocated, reader), _requests(claim))
    return replace(finding, details=details)


def _finding(claim: ResourceClaim, cause: str, facts: ClaimFacts, **more: Any) -> Finding:
    metadata = claim.metadata
    return Finding(
        kind="ResourceClaim",
        namespace=metadata.namespace,
        name=metadata.name,
        cause=cause,
        facts=facts,
        since=metadata.deletion_timestamp,
        **more,
    )


def _deleting(claim: ResourceClaim) -> Finding:
    pods = tuple(consumer.name for consumer in claim.status.reserved_for)
    facts = ClaimFacts(pods=pods, finalizers=tuple(claim.metadata.finalizers))
    cause = "StillInUse" if pods else "FinalizersPending"
    return _finding(claim, cause, facts, because=tuple(f"Pod/{pod}" for pod in pods))


def _pending(reader: Reader, claim: ResourceClaim) -> Finding:
    using = reader.snapshot.usage.pods_with(key_of(claim))
    pods = [pod for pod in using if pod.is_active]
    first = next((pod for pod in pods if not pod.spec.node_name), None)
    nested = find_pod(reader, key_of(first)) if first is not None else None
    if first is not None and nested is not None:
        pod = str(key_of(first))
        because = (f"Pod/{pod}", *nested.because)
        facts = ClaimFacts(pods=(pod,))
        more = {"reason": nested.code, "because": because, "nested": nested}
        return _finding(claim, "PodPending", facts, **more)
    if pods:
        names = tuple(str(key_of(pod)) for pod in pods)
        because = tuple(f"Pod/{name}" for name in names)
        return _finding(claim, "SchedulerBypassed", ClaimFacts(pods=names), because=because)
    owner = owning_pod(claim)
    return _finding(claim, "NoConsumer", ClaimFacts(owner=owner.name if owner is not None else ""))


def _allocated(
    reader: Reader, claim: ResourceClaim, allocated: Sequence[AllocatedDeviceFacts]
) -> Finding:
    """Return the worst that is known of the devices."""
    devices = tuple(str(x.device) for x in allocated)
    users = tuple(consumer.name for consumer in claim.status.reserved_for)
    sources, due = reader.sources, [due for x in allocated for due in x.evicting(reader)]

    def finding(cause: str, because: tuple[str, ...] = (), **facts: Any) -> Finding:
        state = "Reserved" if users else "Allocated"
        claim_facts = ClaimFacts(devices=devices, users=users, **facts)
        return _finding(claim, cause, claim_facts, state=state, because=because)

    if due:
        first, origins = min(at for at, _ in due), origins_of(taint for _, taint in due)
        evicting = [(x, taint) for x in allocated for _, taint in x.evicting(reader)]
        taints = [
            note("DeviceHasTaint", device=str(x.device), taint=sources.sourced(taint))
            for x, taint in evicting[:_MAX_TAINTS]
        ]
        at = first if first > reader.now else None
        facts = {"at": at, "sources": sources.of_all(origins), "taints": tuple(taints)}
        return finding("PodsToBeEvicted", origins, **facts)
    if gone := tuple(_gone(reader, claim)):
        return finding("ConsumersGone", tuple(f"Pod/{pod}" for pod in gone), gone=gone)
    if reader.hides_taints:
        return finding("TaintsNotVisible")
    if unpublished := tuple(str(x.device) for x in allocated if not x.published):
        return finding("DeviceUnpublished", unpublished=unpublished)
    tainted = [(x, taint) for x in allocated for taint in x.taints]
    if not tainted:
        return finding("InUse" if users else "Unused")
    taints = [
        note(
            "ClaimDeviceTaint",
            device=str(x.device),
            taint=sources.sourced(taint),
            paused=_is_paused(reader, x, taint),
        )
        for x, taint in tainted
    ]
    paused = any(taint.values["paused"] for taint in taints)
    cause = "EvictionPaused" if paused else "TaintsDoNotEvict"
    origins = origins_of(taint for _, taint in tainted)
    return finding(cause, origins, taints=tuple(taints[:_MAX_TAINTS]))


def _is_paused(reader: Reader, allocated: AllocatedDeviceFacts, taint: SourcedTaint) -> bool:
    """Report whether a taint would evict pods if its rule were not paused."""
    paused = reader.sources.of(str(taint.origin)).paused is not None
    return paused and allocated.evicted_at(taint, reader) is not None and bool(allocated.pods)


def _gone(reader: Reader, claim: ResourceClaim) -> Iterator[str]:
    """Yield the pods that a claim is reserved for and that are gone or finished."""
    pods, namespace = reader.snapshot.of(PODS), claim.metadata.namespace
    for consumer in filter(is_pod, claim.status.reserved_for):
        pod = pods.get(Key(namespace, consumer.name))
        if pod is None or pod.is_terminal or pod.metadata.uid != consumer.uid:
            yield consumer.name


def _requests(claim: ResourceClaim) -> Table:
    rows = []
    for name, request in exact_requests(claim):
        count = "all" if request.allocation_mode == "All" else str(request.count or 1)
        tolerations = ", ".join(map(toleration_text, request.tolerations))
        rows.append((name, request.device_class_name, count, tolerations))
    return Table("Requests", ("request", "class", "count", "tolerations"), tuple(rows))
