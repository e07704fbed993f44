"""Calculates what each PodDisruptionBudget allows, and resets stale disruption conditions.

Reads budgets, pods, ReplicaSets and Deployments; writes the status of budgets and of pods, and
events. The calculation is domain/workloads/budgets.py. The eviction endpoint decrements what is
written here, and adds the pod to `disruptedPods`; a write here that has not seen that conflicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from sully.api.core.pods.conditions import DISRUPTION_TARGET
from sully.client.events import reference
from sully.client.informers.informer import Informer, own_key
from sully.client.objects import key_of
from sully.client.options import PatchType
from sully.client.transport import Key, Kind, Transport
from sully.controllers.framework.controller import DONE, ControllerEnv, Result, Watch
from sully.controllers.workloads.kinds import DEPLOYMENTS, REPLICA_SETS, Pods, SelectorIndex
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.budgets import (
    Need,
    Scale,
    UnknownControllerError,
    budget_status,
    count,
    failed_status,
    need,
    stale_at,
)
from sully.domain.workloads.workloads import (
    Budget,
    BudgetStatus,
    Deployment,
    ReplicaSet,
    selector_of,
    template_labels,
)
from sully.machinery.formats.timestamps import format_time
from sully.machinery.meta import OwnerReference
from sully.runtime.clock import Clock
from sully.views.snapshot.kinds import BUDGETS, PODS

_BY_NAMESPACE = "disruption-controller/namespace"
_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged."
    " As a result, the status of the PDB cannot be calculated correctly, which may result in"
    ' undefined behavior. To account for these pods please set ".spec.minAvailable" field of the'
    " PDB to an integer value."
)


class Workloads(msgspec.Struct, frozen=True):
    """The workloads that specify a number of pods."""

    sets: Informer[ReplicaSet]
    deployments: Informer[Deployment]

    def scale(self, namespace: str, ref: OwnerReference) -> Scale | None:
        """Return the scale of the controller of a pod, or None if it is not known."""
        if not _refers_to(ref, REPLICA_SETS):
            return None
        replica_set = self.sets.get(Key(namespace, ref.name))
        if replica_set is None or replica_set.metadata.uid != ref.uid:
            return None
        owner = replica_set.metadata.controller()
        if owner is None or not _refers_to(owner, DEPLOYMENTS):
            return Scale(ref.uid, replica_set.spec.replicas)
        deployment = self.deployments.get(Key(namespace, owner.name))
        if deployment is None or deployment.metadata.uid != owner.uid:
            return None
        return Scale(owner.uid, deployment.spec.replicas)


class DisruptionController:
    """Keeps the status of budgets up to date."""

    name = "disruption-controller"

    def __init__(
        self,
        *,
        budgets: Informer[Budget],
        pods: Pods,
        workloads: Workloads,
        env: ControllerEnv,
    ) -> None:
        self._budgets = budgets
        self._pods = pods
        self._workloads = workloads
        self._transport, self._recorder, self._clock = env
        self._selectors = SelectorIndex(budgets, _BY_NAMESPACE)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for budgets, and for the pods and workloads that they count."""
        yield Watch(self._budgets, own_key)
        yield Watch(
            self._pods.informer,
            lambda pod: self._selectors.keys(pod.metadata.namespace, pod.metadata.labels),
        )
        yield Watch(self._workloads.sets, self._budgets_of)
        yield Watch(self._workloads.deployments, self._budgets_of)

    async def reconcile(self, key: Key) -> Result:
        """Count the pods of a budget and write what it allows."""
        budget = self._budgets.get(key)
        if budget is None:
            return DONE
        selector = selector_of(budget)
        pods = [
            pod
            for pod in self._pods.in_namespace(key.namespace)
            if selector.matches(pod.metadata.labels)
        ]
        try:
            expected = need(budget, pods, partial(self._workloads.scale, key.namespace))
        except UnknownControllerError as error:
            return await self._fail(budget, str(error))
        return await self._update(budget, pods, expected)

    async def _update(self, budget: Budget, pods: Sequence[Pod], expected: Need) -> Result:
        now = self._clock.now()
        counted = count(budget, pods, now)
        for pod in counted.overdue:
            text = f"Pod was expected by PDB {key_of(budget)} to be deleted but it wasn't"
            self._recorder.event(reference(PODS, pod), "Warning", "NotDeleted", text)
        status = budget_status(budget, expected, counted, now)
        if await self._write(budget, status):
            self._record_events(budget, pods, expected)
        return Result(requeue_after=counted.recheck - now) if counted.recheck else DONE

    def _record_events(self, budget: Budget, pods: Sequence[Pod], expected: Need) -> None:
        """Record events about a budget without pods, or with unmanaged ones."""
        about = reference(BUDGETS, budget)
        if not pods:
            self._recorder.event(about, "Normal", "NoPods", "No matching pods found")
        if expected.unmanaged:
            text = _UNMANAGED.format(selector=selector_of(budget))
            self._recorder.event(about, "Warning", "UnmanagedPods", text)

    async def _fail(self, budget: Budget, error: str) -> Result:
        """Allow no disruption until the number of expected pods can be calculated."""
        if await self._write(budget, failed_status(budget, error, self._clock.now())):
            text = f"Failed to calculate the number of expected pods: {error}"
            about = reference(BUDGETS, budget)
            self._recorder.event(about, "Warning", "CalculateExpectedPodCountFailed", text)
        return DONE

    async def _write(self, budget: Budget, status: BudgetStatus) -> bool:
        """Write a status if it changed; return whether it did."""
        if status == budget.status:
            return False
        await self._transport.update(BUDGETS, replace(budget, status=status), "status")
        return True

    def _budgets_of(self, owner: ReplicaSet | Deployment) -> Iterable[Key]:
        return self._selectors.keys(owner.metadata.namespace, template_labels(owner.spec.template))


def _refers_to(ref: OwnerReference, kind: Kind[Any]) -> bool:
    return (ref.api_version.rpartition("/")[0], ref.kind) == (kind.group, kind.kind)


class StalePodDisruptionController:
    """Resets the condition `DisruptionTarget` of pods that are not deleted minutes later.

    An eviction sets the condition and then deletes the pod. If the deletion fails, the condition
    would stay indefinitely.
    """

    name = "stale-pod-disruption"

    def __init__(self, *, pods: Pods, transport: Transport, clock: Clock) -> None:
        self._pods = pods
        self._transport = transport
        self._clock = clock

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for pods with the condition."""
        yield Watch(self._pods.informer.newest, _disruption_target)

    async def reconcile(self, key: Key) -> Result:
        """Reset the condition when it is stale."""
        pod = self._pods.informer.get(key)
        at = stale_at(pod) if pod is not None else None
        if pod is None or at is None:
            return DONE
        now = self._clock.now()
        if at > now:
            return Result(requeue_after=at - now)
        condition = {
            "type": DISRUPTION_TARGET,
            "status": "False",
            "lastTransitionTime": format_time(now),
        }
        change = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        await self._transport.patch(PODS, key, change, PatchType.STRATEGIC, "status")
        return DONE


def _disruption_target(pod: Pod) -> Iterable[Key]:
    return own_key(pod) if stale_at(pod) is not None else ()
