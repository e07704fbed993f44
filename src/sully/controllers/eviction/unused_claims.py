"""Deallocates claims that no pod uses while their devices evict every pod that would.

An allocated claim that is not reserved keeps its devices for the next pod, which would be
evicted immediately, or stay Pending. Without the allocation that pod gets other devices. Kubernetes
keeps the allocation. When is decided as for pods, in `domain/eviction/judge.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sully.api.resource.types import ResourceClaim
from sully.client.events import reference
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.framework.controller import DONE, ControllerEnv, Result, Watch
from sully.domain.claims.lifecycle import is_terminating
from sully.domain.eviction.judge import Evict, EvictingTaint, Wait
from sully.domain.eviction.pod_events import EVENT_REASON
from sully.machinery.errors import Conflict, NotFound
from sully.views.devices.changes import InventoryChange
from sully.views.devices.exposures import Exposures
from sully.views.kinds import CLAIMS


class UnusedClaimController:
    """Deallocates unused claims from devices with evicting taints."""

    name = "device-taint-deallocation"

    def __init__(
        self,
        claims: Informer[ResourceClaim],
        exposures: Exposures,
        env: ControllerEnv,
    ) -> None:
        self._claims = claims
        self._exposures = exposures
        self._transport, self._recorder, self._clock = env

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for devices and their taints, and for claims that become unused."""
        yield Watch(self._exposures.inventory, self._affected)
        yield Watch(self._claims.newest, lambda claim: self._unused((key_of(claim),)))

    def _affected(self, change: InventoryChange) -> Iterable[Key]:
        return self._unused(self._exposures.affected_claims(change))

    def _unused(self, keys: Iterable[Key]) -> Iterator[Key]:
        """Yield the unused claims: most are in use, and a claim that is freed changes."""
        for key in keys:
            claim = self._claims.get(key)
            if claim is not None and _is_unused(claim):
                yield key

    async def reconcile(self, key: Key) -> Result:
        """Deallocate a claim that is due, or requeue it for when it is."""
        claim = self._claims.get(key)
        if claim is None or not _is_unused(claim):
            return DONE
        now = self._clock.now()
        match self._exposures.judge_claim(claim, now):
            case Wait(until=until):
                return Result(requeue_after=until - now)
            case Evict() as verdict:
                await self._deallocate(claim, verdict.due(now)[0])
                return DONE
            case _:
                return DONE

    async def _deallocate(self, claim: ResourceClaim, because: EvictingTaint) -> None:
        """Deallocate a claim, unless it changed: the scheduler may reserve it now."""
        metadata = {
            "uid": claim.metadata.uid,
            "resourceVersion": claim.metadata.resource_version,
        }
        # The server also removes what drivers reported about the devices.
        patch = {"metadata": metadata, "status": {"allocation": None}}
        try:
            await self._transport.patch(CLAIMS, key_of(claim), patch, subresource="status")
        except (Conflict, NotFound):
            # The change wakes this controller again.
            return
        taint = because.taint.taint
        text = f"Deallocated: device {because.device} has taint {taint.key}:{taint.effect}"
        self._recorder.event(reference(CLAIMS, claim), "Normal", EVENT_REASON, text)


def _is_unused(claim: ResourceClaim) -> bool:
    """Report whether a claim is allocated and not reserved; deleted ones are released by others."""
    status = claim.status
    return status.allocation is not None and not status.reserved_for and not is_terminating(claim)
