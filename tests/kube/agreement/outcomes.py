"""What becomes of the pods of a world after a change: as planned, and as it was.

Which node and which device a replacement gets is not compared: where several fit, the scheduler is
free to choose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sully.machinery.formats.timestamps import parse_time

PENDING, RUNNING = "Pending", "Running"
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class PodState:
    """One pod at one time."""

    uid: str
    name: str
    workload: str
    node: str
    phase: str
    deleted: bool
    """Whether its deletion was requested, or it is gone."""
    owner: str = ""
    """Kind and name of its controller."""

    @property
    def active(self) -> bool:
        """Report whether it runs, or will."""
        return not self.deleted and self.phase not in _ENDED

    @property
    def state(self) -> str:
        """Return whether it is scheduled, as plans print it."""
        return RUNNING if self.node else PENDING


@dataclass(frozen=True, slots=True)
class Outcome:
    """Which pods are evicted, and how many there are afterwards."""

    evicted: frozenset[str]
    """Names of pods that were there before the change."""
    counts: Mapping[tuple[str, str], int]
    """How many pods of a workload are running or pending."""
    churn: bool
    """Whether replacements are evicted as well."""
    moved: bool = False
    """Whether pending pods are scheduled, or pods are created."""
    loops: bool = False
    """Whether the plan has eviction loops, which are its headline."""
    may_churn: bool = False
    """Whether that is planned as possible: it depends on the node that the scheduler selects."""
    last: float = 0.0
    """After how many seconds nothing more is planned to happen."""

    def total(self, state: str) -> int:
        """Count the pods in a state."""
        return sum(count for (_, entry), count in self.counts.items() if entry == state)


def planned(plan: Mapping[str, Any], namespace: str, before: Iterable[PodState]) -> Outcome:
    """Return what a plan predicts for the pods of a namespace."""
    pods = {pod.name: pod for pod in before if pod.active}
    counts = Counter((pod.workload, pod.state) for pod in pods.values())
    evicted, churn = set(), False
    for eviction in _of(plan["evictions"], namespace):
        pod = pods.get(eviction["name"])
        if pod is None:
            churn = True
            continue
        evicted.add(pod.name)
        counts[pod.workload, pod.state] -= 1
        match _certain(eviction["replacement"]):
            case "Rescheduled":
                counts[pod.workload, RUNNING] += 1
            case "Pending":
                counts[pod.workload, PENDING] += 1
            case "EvictedAgain":
                churn = True
            case "NotReplaced":
                pass
            case outcome:
                raise ValueError(f"unknown outcome {outcome!r}")
    scheduled = list(_of(plan["scheduledPods"], namespace))
    for item in scheduled:
        pod = pods[item["name"]]
        if item["evictedAgain"]:
            churn = True
            evicted.add(pod.name)
        elif pod.name not in evicted:
            counts[pod.workload, PENDING] -= 1
            counts[pod.workload, RUNNING] += 1
    for item in _of(plan["deletedPods"], namespace):
        pod = pods[item["name"]]
        evicted.add(pod.name)
        counts[pod.workload, pod.state] -= 1
    created = list(_of(plan["createdPods"], namespace))
    workloads = {pod.owner: pod.workload for pod in pods.values()}
    for item in created:
        churn |= item["evictedAgain"]
        counts[workloads[item["owner"]], RUNNING if item["node"] else PENDING] += 1
    moved = bool(scheduled or created)
    return Outcome(
        frozenset(evicted),
        +counts,
        churn,
        moved=moved,
        loops=any(_of(plan["evictionLoops"], namespace)),
        may_churn=any(
            eviction["replacement"]["evictingCandidates"]
            for eviction in _of(plan["evictions"], namespace)
        ),
        last=_last(plan, namespace),
    )


def _certain(replacement: Mapping[str, Any]) -> str:
    """Return the outcome of a replacement; an unknown one is taken as if it is recreated."""
    outcome: str = replacement["outcome"]
    if outcome != "Unknown":
        return outcome
    return "Rescheduled" if replacement["node"] else "Pending"


def _last(plan: Mapping[str, Any], namespace: str) -> float:
    evictions = list(_of(plan["evictions"], namespace))
    times = [eviction["evictionTime"] for eviction in evictions]
    times += [eviction["replacement"]["scheduledTime"] for eviction in evictions]
    times += [item["deletionTime"] for item in _of(plan["deletedPods"], namespace)]
    times += [item["scheduledTime"] for item in _of(plan["scheduledPods"], namespace)]
    start = parse_time(plan["startTime"])
    return max(((parse_time(at) - start).total_seconds() for at in times if at), default=0.0)


def _of(parts: Iterable[Mapping[str, Any]], namespace: str) -> Iterable[Mapping[str, Any]]:
    return (part for part in parts if part["namespace"] == namespace)


def observed(before: Iterable[PodState], after: Iterable[PodState]) -> Outcome:
    """Return what became of pods; `after` also has those that are gone."""
    pods = {pod.uid: pod for pod in before if pod.active}
    known = {pod.uid: pod for pod in after}
    lost = {uid for uid in pods if uid not in known or known[uid].deleted}
    counts = Counter((pod.workload, pod.state) for pod in known.values() if pod.active)
    churn = any(pod.deleted for uid, pod in known.items() if uid not in pods)
    first = Counter((pod.workload, pod.state) for pod in pods.values())
    return Outcome(frozenset(pods[uid].name for uid in lost), counts, churn, moved=counts != first)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether a plan was right about each part of the outcome."""

    plan: Outcome
    reality: Outcome

    @property
    def evicted(self) -> bool:
        """Report whether exactly the pods were evicted that the plan names."""
        return self.plan.evicted == self.reality.evicted

    @property
    def churn(self) -> bool:
        """Report whether it was predicted that replacements are evicted, or not."""
        return self.plan.churn == self.reality.churn

    @property
    def rescheduled(self) -> bool:
        """Report whether as many pods as planned run and wait; with churn there is no end state."""
        if self.plan.churn or self.reality.churn:
            return self.churn
        return dict(self.plan.counts) == dict(self.reality.counts)

    @property
    def has_effect(self) -> bool:
        """Report whether pods are evicted or scheduled, as planned or in reality."""
        return any(item.evicted or item.churn or item.moved for item in (self.plan, self.reality))

    @property
    def right(self) -> bool:
        """Report whether the plan was right in everything."""
        return self.evicted and self.churn and self.rescheduled
