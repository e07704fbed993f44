"""Reconciles the pods of a DaemonSet with the nodes: one on each that matches.

Reads DaemonSets, nodes, pods and ControllerRevisions; creates and deletes pods, writes revisions,
the status of DaemonSets and events. Which node runs a pod is domain/workloads/daemonsets.py. The
scheduler binds the pods: their affinity names the node.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from sully.client.events import EventRecorder
from sully.client.informers.informer import Informer, own_key
from sully.client.objects import key_of
from sully.client.transport import Key, Transport
from sully.controllers.controller_refs import ControllerRefManager, Owners
from sully.controllers.daemonsets.pods import pod_for_node
from sully.controllers.expectations import Expectations
from sully.controllers.framework import DONE, REQUEUE, Result, Watch
from sully.controllers.history_control import HistoryControl, RevisionCollisionError
from sully.controllers.pod_control import PodControl
from sully.controllers.workloads import (
    DAEMON_SETS,
    PODS,
    Pods,
    SelectorIndex,
)
from sully.domain.scheduling.objects import Node, Pod
from sully.domain.workloads.daemonsets import DaemonSet, next_available, sync_daemons
from sully.domain.workloads.history import HASH_LABEL, ControllerRevision
from sully.domain.workloads.workloads import selector_of
from sully.runtime.clock import Clock


class DaemonSetController:
    """Creates and deletes the pods of DaemonSets."""

    name = "daemon-set-controller"

    def __init__(  # noqa: PLR0913 - what it reads, and how it writes
        self,
        *,
        sets: Informer[DaemonSet],
        nodes: Informer[Node],
        pods: Pods,
        revisions: Informer[ControllerRevision],
        transport: Transport,
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._sets = sets
        self._nodes = nodes
        self._pods = pods
        self._transport = transport
        self._clock = clock
        self._expectations = Expectations(clock)
        self._expectations.follow(pods.informer)
        self._pod_control = PodControl(transport, recorder, self._expectations, DAEMON_SETS)
        self._history = HistoryControl(transport, revisions, DAEMON_SETS, HASH_LABEL)
        self._refs = ControllerRefManager(transport, DAEMON_SETS, PODS)
        self._owners = Owners(DAEMON_SETS, SelectorIndex(sets, "daemon-set-controller/namespace"))

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for DaemonSets, for their pods, and all of them for nodes."""
        yield Watch(self._sets, own_key)
        yield Watch(self._pods.informer, self._owners.of)
        yield Watch(self._nodes, self._every_set)

    def _every_set(self, _node: Node) -> Iterable[Key]:
        return [key_of(daemon_set) for daemon_set in self._sets.values()]

    async def reconcile(self, key: Key) -> Result:
        """Take the next step of a DaemonSet."""
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
            await self._transport.update(DAEMON_SETS, replace(owner, status=status), "status")
            return REQUEUE
        hash_ = history.update.metadata.labels.get(HASH_LABEL, "")
        model = msgspec.convert(pod_for_node(owner, "", hash_), Pod)
        now = self._clock.now()
        step = sync_daemons(owner, pods, self._nodes.values(), model, hash_, now)
        error = await self._pod_control.delete(owner, step.delete) if step.delete else None
        if error is None and step.create:
            bodies = [pod_for_node(owner, name, hash_) for name in step.create]
            error = await self._pod_control.create(owner, bodies)
        if step.status != owner.status:
            changed = replace(owner, status=step.status)
            await self._transport.update(DAEMON_SETS, changed, "status")
        if error is not None:
            raise error
        hashes = {pod.metadata.labels.get(HASH_LABEL, "") for pod in pods}
        used = {f"{owner.name}-{used_hash}" for used_hash in hashes}
        await self._history.truncate(history, used, owner.spec.revision_history_limit)
        at = next_available(owner, pods, now)
        return Result(requeue_after=at - now) if at is not None else DONE

    async def _claim(self, owner: DaemonSet) -> list[Pod]:
        controlled = self._pods.controlled_by(owner.metadata.uid)
        orphans = [pod for pod in self._pods.uncontrolled(owner.metadata.namespace) if pod.active]
        return await self._refs.claim(owner, selector_of(owner), [*controlled, *orphans])
