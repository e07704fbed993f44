"""A cluster in memory that a rehearsal can change: copies of collections, and views over them.

Whatever is put here is seen by the views at once, as controllers see it after a watch event.
"""

from __future__ import annotations

from datetime import datetime
from itertools import count
from typing import Any, TypeVar

import msgspec

from sully.api.resource.types import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from sully.client.informers.cache import Cache
from sully.client.objects import key_of
from sully.client.transport import Key, Kind, WatchEvent
from sully.domain.claims.lifecycle import FINALIZER, owning_pod, release
from sully.domain.claims.pods import claim_references
from sully.domain.planning.objects import PlannedPod
from sully.domain.workloads.workloads import Budget
from sully.planning.settings import Settings
from sully.planning.timeline import Timeline
from sully.views.devices.exposures import Exposures
from sully.views.devices.inventory import Inventory
from sully.views.devices.usage import Usage
from sully.views.kinds import CLAIMS, CLASSES, PATCHES, PODS, RULES, SLICES, TAINT_RECORDS
from sully.views.snapshot.kinds import NODES, TEMPLATES
from sully.views.snapshot.snapshot import Snapshot

T = TypeVar("T")

PLANNED_PODS: Kind[PlannedPod] = PODS.read_as(PlannedPod)
BUDGETS: Kind[Budget] = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", Budget)
NEEDED: tuple[Kind[Any], ...] = (
    SLICES,
    CLASSES,
    RULES,
    PATCHES,
    CLAIMS,
    TEMPLATES,
    PLANNED_PODS,
    NODES,
    BUDGETS,
    # Who keeps records evicts otherwise than who does not.
    TAINT_RECORDS,
)
"""What a snapshot must have to be rehearsed on."""


class World:
    """The cluster of a rehearsal."""

    def __init__(self, snapshot: Snapshot, settings: Settings, start: datetime) -> None:
        self.timeline = Timeline(start)
        self.settings = settings
        # No server counts that far, so none of these is the version of what was there before.
        self._versions = count(10**18)
        self._snapshot = snapshot
        self.pods = snapshot.of(PLANNED_PODS).fork()
        self.claims = snapshot.of(CLAIMS).fork()
        self.nodes = snapshot.of(NODES).fork()
        self.classes = snapshot.of(CLASSES).fork()
        self.slices = snapshot.of(SLICES).fork()
        self.rules = snapshot.of(RULES).fork()
        self.patches = snapshot.of(PATCHES).fork()
        self.budgets = snapshot.of(BUDGETS).fork()
        self.inventory = Inventory(
            slices=self.slices,
            classes=self.classes,
            rules=self.rules,
            patches=self.patches,
            features=snapshot.features,
        )
        self.usage = Usage(pods=self.pods, claims=self.claims)
        self.exposures = Exposures(
            self.inventory,
            self.usage,
            clock=self.timeline,
            policy=settings.policy or snapshot.policy,
        )

    # -- changing ---------------------------------------------------------------------------------

    def put(self, copy: Cache[T], obj: T, **metadata: Any) -> T:
        """Set an object, new or changed, under a version of its own; with other metadata, too."""
        fresh = self._versioned(obj, **metadata)
        copy.change(WatchEvent("MODIFIED", fresh, ""))
        return fresh

    def mark_terminating(self, pod: PlannedPod, end: datetime) -> PlannedPod:
        """Note when a pod that runs will be gone.

        Until then it keeps its node and its claims, so no handler has to be called; the evictor
        knows. Calling them took 3 % of a plan in which all pods are evicted.
        """
        fresh = self._versioned(pod, deletion_timestamp=end)
        self.pods.amend(fresh)
        return fresh

    def remove_pod(self, pod: PlannedPod) -> None:
        """Take a pod away, and with it what was reserved for it."""
        self.pods.change(WatchEvent("DELETED", pod, ""))
        for reference in claim_references(pod):
            claim = self.claims.get(Key(pod.metadata.namespace, reference.name))
            if claim is not None:
                self._release(claim, pod.metadata.uid)

    def remove(self, copy: Cache[T], key: Key) -> None:
        """Take an object away, if it is there."""
        known = copy.get(key)
        if known is not None:
            copy.change(WatchEvent("DELETED", known, ""))

    def reserve(self, claim: ResourceClaim, pod: PlannedPod, **status: Any) -> None:
        """Reserve a claim for a pod, with an allocation if it gets one now."""
        consumer = ResourceClaimConsumerReference(
            resource="pods", name=pod.metadata.name, uid=pod.metadata.uid
        )
        known = claim.status.reserved_for
        if consumer not in known:
            status["reserved_for"] = (*known, consumer)
        finalizers = tuple(dict.fromkeys((*claim.metadata.finalizers, FINALIZER)))
        fresh = msgspec.structs.replace(claim.status, **status)
        changed = msgspec.structs.replace(claim, status=fresh)
        self.put(self.claims, changed, finalizers=finalizers)

    def deallocate(self, claim: ResourceClaim) -> None:
        """Take the devices of a claim back; it stays."""
        left = tuple(each for each in claim.metadata.finalizers if each != FINALIZER)
        fresh = msgspec.structs.replace(claim, status=ResourceClaimStatus())
        self.put(self.claims, fresh, finalizers=left)

    def _release(self, claim: ResourceClaim, uid: str) -> None:
        """Do what the claim controller does when a pod is gone."""
        owner = owning_pod(claim)
        if owner is not None and owner.uid == uid:
            self.remove(self.claims, key_of(claim))
            return
        kept = tuple(each for each in claim.status.reserved_for if each.uid != uid)
        change = release(claim, kept)
        if change is None:
            return
        if change.deallocate:
            self.deallocate(claim)
            return
        status = msgspec.structs.replace(claim.status, reserved_for=change.kept)
        self.put(self.claims, msgspec.structs.replace(claim, status=status))

    def _versioned(self, obj: T, **changes: Any) -> T:
        known: Any = obj
        version = str(next(self._versions))
        metadata = msgspec.structs.replace(known.metadata, resource_version=version, **changes)
        fresh: T = msgspec.structs.replace(known, metadata=metadata)
        return fresh

    # -- asking -----------------------------------------------------------------------------------

    def spec_of(self, pod: PlannedPod, entry: str, template: str) -> ResourceClaimSpec | None:
        """Return what a new claim of a pod asks for.

        Where nobody may see templates, what the present claim was made from is good enough.
        """
        found = self._snapshot.get(TEMPLATES, Key(pod.metadata.namespace, template))
        if found is not None:
            return found.spec.spec
        if self._snapshot.gap(TEMPLATES) is None:
            return None
        names = {reference.entry: reference.name for reference in claim_references(pod)}
        claim = self.claims.get(Key(pod.metadata.namespace, names.get(entry, "")))
        return claim.spec if claim is not None else None
