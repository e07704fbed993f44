"""Pods that could run on a device: Pending ones with a request that it could serve, or why not.

The scheduler's own judges decide about the device and about the node. A request is judged by
itself: whether the pod gets everything else that it requests is what `explain pod` shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from sully.client.transport import Key
from sully.domain.allocation.verdicts import Reason
from sully.domain.devices.pools import DeviceId
from sully.domain.tolerations import taint_text
from sully.explain.text import enumerate_names
from sully.explain.trials.scheduler import (
    DeviceOffer,
    SchedulerCopy,
    resolve_claims,
    unallocated,
)
from sully.views.snapshot.kinds import PODS
from sully.views.snapshot.snapshot import Snapshot

MOST_PODS: Final = 100
"""Pods that are judged for one device."""
_WRONG_KIND: Final = (Reason.CLASS_SELECTOR, Reason.NODE)
"""Why a device is not what a request asks for at all."""
_TEXTS: Final = {
    Reason.REQUEST_SELECTOR: "a selector of the request does not match the device",
    Reason.SELECTOR_ERROR: "a selector fails for the device",
    Reason.CAPACITY: "the device has too little capacity left",
    Reason.COUNTERS: "the counters that the device shares are used up",
    Reason.CONSTRAINT: "a constraint of the claim rejects the device",
}


class CandidatePod(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A Pending pod with a request for such a device."""

    namespace: str
    name: str
    request: str = ""
    device_class: str = ""
    count: int | None = 1
    """How many devices the request is for; None: all that match."""
    fits: bool = False
    """Whether the device could serve the request now, on its node."""
    reason: str = ""
    """Why not."""


def find_candidate_pods(
    snapshot: Snapshot, device: DeviceId, pods: Iterable[Key]
) -> tuple[CandidatePod, ...]:
    """Return which of these Pending pods could get a device; those that could come first."""
    keys = list(pods)[:MOST_PODS]
    if not keys or snapshot.inventory.published(device) is None:
        return ()
    scheduler = SchedulerCopy(snapshot)
    candidates = [one for key in keys for one in _of_pod(scheduler, device, key)]
    return tuple(sorted(candidates, key=lambda one: (not one.fits, one.namespace, one.name)))


def _of_pod(scheduler: SchedulerCopy, device: DeviceId, key: Key) -> Iterator[CandidatePod]:
    pod = scheduler.snapshot.get(PODS, key)
    if pod is None:
        return
    claims, message = resolve_claims(pod, scheduler.snapshot)
    if message:
        yield CandidatePod(namespace=key.namespace, name=key.name, reason=message)
        return
    best: dict[tuple[str, str], CandidatePod] = {}
    for offer in scheduler.offers(pod, unallocated(claims), device):
        if offer.finding.reason in _WRONG_KIND:
            continue
        reason, request = _reason(offer), offer.request
        candidate = CandidatePod(
            namespace=key.namespace,
            name=key.name,
            request=request.full_name,
            device_class=request.requirements.class_name,
            count=request.count,
            fits=not reason,
            reason=reason,
        )
        place = offer.claim, request.full_name
        if place not in best or (candidate.fits and not best[place].fits):
            best[place] = candidate
    yield from best.values()


def _reason(offer: DeviceOffer) -> str:
    """Return why a pod cannot use a device now; empty if it can."""
    finding = offer.finding
    match finding.reason:
        case None:
            rejection = offer.node_rejection
            return f"node {offer.node} does not fit: {rejection}" if rejection else ""
        case Reason.TAINT:
            taints = dict.fromkeys(taint_text(one.taint) for one in finding.taints)
            return f"it does not tolerate {enumerate_names(taints)}"
        case Reason.IN_USE:
            return f"the device is in use by {enumerate_names(finding.holders) or 'another claim'}"
        case refused:
            return _TEXTS[refused]
