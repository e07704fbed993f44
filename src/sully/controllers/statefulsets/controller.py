"""Reconciles the pods of a StatefulSet with its template, one ordinal after another.

Reads StatefulSets, pods and ControllerRevisions; creates and deletes pods, creates volume claims
and revisions, writes the status of StatefulSets and events. What happens next is
domain/workloads/statefulsets.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from sully.client.events import EventRecorder
from sully.client.informers.informer import Informer, own_key
from sully.client.transport import Key, Transport
from sully.controllers.controller_refs import ControllerRefManager, Owners
from sully.controllers.expectations import Expectations
from sully.controllers.framework import DONE, REQUEUE, Result, Watch
from sully.controllers.history_control import History, HistoryControl, RevisionCollisionError
from sully.controllers.pod_control import PodControl
from sully.controllers.statefulsets.pods import claims_of, pod_with_ordinal
from sully.controllers.workloads import (
    CLAIMS,
    PODS,
    STATEFUL_SETS,
    Pods,
    SelectorIndex,
)
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.history import HASH_LABEL, ControllerRevision, template_of
from sully.domain.workloads.statefulsets import (
    SetSync,
    StatefulSet,
    next_ready,
    ordinal_of,
    sync_set,
)
from sully.domain.workloads.workloads import selector_of
from sully.machinery.errors import AlreadyExists
from sully.runtime.clock import Clock

_REVISION_LABEL = "controller.kubernetes.io/hash"


class StatefulSetController:
    """Creates and deletes the pods of StatefulSets."""

    name = "statefulset-controller"

    def __init__(
        self,
        *,
        sets: Informer[StatefulSet],
        pods: Pods,
        revisions: Informer[ControllerRevision],
        transport: Transport,
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._sets = sets
        self._pods = pods
        self._transport = transport
        self._clock = clock
        self._expectations = Expectations(clock)
        self._expectations.follow(pods.informer)
        self._pod_control = PodControl(transport, recorder, self._expectations, STATEFUL_SETS)
        self._history = HistoryControl(transport, revisions, STATEFUL_SETS, _REVISION_LABEL)
        self._refs = ControllerRefManager(transport, STATEFUL_SETS, PODS)
        index = SelectorIndex(sets, "statefulset-controller/namespace")
        self._owners = Owners(STATEFUL_SETS, index)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for StatefulSets, and for pods that one controls or may adopt."""
        yield Watch(self._sets, own_key)
        yield Watch(self._pods.informer, self._owners.of)

    async def reconcile(self, key: Key) -> Result:
        """Take the next step of a StatefulSet."""
        owner = self._sets.get(key)
        if owner is None:
            return DONE
        pods = await self._claim(owner)
        if not self._expectations.satisfied(owner.metadata.uid):
            return Result(requeue_after=timedelta(seconds=1))
        collisions = owner.status.collision_count
        try:
            history = await self._history.sync(owner, owner.spec.template, collisions)
        except RevisionCollisionError:
            # The next reconcile tries another name.
            status = replace(owner.status, collision_count=(collisions or 0) + 1)
            await self._transport.update(STATEFUL_SETS, replace(owner, status=status), "status")
            return REQUEUE
        step = sync_set(owner, pods, history.update.name, self._clock.now())
        await self._execute(owner, step, history)
        used = {pod.metadata.labels.get(HASH_LABEL, "") for pod in pods}
        used |= {step.status.current_revision}
        await self._history.truncate(history, used, owner.spec.revision_history_limit)
        return self._next_reconcile(owner, pods)

    async def _claim(self, owner: StatefulSet) -> list[Pod]:
        """Return the pods of a set; only one with the name of an ordinal is adopted."""
        controlled = self._pods.controlled_by(owner.metadata.uid)
        orphans = [
            pod
            for pod in self._pods.uncontrolled(owner.metadata.namespace)
            if pod.active and _is_named_after(pod, owner)
        ]
        return await self._refs.claim(owner, selector_of(owner), [*controlled, *orphans])

    async def _execute(self, owner: StatefulSet, step: SetSync, history: History) -> None:
        error = await self._pod_control.delete(owner, step.delete) if step.delete else None
        bodies = []
        for ordinal, name in step.create:
            revision = history.named(name) or history.update
            for claim in claims_of(owner, ordinal):
                await self._create_claim(claim)
            template = template_of(revision)
            bodies.append(pod_with_ordinal(owner, ordinal, template, revision.name))
        if error is None and bodies:
            error = await self._pod_control.create(owner, bodies)
        if step.status != owner.status:
            changed = replace(owner, status=step.status)
            await self._transport.update(STATEFUL_SETS, changed, "status")
        if error is not None:
            raise error

    async def _create_claim(self, claim: dict[str, Any]) -> None:
        try:
            await self._transport.create(CLAIMS, claim)
        except AlreadyExists:
            return

    def _next_reconcile(self, owner: StatefulSet, pods: list[Pod]) -> Result:
        now = self._clock.now()
        at = next_ready(owner, pods, now)
        return Result(requeue_after=at - now) if at is not None else DONE


def _is_named_after(pod: Pod, owner: StatefulSet) -> bool:
    ordinal = ordinal_of(pod.metadata.name)
    return ordinal is not None and pod.metadata.name == owner.pod_name(ordinal)
