"""What the scheduler would do with a pod now, found out on a copy of the cluster.

The judge is the scheduler's own (`scheduler/judge.py`), filled from a snapshot.
What it would do with something changed is in tries.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sully.api.resource.claim_types import ResourceClaim
from sully.client.transport import Key
from sully.domain.allocation.diagnosis import Survey, diagnose
from sully.domain.allocation.requests import Demand, prepare
from sully.domain.allocation.toleration_expiry import AsOf
from sully.domain.allocation.verdicts import Failed, Reason, Unresolved
from sully.domain.explaining.trials import Largest, Where
from sully.domain.explaining.waitingfacts import Attempt
from sully.domain.planning.objects import PlannedPod
from sully.domain.scheduling.decisions import ERROR
from sully.domain.scheduling.diagnosis import Diagnosis
from sully.domain.scheduling.extended import Backings, Extension, extend
from sully.domain.scheduling.filters import NodeInfo, rejects
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import requests_of
from sully.explaining.kinds import SEEN_PODS
from sully.machinery.cel import CostBudgetExceededError
from sully.scheduler.claim_resolution import unallocated
from sully.scheduler.device_cache import DeviceCache
from sully.scheduler.judge import Judge, ScheduleResult
from sully.scheduler.node_cache import NodeCache
from sully.scheduler.options import Options
from sully.views.kinds import CLAIMS, CLASSES
from sully.views.snapshot.kinds import NODES
from sully.views.snapshot.snapshot import ALL_EFFECTS, Snapshot

OPTIONS = Options(eviction=ALL_EFFECTS)
_PASSING = (Reason.TAINT, Reason.IN_USE, Reason.COUNTERS, Reason.CONSTRAINT)
"""What speaks against a device that is of the right kind."""


class Stage(NamedTuple):
    """Nodes, and a judge who knows them."""

    cluster: NodeCache
    judge: Judge


class Attempts:
    """A scheduler that decides and acts on nothing."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.devices = DeviceCache(snapshot.inventory)
        self.backings = Backings()
        self._on_node: dict[str, list[PlannedPod]] = {}
        for pod in snapshot.of(SEEN_PODS).values():
            if pod.spec.node_name and not pod.finished:
                self._on_node.setdefault(pod.spec.node_name, []).append(pod)
        for class_ in snapshot.of(CLASSES).values():
            self.backings.change(None, class_)
        for claim in snapshot.of(CLAIMS).values():
            self.devices.claim_changed(None, claim)
        self._all = self._staged(NodeCache(), *(snapshot.of(NODES).keys()))
        self._alone: dict[str, Stage] = {}

    def _staged(self, cluster: NodeCache, *nodes: Key) -> Stage:
        for key in nodes:
            found = self.snapshot.get(NODES, key)
            if found is not None:
                cluster.update_node(found)
            for pod in self._on_node.get(key.name, ()):
                cluster.add_pod(pod.metadata.uid, key.name, requests_of(pod))
        judge = Judge(
            devices=self.devices,
            nodes=cluster,
            backings=self.backings,
            options=OPTIONS,
        )
        return Stage(cluster, judge)

    def stage(self, node: str) -> Stage:
        """Return one node, or all."""
        if not node:
            return self._all
        found = self._alone.get(node)
        if found is None:
            found = self._alone[node] = self._staged(NodeCache(), Key("", node))
        return found

    def pods_on(self, node: str) -> Sequence[PlannedPod]:
        """Return the pods that take room on a node."""
        return self._on_node.get(node, ())

    def states(self) -> Iterator[NodeInfo]:
        """Yield the nodes, the emptiest first."""
        return self._all.cluster.by_load()

    def attempt(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Attempt:
        """Return what the scheduler would do with a pod whose claims are all there."""
        nodes = len(self._all.cluster)
        match self._prepared(claims):
            case Unresolved(message):
                known = self.snapshot.of(CLASSES).values()
                classes = sorted(each.metadata.name for each in known)
                return Attempt(unresolved=message, classes=tuple(classes), nodes=nodes)
            case Failed(error):
                return Attempt(error=error, nodes=nodes)
            case _:
                pass
        found = self._all.judge.judge(pod, claims, self.snapshot.taken)
        if isinstance(found, ScheduleResult):
            return Attempt(node=found.node, nodes=nodes)
        failed = found.error.reason == ERROR
        return Attempt(
            error=found.error.message if failed else "",
            message=found.error.message,
            account=found.diagnosis,
            rejections=self._rejections(pod),
            nodes=nodes,
        )

    def account(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Diagnosis | None:
        """Return what speaks against devices for a pod; nothing if it would get a node."""
        found = self._all.judge.judge(pod, claims, self.snapshot.taken)
        return None if isinstance(found, ScheduleResult) else found.diagnosis

    def _prepared(self, claims: Sequence[ResourceClaim]) -> Demand | Unresolved | Failed:
        wanted, classes = unallocated(claims), self.snapshot.inventory.class_
        as_of = AsOf(self.snapshot.taken, self.snapshot.inventory.times)
        return prepare(wanted, classes, OPTIONS.honored_taints, as_of)

    def extension(self, pod: Pod) -> Extension | None:
        """Return the claim that a pod gets where devices provide its extended resources."""
        backed = self.backings.backed(requests_of(pod))
        return extend(pod, backed) if backed else None

    def largest(self, pod: Pod, claims: Sequence[ResourceClaim]) -> dict[Where, Largest]:
        """Return for each request the node with the most devices that could serve it."""
        extension = self.extension(pod)
        more = (extension.claim,) if extension is not None else ()
        demand = self._prepared((*claims, *more))
        found: dict[Where, Largest] = {}
        if not isinstance(demand, Demand):
            return found
        requests = requests_of(pod)
        backed = self.backings.backed(requests)
        for state in self.states():
            if rejects(state, pod, requests, backed) is not None:
                continue
            survey = Survey([self.devices.catalogue.offer(state.target)])
            try:
                requests_on = diagnose(demand, survey, self.devices.ledger).requests
            except CostBudgetExceededError:
                break
            for each in requests_on:
                count = each.available + sum(each.refused.get(why, 0) for why in _PASSING)
                known = found.get((each.claim, each.request))
                if known is None or count > known.devices:
                    found[each.claim, each.request] = Largest(count, state.node.metadata.name)
        return found

    def _rejections(self, pod: Pod) -> dict[str, tuple[str, ...]]:
        requests = requests_of(pod)
        backed = self.backings.backed(requests)
        found: dict[str, list[str]] = {}
        for state in self.states():
            rejection = rejects(state, pod, requests, backed)
            for reason in rejection.reasons if rejection is not None else ():
                found.setdefault(reason, []).append(state.node.metadata.name)
        return {reason: tuple(sorted(names)) for reason, names in found.items()}
