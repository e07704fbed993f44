"""Reconciles the pods of a ReplicaSet with its number of replicas.

Reads ReplicaSets and pods; creates, deletes, adopts and releases pods, writes the status of
ReplicaSets and events. Which pods are deleted first and what the status reports is
domain/workloads/replicas.py; what the cache does not show yet is expectations.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from sully.client.events import EventRecorder
from sully.client.informers.informer import Informer, own_key
from sully.client.transport import Key, Transport
from sully.controllers.controller_refs import ControllerRefManager, Owners
from sully.controllers.expectations import Expectations
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.pod_control import PodControl, pod_of
from sully.controllers.workloads import (
    PODS,
    REPLICA_SETS,
    Pods,
    SelectorIndex,
    by_controller,
)
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.replicas import FAILURE, given_up, next_available, replica_status
from sully.domain.workloads.workloads import ReplicaSet, WorkloadCondition, selector_of
from sully.machinery.errors import ApiError
from sully.runtime.clock import Clock

_BY_CONTROLLER = "replicaset-controller/controller"
_BY_NAMESPACE = "replicaset-controller/namespace"


class ReplicaSetController:
    """Creates and deletes the pods of ReplicaSets."""

    name = "replicaset-controller"

    def __init__(
        self,
        *,
        sets: Informer[ReplicaSet],
        pods: Pods,
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
        self._pod_control = PodControl(transport, recorder, self._expectations, REPLICA_SETS)
        self._refs = ControllerRefManager(transport, REPLICA_SETS, PODS)
        self._owners = Owners(REPLICA_SETS, SelectorIndex(sets, _BY_NAMESPACE))
        sets.add_index(_BY_CONTROLLER, by_controller)
        sets.on_change(self._forget)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for ReplicaSets, and for pods that one controls or may adopt."""
        yield Watch(self._sets, own_key)
        yield Watch(self._pods.informer, self._owners.of)

    async def reconcile(self, key: Key) -> Result:
        """Create or delete pods up to the number of replicas, and write the status."""
        owner = self._sets.get(key)
        if owner is None:
            return DONE
        pods = await self._claim(owner)
        active = [pod for pod in pods if pod.active]
        uid = owner.metadata.uid
        error = None
        if self._expectations.satisfied(uid) and not owner.is_terminating:
            error = await self._manage(owner, active)
        await self._report(owner, pods, active, error)
        if error is not None:
            raise error
        return self._next_reconcile(owner, active, self._expectations.timeout(uid))

    async def _claim(self, owner: ReplicaSet) -> list[Pod]:
        controlled = self._pods.controlled_by(owner.metadata.uid)
        orphans = [pod for pod in self._pods.uncontrolled(owner.metadata.namespace) if pod.active]
        return await self._refs.claim(owner, selector_of(owner), [*controlled, *orphans])

    async def _manage(self, owner: ReplicaSet, active: list[Pod]) -> ApiError | None:
        surplus = len(active) - owner.spec.replicas
        if surplus < 0:
            body = pod_of(REPLICA_SETS, owner, owner.spec.template)
            return await self._pod_control.create(owner, [body] * -surplus)
        if surplus == 0:
            return None
        to_delete = given_up(active, surplus, related=self._related(owner), now=self._clock.now())
        return await self._pod_control.delete(owner, to_delete)

    def _related(self, owner: ReplicaSet) -> list[Pod]:
        """Return the pods of all ReplicaSets of the same controller."""
        controller = owner.metadata.controller()
        if controller is None:
            return self._pods.controlled_by(owner.metadata.uid)
        siblings = self._sets.by_index(_BY_CONTROLLER, controller.uid)
        return [pod for rs in siblings for pod in self._pods.controlled_by(rs.metadata.uid)]

    async def _report(
        self, owner: ReplicaSet, pods: list[Pod], active: list[Pod], error: ApiError | None
    ) -> None:
        now = self._clock.now()
        status = replica_status(
            owner,
            active,
            terminating=sum(pod.is_terminating and not pod.finished for pod in pods),
            failure=_failure(owner, len(active), error, now),
            now=now,
        )
        if status != owner.status:
            await self._transport.update(REPLICA_SETS, replace(owner, status=status), "status")

    def _next_reconcile(self, owner: ReplicaSet, active: list[Pod], timeout: float) -> Result:
        now = self._clock.now()
        available_at = next_available(owner, active, now)
        delays = [timedelta(seconds=timeout)] if timeout else []
        if available_at is not None:
            delays.append(available_at - now)
        return Result(requeue_after=min(delays)) if delays else DONE

    # -- event handlers ---------------------------------------------------------------------------

    def _forget(self, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        if new is None and old is not None:
            self._expectations.forget(old.metadata.uid)


def _failure(
    owner: ReplicaSet, active: int, error: ApiError | None, now: datetime
) -> WorkloadCondition | None:
    if error is None:
        return None
    reason = "FailedCreate" if active < owner.spec.replicas else "FailedDelete"
    return WorkloadCondition(
        type=FAILURE,
        status="True",
        last_transition_time=now,
        reason=reason,
        message=error.message,
    )
