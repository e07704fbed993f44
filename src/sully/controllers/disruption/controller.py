"""Reckons what each PodDisruptionBudget allows, so that evictions can be decided at once.

Reads budgets, pods, ReplicaSets and Deployments; writes the status of budgets and events. The
arithmetic is domain/workloads/budgets.py. The eviction endpoint spends what is written here, and
notes the pod in `disruptedPods`; a write here that has not seen that note is refused as a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from sully.client.events import reference
from sully.client.informers.informer import Informer, own_key
from sully.client.objects import key_of
from sully.client.transport import Key, Transport
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.workloads import (
    BUDGETS,
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    Pods,
    Recorder,
    Selecting,
)
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.budgets import (
    Need,
    Scale,
    UnknownControllerError,
    budget_status,
    count,
    failed_status,
    need,
)
from sully.domain.workloads.workloads import (
    Budget,
    BudgetStatus,
    Deployment,
    ReplicaSet,
    selector_of,
    template_labels,
)
from sully.machinery.meta import OwnerReference
from sully.runtime.clock import Clock

_BY_NAMESPACE = "disruption-controller/namespace"
_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged."
    " As a result, the status of the PDB cannot be calculated correctly, which may result in"
    ' undefined behavior. To account for these pods please set ".spec.minAvailable" field of the'
    " PDB to an integer value."
)


@dataclass(frozen=True, slots=True)
class Workloads:
    """Who says how many pods there are to be."""

    sets: Informer[ReplicaSet]
    deployments: Informer[Deployment]

    def scale(self, namespace: str, ref: OwnerReference) -> Scale | None:
        """Return the number behind the controller of a pod, or None if that is not known."""
        if not _names(ref, REPLICA_SETS.group, REPLICA_SETS.kind):
            return None
        found = self.sets.get(Key(namespace, ref.name))
        if found is None or found.metadata.uid != ref.uid:
            return None
        above = found.metadata.controller()
        if above is None or not _names(above, DEPLOYMENTS.group, DEPLOYMENTS.kind):
            return Scale(found.metadata.uid, found.spec.replicas)
        whole = self.deployments.get(Key(namespace, above.name))
        if whole is None or whole.metadata.uid != above.uid:
            return None
        return Scale(whole.metadata.uid, whole.spec.replicas)


class DisruptionController:
    """Keeps the numbers of budgets right."""

    name = "disruption-controller"

    def __init__(
        self,
        *,
        budgets: Informer[Budget],
        pods: Pods,
        workloads: Workloads,
        transport: Transport,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._budgets = budgets
        self._pods = pods
        self._workloads = workloads
        self._transport = transport
        self._recorder = recorder
        self._clock = clock
        self._choosing = Selecting(budgets, _BY_NAMESPACE)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for budgets, and for what they count: pods and those who say how many."""
        yield Watch(self._budgets, own_key)
        yield Watch(
            self._pods.informer,
            lambda pod: self._choosing.keys(pod.metadata.namespace, pod.metadata.labels),
        )
        yield Watch(self._workloads.sets, self._counting_template)
        yield Watch(self._workloads.deployments, self._counting_template)

    async def reconcile(self, key: Key) -> Result:
        """Count the pods of a budget and write what it allows."""
        budget = self._budgets.get(key)
        if budget is None:
            return DONE
        selector = selector_of(budget)
        found = self._pods.in_namespace(key.namespace)
        pods = [pod for pod in found if selector.matches(pod.metadata.labels)]
        try:
            asked = need(budget, pods, partial(self._workloads.scale, key.namespace))
        except UnknownControllerError as error:
            return await self._fail(budget, str(error))
        return await self._count(budget, pods, asked)

    async def _count(self, budget: Budget, pods: Sequence[Pod], asked: Need) -> Result:
        now = self._clock.now()
        counted = count(budget, pods, now)
        for pod in counted.overdue:
            text = f"Pod was expected by PDB {key_of(budget)} to be deleted but it wasn't"
            self._recorder.event(reference(PODS, pod), "Warning", "NotDeleted", text)
        status = budget_status(budget, asked, counted, now)
        if await self._write(budget, status):
            self._remark(budget, pods, asked)
        return Result(requeue_after=counted.recheck - now) if counted.recheck else DONE

    def _remark(self, budget: Budget, pods: Sequence[Pod], asked: Need) -> None:
        """Tell about a budget that protects nothing, or less than it seems to."""
        about = reference(BUDGETS, budget)
        if not pods:
            self._recorder.event(about, "Normal", "NoPods", "No matching pods found")
        if asked.unmanaged:
            text = _UNMANAGED.format(selector=selector_of(budget))
            self._recorder.event(about, "Warning", "UnmanagedPods", text)

    async def _fail(self, budget: Budget, why: str) -> Result:
        """Allow nothing as long as the numbers cannot be known; whoever changes that wakes us."""
        if await self._write(budget, failed_status(budget, why, self._clock.now())):
            text = f"Failed to calculate the number of expected pods: {why}"
            about = reference(BUDGETS, budget)
            self._recorder.event(about, "Warning", "CalculateExpectedPodCountFailed", text)
        return DONE

    async def _write(self, budget: Budget, status: BudgetStatus) -> bool:
        """Write a status if it says something new; say whether it did."""
        if status == budget.status:
            return False
        await self._transport.update(BUDGETS, replace(budget, status=status), "status")
        return True

    # -- news -------------------------------------------------------------------------------------

    def _counting_template(self, owner: ReplicaSet | Deployment) -> Iterable[Key]:
        return self._choosing.keys(owner.metadata.namespace, template_labels(owner.spec.template))


def _names(ref: OwnerReference, group: str, kind: str) -> bool:
    return ref.kind == kind and ref.api_version.rpartition("/")[0] == group
