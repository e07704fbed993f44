"""Latent effects of a change: pods that run on, but whose successors would be unschedulable.

A NoSchedule taint, or a patch of attributes, evicts no pod. It shows when a pod is recreated or an
owner is scaled up, maybe days later. After a simulation has run, the next pod of the owners on
devices that change is tried, with the change and without it. What owners there are is known from
their pods, so the effort depends on the pods on these devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, Literal

import msgspec

from sully.api.resource.types import DeviceRequest
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.claims.lifecycle import owning_pod
from sully.domain.claims.pods import claim_references
from sully.domain.devices.taints import blocks
from sully.domain.planning.replacements import is_replaced, replacement_pod
from sully.domain.planning.report import LatentEffects, UnmatchedRequest, UnschedulableOwner
from sully.domain.planning.selector_matches import (
    PublishedDevices,
    alternatives,
    distinct_contents,
    requested_classes,
    unmatched_requests,
)
from sully.domain.scheduling.objects import Pod
from sully.machinery.meta import ObjectMeta
from sully.planning.dryrun.changes import Put, caches_of, set_object
from sully.planning.simulation.simulator import Simulation
from sully.scheduler.claim_resolution import ClaimsNotReady, resolve
from sully.scheduler.schedule_algorithm import ScheduleResult, Unschedulable
from sully.views.kinds import CLASSES
from sully.views.snapshot.kinds import TEMPLATES

MAX_OWNERS: Final = 100
"""Owners whose next pod is tried."""
MAX_REQUESTS: Final = 50
"""Requests that match no device and are listed."""

NextPod = Literal["Replacement", "Additional"]


class _Candidate(msgspec.Struct):
    """An owner, one of its pods, and how many of its pods have such devices."""

    pod: Pod
    next_pod: NextPod
    pods: int = 0
    message: str = ""


def latent_effects(simulation: Simulation, reported: Iterable[tuple[str, str]]) -> LatentEffects:
    """Return what happens to later pods; `reported` owners have pods that are not rescheduled.

    The copy is changed: nothing else may be read of it afterwards.
    """
    candidates = _candidates(simulation, frozenset(reported))
    tried = candidates[:MAX_OWNERS]
    requests = list(_unmatched(simulation))
    owners = tuple(
        UnschedulableOwner(
            namespace=candidate.pod.metadata.namespace,
            owner=candidate.pod.workload_text,
            pods=candidate.pods,
            next_pod=candidate.next_pod,
            message=candidate.message,
        )
        for candidate in _unschedulable(simulation, tried)
    )
    return LatentEffects(
        owners=owners,
        owners_not_evaluated=len(candidates) - len(tried),
        requests=tuple(requests[:MAX_REQUESTS]),
        total_requests=len(requests),
    )


# -- owners ---------------------------------------------------------------------------------------


def _candidates(simulation: Simulation, reported: frozenset[tuple[str, str]]) -> list[_Candidate]:
    """Return the owners to try, by namespace and owner.

    They have pods on devices that are worse than before, or with a claim for a class that changes
    or of which no device is free any more.
    """
    owners: dict[tuple[str, str], _Candidate] = {}
    seen: set[Key] = set()
    sources: tuple[tuple[NextPod, Iterator[Key]], ...] = (
        ("Replacement", _pods_on_worse_devices(simulation)),
        ("Replacement", _pods_requesting(simulation, _changed_classes(simulation))),
        ("Additional", _pods_requesting(simulation, _exhausted_classes(simulation))),
    )
    for next_pod, keys in sources:
        for key in sorted(set(keys) - seen):
            seen.add(key)
            pod = simulation.cluster.pods.get(key)
            if pod is None or not pod.is_active or not pod.spec.node_name or not is_replaced(pod):
                continue
            owner = pod.metadata.namespace, pod.owner_text
            if owner in reported:
                continue
            candidate = owners.setdefault(owner, _Candidate(pod, next_pod))
            candidate.pods += candidate.next_pod == next_pod
    return [owners[owner] for owner in sorted(owners)]


def _pods_on_worse_devices(simulation: Simulation) -> Iterator[Key]:
    """Yield the pods on devices with new taints, or whose attributes changed."""
    for pool in sorted(simulation.cluster.usage.pools()):
        old, new = simulation.before.get(pool, {}), simulation.after.get(pool, {})
        names = []
        for name, was in old.items():
            is_ = new.get(name)
            if was is is_:
                continue
            taints = [taint for taint in is_.taints if taint not in was.taints] if is_ else []
            if (
                is_ is None
                or is_.content is not was.content
                or any(blocks(x.taint) for x in taints)
            ):
                names.append(name)
        if names:
            yield from simulation.cluster.usage.pods_on(pool, names)


def _changed_classes(simulation: Simulation) -> set[str]:
    changes = (applied.change for applied in simulation.applied)
    return {change.key.name for change in changes if change.kind.plural == CLASSES.plural}


def _exhausted_classes(simulation: Simulation) -> set[str]:
    """Return the classes that had free devices, and have none any more.

    Where pods are evicted, it is expected that they use the last devices.
    """
    after = simulation.counts_after or {} if not simulation.evicted else {}
    return {
        name
        for name, counts in simulation.counts_before.items()
        if counts.free and name in after and not after[name].free
    }


def _pods_requesting(simulation: Simulation, classes: set[str]) -> Iterator[Key]:
    """Yield the pods with devices that they requested by one of these classes."""
    cluster = simulation.cluster
    for claim in cluster.claims.values() if classes else ():
        if claim.status.allocation is not None and classes & requested_classes(claim.spec):
            for pod in cluster.usage.pods_with(key_of(claim)):
                yield key_of(pod)


def _unschedulable(simulation: Simulation, candidates: list[_Candidate]) -> list[_Candidate]:
    """Return the candidates whose next pod is unschedulable with the change, and only with it."""
    if not candidates:
        return []
    _restore_expired(simulation)
    suspects, messages = [], dict[bytes, str]()
    for candidate in candidates:
        result = _try(simulation, candidate)
        if not isinstance(result, Unschedulable):
            continue
        # Of equal pods only the first is evaluated on all nodes.
        message = result.error.short_message
        if result.equivalence:
            message = messages.setdefault(result.equivalence, message) or message
        candidate.message = message
        suspects.append(candidate)
    if not suspects:
        return []
    for applied in reversed(simulation.applied):
        change = applied.change
        set_object(simulation.cluster, change.kind, change.key, applied.existing)
    return [x for x in suspects if isinstance(_try(simulation, x), ScheduleResult)]


def _restore_expired(simulation: Simulation) -> None:
    """Apply changes again that have expired in the simulation."""
    for applied in simulation.applied:
        change, cache = applied.change, caches_of(simulation.cluster)[applied.change.kind.plural]
        if isinstance(change, Put) and cache.get(change.key) is None:
            set_object(simulation.cluster, change.kind, change.key, change.obj)


def _try(simulation: Simulation, candidate: _Candidate) -> ScheduleResult | Unschedulable | None:
    """Return the decision about the next pod of an owner; None if it is not known."""
    cluster, pod = simulation.cluster, candidate.pod
    now = cluster.clock.now()
    with _released(simulation, pod, release=candidate.next_pod == "Replacement"):
        new = replacement_pod(pod, now, spec_of=partial(cluster.claim_spec, pod), number=2)
        own = {key_of(claim): claim for claim in new.claims}
        claims = resolve(new.pod, lambda key: own.get(key) or cluster.claims.get(key))
        if isinstance(claims, ClaimsNotReady):
            return None
        return simulation.scheduler.core.try_schedule(new.pod, claims, now)


@contextmanager
def _released(simulation: Simulation, pod: Pod, *, release: bool) -> Iterator[None]:
    """Let a pod not exist meanwhile, so that its devices are free."""
    if not release:
        yield
        return
    cluster = simulation.cluster
    keys = [Key(pod.metadata.namespace, x.name) for x in claim_references(pod) if x.name]
    claims = [claim for key in keys if (claim := cluster.claims.get(key)) is not None]
    cluster.remove_pod(pod)
    try:
        yield
    finally:
        for claim in claims:
            cluster.put(cluster.claims, claim)
        cluster.put(cluster.pods, pod)


# -- templates ------------------------------------------------------------------------------------


def _unmatched(simulation: Simulation) -> Iterator[UnmatchedRequest]:
    """Yield requests that match no device because of the change."""
    if not _changes_content(simulation):
        return
    snapshot, cluster = simulation.cluster.snapshot, simulation.cluster
    before = PublishedDevices(
        {x.metadata.name: x for x in snapshot.of(CLASSES).values()},
        distinct_contents(x.content for pool in simulation.before.values() for x in pool.values()),
    )
    after = PublishedDevices(
        {x.metadata.name: x for x in cluster.classes.values()},
        distinct_contents(x.content for pool in simulation.after.values() for x in pool.values()),
    )
    for template in sorted(snapshot.of(TEMPLATES).values(), key=key_of):
        for request in unmatched_requests(template.spec.spec, before, after):
            yield _unmatched_request("ResourceClaimTemplate", template.metadata, request)
    for claim in sorted(cluster.claims.values(), key=key_of):
        if claim.status.allocation is None and owning_pod(claim) is None:
            for request in unmatched_requests(claim.spec, before, after):
                yield _unmatched_request("ResourceClaim", claim.metadata, request)


def _unmatched_request(
    kind: Literal["ResourceClaimTemplate", "ResourceClaim"],
    metadata: ObjectMeta,
    request: DeviceRequest,
) -> UnmatchedRequest:
    return UnmatchedRequest(
        kind=kind,
        namespace=metadata.namespace,
        name=metadata.name,
        request=request.name,
        device_classes=tuple(x.device_class_name for x in alternatives(request)),
    )


def _changes_content(simulation: Simulation) -> bool:
    """Report whether attributes, devices or classes change, not only taints."""
    if _changed_classes(simulation):
        return True
    return any(change.changes for change in simulation.device_changes)
