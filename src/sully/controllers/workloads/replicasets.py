"""Reconciles the pods of a ReplicaSet with its number of replicas.

Reads ReplicaSets and pods; creates, deletes, adopts and releases pods, writes the status of
ReplicaSets and events. Which pods are deleted first and what the status reports is
domain/workloads/replicas.py; what the cache does not show yet is expectations.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sully.client.transport import Key
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.workloads.kinds import REPLICA_SETS, by_controller
from sully.controllers.workloads.owned_pods import OwnedPods
from sully.controllers.workloads.pod_control import pod_of
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.replicas import FAILURE, next_available, pods_to_delete, replica_status
from sully.domain.workloads.workloads import BURST, ReplicaSet, WorkloadCondition
from sully.machinery.errors import ApiError

_BY_CONTROLLER = "replicaset-controller/controller"


class ReplicaSetController:
    """Creates and deletes the pods of ReplicaSets."""

    name = "replicaset-controller"

    def __init__(self, owned: OwnedPods[ReplicaSet]) -> None:
        self._owned = owned
        self._expectations = owned.expectations
        self._clock = owned.clock
        owned.owners.add_index(_BY_CONTROLLER, by_controller)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for ReplicaSets, and for pods that one controls or may adopt."""
        return self._owned.watches()

    async def reconcile(self, key: Key) -> Result:
        """Create or delete pods up to the number of replicas, and write the status."""
        owner = self._owned.owners.get(key)
        if owner is None:
            return DONE
        pods = await self._owned.claim(owner)
        active = [pod for pod in pods if pod.is_active]
        uid = owner.metadata.uid
        error = None
        if self._expectations.satisfied(uid) and not owner.is_terminating:
            error = await self._manage(owner, active)
        await self._report(owner, pods, active, error)
        if error is not None:
            raise error
        return self._next_reconcile(owner, active, self._expectations.timeout(uid))

    async def _manage(self, owner: ReplicaSet, active: list[Pod]) -> ApiError | None:
        surplus = len(active) - owner.spec.replicas
        if surplus < 0:
            body = pod_of(REPLICA_SETS, owner, owner.spec.template)
            return await self._owned.apply(owner, create=[body] * min(-surplus, BURST))
        if surplus == 0:
            return None
        to_delete = pods_to_delete(
            active, surplus, related=self._related(owner), now=self._clock.now()
        )
        return await self._owned.apply(owner, delete=to_delete)

    def _related(self, owner: ReplicaSet) -> list[Pod]:
        """Return the pods of all ReplicaSets of the same controller."""
        controller = owner.metadata.controller()
        if controller is None:
            return self._owned.pods.controlled_by(owner.metadata.uid)
        siblings = self._owned.owners.by_index(_BY_CONTROLLER, controller.uid)
        return [pod for rs in siblings for pod in self._owned.pods.controlled_by(rs.metadata.uid)]

    async def _report(
        self, owner: ReplicaSet, pods: list[Pod], active: list[Pod], error: ApiError | None
    ) -> None:
        now = self._clock.now()
        status = replica_status(
            owner,
            active,
            terminating=sum(pod.is_terminating and not pod.is_terminal for pod in pods),
            failure=_failure(owner, len(active), error, now),
            now=now,
        )
        await self._owned.write_status(owner, status)

    def _next_reconcile(self, owner: ReplicaSet, active: list[Pod], timeout: float) -> Result:
        now = self._clock.now()
        available_at = next_available(active, owner.spec.min_ready_seconds, now)
        delays = [timedelta(seconds=timeout)] if timeout else []
        if available_at is not None:
            delays.append(available_at - now)
        return Result(requeue_after=min(delays)) if delays else DONE


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
