"""Workloads: why their pods are Pending, will be evicted, or are evicted again and again.

Pods of one workload have one template, so only the first Pending pod is tried with the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from sully.client.objects import key_of
from sully.client.transport import Key, Kind
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.jobs.objects import ENDS
from sully.domain.workloads.workloads import WorkloadCondition
from sully.explain.causes import Finding, WorkloadFacts
from sully.explain.explanation import Table, tables
from sully.explain.facts.pods.loops import loop_membership, loop_origins
from sully.explain.facts.pods.pods import find_pod
from sully.explain.reader import Reader
from sully.explain.templates import CAUSES
from sully.machinery.meta import ObjectMeta, Wire
from sully.views.snapshot.kinds import PODS

_TO_BE_EVICTED: Final = frozenset(("ToleratedTemporarily", "TaintStartsLater"))
_FAILURES: Final = frozenset(("ReplicaFailure", "FailedCreate", "FailureTarget"))
_MAX_ROWS: Final = 20


class WorkloadStatus(Wire, frozen=True, kw_only=True):
    """The state of a workload of any kind."""

    conditions: tuple[WorkloadCondition, ...] = ()


class WorkloadState(Wire, frozen=True, kw_only=True):
    """A workload of any kind, by its state."""

    metadata: ObjectMeta = ObjectMeta()
    status: WorkloadStatus = WorkloadStatus()


def workload_finder(kind: Kind[Any]) -> Callable[[Reader, Key], Finding | None]:
    """Return what finds out about workloads of a kind."""
    return lambda reader, key: _find(reader, kind, key)


def _find(reader: Reader, kind: Kind[Any], key: Key) -> Finding | None:
    workload = reader.snapshot.get(kind.read_as(WorkloadState), key)
    owner = f"{kind.kind}/{key.name}"
    pods = [
        pod
        for pod in sorted(reader.snapshot.of(PODS).values(), key=key_of)
        if pod.metadata.namespace == key.namespace and owner in (pod.owner_text, pod.workload_text)
    ]
    if workload is None and not pods:
        return None
    conditions = workload.status.conditions if workload is not None else ()
    return _Workload(reader, kind.kind, key, conditions, pods).find()


class _Workload:
    def __init__(
        self,
        reader: Reader,
        kind: str,
        key: Key,
        conditions: Sequence[WorkloadCondition],
        pods: list[Pod],
    ) -> None:
        self.reader = reader
        self.kind = kind
        self.key = key
        self.conditions = [condition for condition in conditions if condition.status == "True"]
        self.pods = [pod for pod in pods if pod.is_active]
        self.waiting = [pod for pod in self.pods if not pod.spec.node_name]
        self.bound = [
            (pod, finding)
            for pod in pods
            if pod.spec.node_name
            if (finding := find_pod(reader, key_of(pod))) is not None
        ]

    def find(self) -> Finding:
        loops = [
            loop
            for loop in self.reader.eviction_loops
            if loop.namespace == self.key.namespace
            and any(pod.owner_text == loop.owner for pod in self.pods)
        ]
        evicting = [finding for _, finding in self.bound if _is_evicting(finding)]
        if loops:
            notes = tuple(
                loop_membership(self.reader, x, f"{self.kind}/{self.key.name}") for x in loops
            )
            because = tuple(origin for loop in loops for origin in loop_origins(self.reader, loop))
            return self._finding("EvictionLoop", because=because, loops=notes)
        if self.waiting:
            return self._finding("PodsPending", find_pod(self.reader, key_of(self.waiting[0])))
        if evicting:
            return self._finding("PodsToBeEvicted", evicting[0], evicting=len(evicting))
        return self._undisturbed()

    def _undisturbed(self) -> Finding:
        ended = next((x for x in self.conditions if x.type in ENDS), None)
        if ended is not None:
            return self._finding("Finished", phase=ended.type)
        if not self.pods:
            failed = next((x for x in self.conditions if x.type in _FAILURES), None)
            return self._finding("NoPods", message=failed.message if failed is not None else "")
        return self._finding("PodsRunning")

    def _finding(
        self, cause: str, nested: Finding | None = None, because: Sequence[str] = (), **facts: Any
    ) -> Finding:
        known = self.bound[0][1] if self.bound and nested is None else None
        return Finding(
            kind=self.kind,
            namespace=self.key.namespace,
            name=self.key.name,
            cause=cause,
            facts=WorkloadFacts(pods=len(self.pods), pending=len(self.waiting), **facts),
            because=tuple(because) or (nested.because if nested is not None else ()),
            also=known.also if known is not None and cause == "PodsRunning" else (),
            nested=nested,
            details=(*tables(Table("Pods", _COLUMNS, tuple(self._rows(nested)))), *_of(nested)),
        )

    def _rows(self, nested: Finding | None) -> Iterator[tuple[str, ...]]:
        shown = self.waiting[:_MAX_ROWS]
        for pod in shown:
            same = nested is not None and pod.metadata.name == nested.name
            yield pod.metadata.name, "Pending", nested.code if nested and same else "", ""
        for pod, finding in self.bound[: _MAX_ROWS - len(shown)]:
            state = finding.state or CAUSES["Pod"][finding.cause].state
            yield pod.metadata.name, state, finding.code, pod.spec.node_name
        more = len(self.waiting) + len(self.bound) - _MAX_ROWS
        if more > 0:
            yield f"and {more} more", "", "", ""


_COLUMNS: Final = ("pod", "state", "cause", "node")


def _of(nested: Finding | None) -> tuple[Table, ...]:
    return nested.details if nested is not None else ()


def _is_evicting(finding: Finding) -> bool:
    return CAUSES["Pod"][finding.cause].state == "Evicting" or finding.cause in _TO_BE_EVICTED
