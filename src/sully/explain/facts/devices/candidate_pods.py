"""Pods that could run on a device: Pending ones with a request that it could serve, or why not.

The scheduler's own judges decide about the device and about the node. A request is judged by
itself: whether the pod gets everything else that it requests is what `explain pod` shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from sully.client.transport import Key
from sully.domain.allocation.verdicts import RejectionReason
from sully.domain.devices.pools import DeviceId
from sully.domain.scheduling.causes import UnsupportedField
from sully.domain.scheduling.filters import Rejection
from sully.domain.scheduling.messages import filter_reason, pre_filter_reason
from sully.domain.scheduling.volumes.topology import VolumeProblem
from sully.domain.tolerations import taint_text
from sully.explain.causes import Note, note
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
WRONG_KIND: Final = (RejectionReason.CLASS_SELECTOR, RejectionReason.NODE)
"""Why a device is not what a request asks for at all."""


class CandidatePod(msgspec.Struct, frozen=True, kw_only=True):
    """A Pending pod with a request for such a device."""

    namespace: str
    name: str
    request: str = ""
    device_class: str = ""
    count: int | None = 1
    """How many devices the request is for; None: all that match."""
    why_not: Note | None = None
    """Why the device could not serve the request now; None: it could, on its node."""

    @property
    def fits(self) -> bool:
        """Report whether the device could serve the request now."""
        return self.why_not is None


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
        why_not = note("Candidate/Claims", message=message)
        yield CandidatePod(namespace=key.namespace, name=key.name, why_not=why_not)
        return
    best: dict[tuple[str, str], CandidatePod] = {}
    for offer in scheduler.offers(pod, unallocated(claims), device):
        if offer.finding.reason in WRONG_KIND:
            continue
        request = offer.request
        candidate = CandidatePod(
            namespace=key.namespace,
            name=key.name,
            request=request.full_name,
            device_class=request.requirements.class_name,
            count=request.count,
            why_not=_why_not(offer),
        )
        place = offer.claim, request.full_name
        if place not in best or (candidate.fits and not best[place].fits):
            best[place] = candidate
    yield from best.values()


def _why_not(offer: DeviceOffer) -> Note | None:
    """Return why a pod cannot use a device now; None if it can."""
    finding = offer.finding
    if finding.reason is not None:
        taints = tuple(dict.fromkeys(taint_text(one.taint) for one in finding.taints))
        return note(f"Candidate/{finding.reason.name}", taints=taints, holders=finding.holders)
    match offer.rejection:
        case None:
            return None
        case UnsupportedField(field):
            return note("Candidate/Unsupported", node=offer.node, field=field)
        case VolumeProblem() as problem:
            messages: tuple[str, ...] = (pre_filter_reason(problem),)
        case Rejection(reasons):
            messages = tuple(map(filter_reason, reasons))
    return note("Candidate/Node", node=offer.node, messages=messages)
