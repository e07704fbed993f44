"""Releases claims: removes the reservations of finished pods, and deallocates unused claims.

Reads claims and pods; writes the status of claims and their finalizer, and deletes claims that were
generated for pods that no longer need them. Every write has the resourceVersion of the claim as a
precondition: the scheduler reserves claims at the same time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from sully.api.resource.types import ResourceClaim, ResourceClaimConsumerReference
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Transport
from sully.controllers.claims.lookups import (
    WRITE_OPTIONS,
    Lookups,
    reservations,
    still_needs_claims,
)
from sully.controllers.framework.controller import DONE, Result, Watch
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
from sully.views.snapshot.kinds import PODS


class ReleaseController:
    """Releases, deallocates and deletes claims."""

    name = "resource-claim-release"

    def __init__(self, *, lookups: Lookups, transport: Transport) -> None:
        self._lookups = lookups
        self._transport = transport
        self._deleted_pods = DeletedPods(lookups.pods)
        self._deallocated: set[str] = set()
        """Claims, by uid, that we deallocated and that still have our finalizer.

        Others keep it: the scheduler adds the finalizer before the allocation.
        """
        lookups.claims.on_change(self._claim_changed)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for claims, and for the pods they are reserved for or were generated for."""
        yield Watch(self._lookups.claims.newest, self._releasable_claim)
        yield Watch(self._lookups.pods.newest, self._claims_of_finished)

    async def reconcile(self, key: Key) -> Result:
        """Release what the consumers of a claim no longer need."""
        claim = self._lookups.claims.get(key)
        if claim is None:
            return DONE
        consumers = await self._remaining_consumers(claim)
        change = release(claim, consumers)
        if change is not None:
            claim = await self._release(claim, change)
        if self._is_unprotectable(claim):
            claim = await self._unprotect(claim)
            if is_terminating(claim):
                return DONE
        if not consumers and not is_terminating(claim) and self._is_owner_finished(claim):
            await self._delete(claim)
        return DONE

    # -- consumers --------------------------------------------------------------------------------

    async def _remaining_consumers(self, claim: ResourceClaim) -> Consumers:
        """Return the consumers of a claim that still need it."""
        consumers, namespace = claim.status.reserved_for, claim.metadata.namespace
        needs = await asyncio.gather(*(self._needs(namespace, user) for user in consumers))
        return tuple(user for user, needed in zip(consumers, needs, strict=True) if needed)

    async def _needs(self, namespace: str, consumer: ResourceClaimConsumerReference) -> bool:
        if not is_pod(consumer):
            return True
        if consumer.uid in self._deleted_pods:
            return False
        pod = self._lookups.pods.get(Key(namespace, consumer.name))
        if pod is None:
            # It may be too new for the cache; its devices must not be deallocated.
            pod = await self._get_pod(Key(namespace, consumer.name))
        return still_needs_claims(pod, consumer.uid)

    async def _get_pod(self, key: Key) -> Pod | None:
        try:
            return await self._transport.get(PODS, key)
        except NotFound:
            return None

    def _is_owner_finished(self, claim: ResourceClaim) -> bool:
        """Report whether a claim was generated for a pod that will not run.

        A pod that is not cached may be too new; otherwise the garbage collector deletes its claims.
        """
        owner = owning_pod(claim)
        if owner is None:
            return False
        pod = self._lookups.pods.get(Key(claim.metadata.namespace, owner.name))
        if pod is None:
            return owner.uid in self._deleted_pods
        return not still_needs_claims(pod, owner.uid)

    # -- writes -----------------------------------------------------------------------------------

    async def _release(self, claim: ResourceClaim, change: Release) -> ResourceClaim:
        status: dict[str, Any] = {"reservedFor": reservations(change.remaining) or None}
        if change.deallocate:
            # The server also removes what drivers reported about the devices.
            status["allocation"] = None
        patch = {"metadata": _precondition(claim), "status": status}
        claim = await self._transport.patch(
            CLAIMS, key_of(claim), patch, subresource="status", options=WRITE_OPTIONS
        )
        if change.deallocate:
            self._deallocated.add(claim.metadata.uid)
        return claim

    def _is_unprotectable(self, claim: ResourceClaim) -> bool:
        """Report whether our finalizer can be removed."""
        unused = claim.status.allocation is None and not claim.status.reserved_for
        ours = is_terminating(claim) or claim.metadata.uid in self._deallocated
        return is_protected(claim) and unused and ours

    async def _unprotect(self, claim: ResourceClaim) -> ResourceClaim:
        others = [name for name in claim.metadata.finalizers if name != FINALIZER]
        patch = {"metadata": {**_precondition(claim), "finalizers": others or None}}
        claim = await self._transport.patch(CLAIMS, key_of(claim), patch, options=WRITE_OPTIONS)
        self._deallocated.discard(claim.metadata.uid)
        return claim

    async def _delete(self, claim: ResourceClaim) -> None:
        preconditions = DeleteOptions(
            uid=claim.metadata.uid, resource_version=claim.metadata.resource_version
        )
        try:
            await self._transport.delete(CLAIMS, key_of(claim), preconditions)
        except NotFound:
            return

    # -- event handlers ---------------------------------------------------------------------------

    def _releasable_claim(self, claim: ResourceClaim) -> Iterable[Key]:
        """Return a claim's key, unless all its consumers run: most changes need no release."""
        key = key_of(claim)
        latest = self._lookups.claims.get(key)
        return () if latest is None or self._is_in_use(latest) else (key,)

    def _is_in_use(self, claim: ResourceClaim) -> bool:
        if is_terminating(claim) or claim.metadata.uid in self._deallocated:
            return False
        namespace, consumers = claim.metadata.namespace, claim.status.reserved_for
        if consumers:
            return all(self._runs(namespace, user.name, user.uid) for user in consumers)
        owner = owning_pod(claim)
        return owner is None or self._runs(namespace, owner.name, owner.uid)

    def _runs(self, namespace: str, name: str, uid: str) -> bool:
        """Report whether the cache shows that a pod needs its claims."""
        return still_needs_claims(self._lookups.pods.get(Key(namespace, name)), uid)

    def _claims_of_finished(self, pod: Pod) -> Iterable[Key]:
        """Return the claims of a pod that no longer needs them."""
        key = key_of(pod)
        if still_needs_claims(self._lookups.pods.get(key), pod.metadata.uid):
            return
        yield from map(key_of, self._lookups.claims_reserved_for(key))
        yield from map(key_of, self._lookups.claims_made_for(pod.metadata.uid))

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None and new is None:
            self._deallocated.discard(old.metadata.uid)


def _precondition(claim: ResourceClaim) -> dict[str, str]:
    return {"resourceVersion": claim.metadata.resource_version}


MAX_DELETED_PODS = 4096
"""Older ones are dropped; the server is asked about those."""


class DeletedPods:
    """The uids of recently deleted pods, so that the server need not be asked about them."""

    def __init__(self, pods: Informer[Pod]) -> None:
        self._uids: OrderedDict[str, None] = OrderedDict()
        pods.on_change(self._changed)

    def __contains__(self, uid: str) -> bool:
        """Report whether a pod is certainly deleted."""
        return uid in self._uids

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._uids)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            # A restored backup has pods with the uids of deleted ones.
            self._uids.pop(new.metadata.uid, None)
        elif old is not None:
            self._uids[old.metadata.uid] = None
            if len(self._uids) > MAX_DELETED_PODS:
                self._uids.popitem(last=False)
