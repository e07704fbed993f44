"""Whether new workloads would fit: schedules their pods on a copy of the cluster.

Existing pods of the same workload are removed from the copy first, because the new ones replace
them; other Pending pods that come first in the queue are scheduled before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial

import msgspec
from msgspec.structs import replace

from sully.api.resource.types import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from sully.client.transport import Key
from sully.domain.eviction.judge import Evict, Wait
from sully.domain.planning.candidate_nodes import CandidateNodes
from sully.domain.planning.replacements import ReplacementPod, replacement_pod
from sully.domain.planning.workload_pods import DAEMON_SET, POD, daemon_nodes
from sully.domain.scheduling.diagnosis import Diagnosis
from sully.domain.scheduling.objects import Affinity, NodeAffinity, Pod
from sully.planning.simulation.simulator import Simulation
from sully.views.snapshot.snapshot import Snapshot


class NewWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that is created, or that replaces one of its name."""

    kind: str
    key: Key
    pod: Pod
    """One of its pods."""
    count: int = 1
    """How many it has; a DaemonSet has one for each node."""


class FittedPod(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod would be scheduled, or why it would stay Pending."""

    name: str
    node: str = ""
    candidates: CandidateNodes = msgspec.field(default_factory=CandidateNodes)
    devices: tuple[str, ...] = ()
    message: str = ""
    """Why it would stay Pending."""
    diagnosis: Diagnosis | None = None
    evicted: datetime | None = None
    """When it would be evicted from there because of taints."""

    @property
    def fits(self) -> bool:
        """Report whether it would be scheduled, and not evicted."""
        return bool(self.node) and self.evicted is None


class WorkloadFit(msgspec.Struct, frozen=True, kw_only=True):
    """The pods of one workload."""

    kind: str
    key: Key
    pods: tuple[FittedPod, ...]
    replaced: int = 0
    """How many existing pods of it were assumed to be gone."""

    @property
    def scheduled(self) -> int:
        """Return how many pods would be scheduled."""
        return sum(bool(pod.node) for pod in self.pods)

    @property
    def fits(self) -> bool:
        """Report whether all its pods fit."""
        return all(pod.fits for pod in self.pods)


def fit_workloads(snapshot: Snapshot, workloads: Sequence[NewWorkload]) -> list[WorkloadFit]:
    """Schedule the pods of workloads, in their order, on a copy of the cluster."""
    simulation = Simulation(snapshot)
    cluster = simulation.cluster
    replaced = [list(_existing(cluster.pods.values(), workload)) for workload in workloads]
    for pod in (pod for pods in replaced for pod in pods):
        cluster.remove_pod(pod)
    simulation.scheduler.settle()
    created = [list(_new_pods(simulation, workload)) for workload in workloads]
    simulation.scheduler.create(pod for pods in created for pod in pods)
    simulation.scheduler.settle()
    simulation.scheduler.diagnose()
    return [
        WorkloadFit(
            kind=workload.kind,
            key=workload.key,
            pods=tuple(_fitted(simulation, new) for new in pods),
            replaced=len(old),
        )
        for workload, pods, old in zip(workloads, created, replaced, strict=True)
    ]


def _existing(pods: Iterable[Pod], workload: NewWorkload) -> Iterator[Pod]:
    for pod in list(pods):
        if pod.metadata.namespace != workload.key.namespace or pod.is_terminal:
            continue
        name = f"{workload.kind}/{workload.key.name}"
        if name in (pod.owner_text, pod.workload_text):
            yield pod


def _new_pods(simulation: Simulation, workload: NewWorkload) -> Iterator[ReplacementPod]:
    cluster, pod, name = simulation.cluster, workload.pod, workload.key.name
    spec_of, now = partial(cluster.claim_spec, pod), cluster.clock.now()
    if workload.kind == DAEMON_SET:
        for node in daemon_nodes(pod, cluster.nodes.values()):
            yield replacement_pod(_for_node(pod, node), now, spec_of=spec_of, name=f"{name}-{node}")
        return
    for number in range(workload.count):
        own = name if workload.kind == POD else f"{name}-{number}"
        yield replacement_pod(pod, now, spec_of=spec_of, name=own)


def _for_node(pod: Pod, node: str) -> Pod:
    """Return the pod of a DaemonSet for one node."""
    name = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))
    affinity = replace(
        pod.spec.affinity or Affinity(),
        node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required),
    )
    return replace(pod, spec=replace(pod.spec, affinity=affinity))


def _fitted(simulation: Simulation, new: ReplacementPod) -> FittedPod:
    uid, name = new.pod.metadata.uid, new.pod.metadata.name
    binding = simulation.scheduler.bindings.get(uid)
    if binding is None:
        pending = simulation.pending(uid)
        if new.missing_template:
            message = f"ResourceClaimTemplate {new.missing_template} does not exist"
            return FittedPod(name=name, message=message)
        if pending is None:
            return FittedPod(name=name, message="no scheduler has decided about it")
        return FittedPod(name=name, message=pending.message, diagnosis=pending.diagnosis)
    return FittedPod(
        name=name,
        node=binding.node,
        candidates=binding.candidates,
        devices=tuple(map(str, binding.devices)),
        evicted=_evicted(simulation, Key(new.pod.metadata.namespace, name)),
    )


def _evicted(simulation: Simulation, key: Key) -> datetime | None:
    pod = simulation.cluster.pods.get(key)
    match simulation.evictor.verdict(pod) if pod is not None else None:
        case Wait(until):
            return until
        case Evict(since):
            return max(since, simulation.cluster.clock.now())
        case _:
            return None
