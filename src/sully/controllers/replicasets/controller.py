"""Keeps the number of pods that a ReplicaSet asks for.

Reads ReplicaSets and pods; creates, deletes, adopts and releases pods, writes the status of
ReplicaSets and events. Which pods go first and what the status says is
domain/workloads/replicas.py; what the cache has not seen yet is expectations.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from sully.client.informers.informer import Informer, own_key
from sully.client.transport import Key, Transport
from sully.controllers.controller_refs import ControllerRefManager, Owners
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.replicasets.expectations import Expectations
from sully.controllers.replicasets.pods import PodKeeper
from sully.controllers.workloads import (
    PODS,
    REPLICA_SETS,
    Pods,
    Recorder,
    Selecting,
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
    """Keeps pods."""

    name = "replicaset-controller"

    def __init__(
        self,
        *,
        sets: Informer[ReplicaSet],
        pods: Pods,
        transport: Transport,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._sets = sets
        self._pods = pods
        self._transport = transport
        self._clock = clock
        self._expectations = Expectations(clock)
        self._keeper = PodKeeper(transport, recorder, self._expectations)
        self._claims = ControllerRefManager(transport, REPLICA_SETS, PODS)
        self._owners = Owners(REPLICA_SETS, Selecting(sets, _BY_NAMESPACE))
        sets.add_index(_BY_CONTROLLER, by_controller)
        # Before any key is queued for the same news, so that the look it causes may count.
        pods.informer.on_change(self._observe)
        sets.on_change(self._forget)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for ReplicaSets, and for pods as part of theirs or of those that may adopt them."""
        yield Watch(self._sets, own_key)
        yield Watch(self._pods.informer, self._owners.of)

    async def reconcile(self, key: Key) -> Result:
        """Bring pods to the number asked for, and say how many there are."""
        owner = self._sets.get(key)
        if owner is None:
            return DONE
        pods = await self._claim(owner)
        active = [pod for pod in pods if pod.active]
        uid = owner.metadata.uid
        waits = self._expectations.waits(uid)
        error = None
        if not waits and not owner.is_terminating:
            error = await self._manage(owner, active)
        await self._report(owner, pods, active, error)
        if error is not None:
            raise error
        return self._next_look(owner, active, self._expectations.waits(uid))

    async def _claim(self, owner: ReplicaSet) -> list[Pod]:
        mine = self._pods.controlled_by(owner.metadata.uid)
        free = [pod for pod in self._pods.uncontrolled(owner.metadata.namespace) if pod.active]
        return await self._claims.claim(owner, selector_of(owner), [*mine, *free])

    async def _manage(self, owner: ReplicaSet, active: list[Pod]) -> ApiError | None:
        surplus = len(active) - owner.spec.replicas
        if surplus < 0:
            return await self._keeper.create(owner, -surplus)
        if surplus == 0:
            return None
        chosen = given_up(active, surplus, related=self._related(owner), now=self._clock.now())
        return await self._keeper.delete(owner, chosen)

    def _related(self, owner: ReplicaSet) -> list[Pod]:
        """Return the pods of all ReplicaSets that belong to the same workload."""
        controller = owner.metadata.controller()
        if controller is None:
            return self._pods.controlled_by(owner.metadata.uid)
        family = self._sets.by_index(_BY_CONTROLLER, controller.uid)
        return [pod for each in family for pod in self._pods.controlled_by(each.metadata.uid)]

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

    def _next_look(self, owner: ReplicaSet, active: list[Pod], waits: float) -> Result:
        now = self._clock.now()
        at = next_available(owner, active, now)
        times = [timedelta(seconds=waits)] if waits else []
        if at is not None:
            times.append(at - now)
        return Result(requeue_after=min(times)) if times else DONE

    # -- news -------------------------------------------------------------------------------------

    def _observe(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        controller = pod.metadata.controller() if pod is not None else None
        if pod is None or controller is None:
            return
        if old is None:
            self._expectations.created(controller.uid)
        if new is None or new.is_terminating:
            self._expectations.deleted(controller.uid, pod.metadata.uid)

    def _forget(self, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        if new is None and old is not None:
            self._expectations.forget(old.metadata.uid)


def _failure(
    owner: ReplicaSet, have: int, error: ApiError | None, now: datetime
) -> WorkloadCondition | None:
    if error is None:
        return None
    reason = "FailedCreate" if have < owner.spec.replicas else "FailedDelete"
    return WorkloadCondition(
        type=FAILURE,
        status="True",
        last_transition_time=now,
        reason=reason,
        message=error.message,
    )
