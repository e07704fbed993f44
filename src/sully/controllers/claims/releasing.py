"""Gives claims up: drops the reservations of pods that are done, and what nobody uses any more.

Reads claims and pods; writes the status of claims and their finalizer, and deletes claims that were
made for pods which need them no longer. Every write holds only for the version of the claim that
was looked at: the scheduler reserves at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from sully.api.resource.types import ResourceClaim, ResourceClaimConsumerReference
from sully.client.objects import key_of
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Transport
from sully.controllers.claims.departed import Departed
from sully.controllers.claims.lookups import WRITTEN, Lookups, may_run, reservations
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.workloads import PODS
from sully.domain.claims.lifecycle import (
    FINALIZER,
    Consumers,
    Release,
    is_pod,
    is_protected,
    is_terminating,
    owning_pod,
    release,
)
from sully.domain.scheduling.objects import Pod
from sully.machinery.errors import NotFound
from sully.views.kinds import CLAIMS


class ReleaseController:
    """Takes claims back, claim by claim."""

    name = "resource-claim-release"

    def __init__(self, *, lookups: Lookups, transport: Transport) -> None:
        self._lookups = lookups
        self._transport = transport
        self._departed = Departed(lookups.pods)
        self._given_back: set[str] = set()
        """Claims, by uid, that we deallocated and whose finalizer we have yet to remove.

        Nobody else may: a finalizer without an allocation is also how the scheduler begins.
        """
        lookups.claims.on_change(self._claim_changed)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for claims, and for the pods they are reserved for or were made for."""
        yield Watch(self._lookups.claims.newest, self._if_left)
        yield Watch(self._lookups.pods.newest, self._claims_left_by)

    async def reconcile(self, key: Key) -> Result:
        """Take back what a claim's consumers have left."""
        claim = self._lookups.claims.get(key)
        if claim is None:
            return DONE
        kept = await self._kept(claim)
        change = release(claim, kept)
        if change is not None:
            claim = await self._release(claim, change)
        if self._is_free(claim):
            claim = await self._unprotect(claim)
            if is_terminating(claim):
                return DONE
        if not kept and not is_terminating(claim) and self._is_useless(claim):
            await self._delete(claim)
        return DONE

    # -- who uses it ------------------------------------------------------------------------------

    async def _kept(self, claim: ResourceClaim) -> Consumers:
        """Return the consumers of a claim that still need it."""
        consumers = claim.status.reserved_for
        namespace = claim.metadata.namespace
        keeps = await asyncio.gather(*(self._keeps(namespace, each) for each in consumers))
        return tuple(each for each, keep in zip(consumers, keeps, strict=True) if keep)

    async def _keeps(self, namespace: str, consumer: ResourceClaimConsumerReference) -> bool:
        if not is_pod(consumer):
            return True
        if consumer.uid in self._departed:
            return False
        pod = self._lookups.pods.get(Key(namespace, consumer.name))
        if pod is None:
            # It may be so new that the cache has not seen it; taking its devices would be wrong.
            pod = await self._ask(Key(namespace, consumer.name))
        return pod is not None and pod.metadata.uid == consumer.uid and may_run(pod)

    async def _ask(self, key: Key) -> Pod | None:
        try:
            return await self._transport.get(PODS, key)
        except NotFound:
            return None

    def _is_useless(self, claim: ResourceClaim) -> bool:
        """Report whether a claim was made for a pod that will not run.

        A pod that was never seen may be on its way into the cache; if not, its claims are left to
        the garbage collector.
        """
        owner = owning_pod(claim)
        if owner is None:
            return False
        pod = self._lookups.pods.get(Key(claim.metadata.namespace, owner.name))
        if pod is None:
            return owner.uid in self._departed
        return pod.metadata.uid != owner.uid or not may_run(pod)

    # -- taking back ------------------------------------------------------------------------------

    async def _release(self, claim: ResourceClaim, change: Release) -> ResourceClaim:
        status: dict[str, Any] = {"reservedFor": reservations(change.kept) or None}
        if change.deallocate:
            # What drivers said about the devices goes with them: the server sees to that.
            status["allocation"] = None
        patch = {"metadata": _as_seen(claim), "status": status}
        claim = await self._transport.patch(
            CLAIMS, key_of(claim), patch, subresource="status", options=WRITTEN
        )
        if change.deallocate:
            self._given_back.add(claim.metadata.uid)
        return claim

    def _is_free(self, claim: ResourceClaim) -> bool:
        """Report whether the finalizer has nothing left to protect."""
        unused = claim.status.allocation is None and not claim.status.reserved_for
        ours = is_terminating(claim) or claim.metadata.uid in self._given_back
        return is_protected(claim) and unused and ours

    async def _unprotect(self, claim: ResourceClaim) -> ResourceClaim:
        left = [each for each in claim.metadata.finalizers if each != FINALIZER]
        patch = {"metadata": {**_as_seen(claim), "finalizers": left or None}}
        claim = await self._transport.patch(CLAIMS, key_of(claim), patch, options=WRITTEN)
        self._given_back.discard(claim.metadata.uid)
        return claim

    async def _delete(self, claim: ResourceClaim) -> None:
        seen = DeleteOptions(
            uid=claim.metadata.uid, resource_version=claim.metadata.resource_version
        )
        try:
            await self._transport.delete(CLAIMS, key_of(claim), seen)
        except NotFound:
            return

    # -- news -------------------------------------------------------------------------------------

    def _if_left(self, claim: ResourceClaim) -> Iterable[Key]:
        """Return a claim's key, unless it is plain that nobody has left it.

        A claim on its way to its pod changes several times, and none of that is for us.
        """
        key = key_of(claim)
        now = self._lookups.claims.get(key)
        return () if now is None or self._is_settled(now) else (key,)

    def _is_settled(self, claim: ResourceClaim) -> bool:
        if is_terminating(claim) or claim.metadata.uid in self._given_back:
            return False
        namespace, consumers = claim.metadata.namespace, claim.status.reserved_for
        if consumers:
            return all(self._runs(namespace, each.name, each.uid) for each in consumers)
        owner = owning_pod(claim)
        return owner is None or self._runs(namespace, owner.name, owner.uid)

    def _runs(self, namespace: str, name: str, uid: str) -> bool:
        """Report whether a pod is known to need its claims; when that ends we are woken."""
        pod = self._lookups.pods.get(Key(namespace, name))
        return pod is not None and pod.metadata.uid == uid and may_run(pod)

    def _claims_left_by(self, pod: Pod) -> Iterable[Key]:
        """Return the claims that a pod may have left; none while it needs them."""
        key = key_of(pod)
        now = self._lookups.pods.get(key)
        if now is not None and now.metadata.uid == pod.metadata.uid and may_run(now):
            return
        yield from map(key_of, self._lookups.claims_reserved_for(key))
        yield from map(key_of, self._lookups.claims_made_for(pod.metadata.uid))

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None and new is None:
            self._given_back.discard(old.metadata.uid)


def _as_seen(claim: ResourceClaim) -> dict[str, str]:
    return {"resourceVersion": claim.metadata.resource_version}
