"""What all ledgers of a run share: pods and claims as they were seen, and their invariants.

`kills/ledger.py` and `replicas/ledger.py` use it; each decides which pods must be evicted. Problems
are returned as text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Obj = dict[str, Any]
Device = tuple[str, str, str]
DISRUPTION_TARGET = "DisruptionTarget"
COUNT = "sully.dev/Evicted"


@dataclass(slots=True)
class Holdings:
    """Which claim has which devices allocated.

    It gets every change, so a device that two claims have for the length of one write is seen.
    """

    held: dict[Device, str] = field(default_factory=dict)
    """The uid of the claim, by device."""
    claims: dict[str, frozenset[Device]] = field(default_factory=dict)
    """What a claim holds, by uid."""

    def saw(self, kind: str, claim: Obj) -> list[str]:
        """Take one change of a claim; return which of its devices another one has."""
        problems = []
        uid = claim["metadata"]["uid"]
        before = self.claims.pop(uid, frozenset())
        now = frozenset() if kind == "DELETED" else _devices(claim)
        if kind != "DELETED":
            self.claims[uid] = now
        for device in before - now:
            if self.held.get(device) == uid:
                del self.held[device]
        for device in now - before:
            other = self.held.setdefault(device, uid)
            if other != uid:
                problems.append(f"{'/'.join(device)} is held by {uid} and by {other}")
        return problems


def _devices(claim: Obj) -> frozenset[Device]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return frozenset(
        (result["driver"], result["pool"], result["device"])
        for result in results
        if not result.get("adminAccess")
    )


@dataclass(slots=True)
class PodHistory:
    """What is known of one pod."""

    name: str
    node: str = ""
    marked: str = ""
    """When it first got the condition DisruptionTarget."""
    terminating: bool = False
    deleted: bool = False

    def saw(self, kind: str, pod: Obj) -> list[str]:
        """Take one change of the pod; return what must never happen to any."""
        problems = []
        node = pod["spec"].get("nodeName", "")
        if self.node and node != self.node:
            problems.append(f"{self.name} was bound to {self.node} and to {node}")
        self.node = node
        self.marked = self.marked or disruption_time(pod)
        # Only whether: a kubelet that confirms the end sets another time.
        self.terminating = self.terminating or "deletionTimestamp" in pod["metadata"]
        self.deleted = kind == "DELETED"
        if self.deleted and not self.marked:
            problems.append(f"{self.name} was deleted without having been evicted")
        return problems


def disruption_time(pod: Obj) -> str:
    """Return since when a pod has the condition DisruptionTarget; empty if it has not."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == DISRUPTION_TARGET and condition["status"] == "True":
            return str(condition.get("lastTransitionTime") or "once")
    return ""


def record_problems(evicted: Mapping[str, PodHistory], records: Iterable[Obj]) -> Iterator[str]:
    """Yield differences between the records and the pods that were evicted, by uid."""
    recorded = Counter(record["spec"]["pod"]["uid"] for record in records)
    for uid in evicted.keys() - recorded.keys():
        yield f"there is no record of the eviction of {evicted[uid].name}"
    for uid in recorded.keys() - evicted.keys():
        yield f"there is a record of {uid}, which was not evicted"
    for uid, number in recorded.items():
        if number > 1:
            yield f"{number} records are about {uid}"


def count_problems(rules: Iterable[Obj], evicted: Counter[str]) -> Iterator[str]:
    """Yield rules whose count differs from how many pods they evicted, by name."""
    for rule in rules:
        name, counted = rule["metadata"]["name"], _counted(rule)
        if counted != evicted[name]:
            yield f"rule {name} counts {counted} pods, {evicted[name]} were evicted"


def _counted(rule: Obj) -> int:
    conditions = (rule.get("status") or {}).get("conditions") or ()
    messages = {entry["type"]: entry.get("message", "") for entry in conditions}
    return int(messages.get(COUNT, "0 pods evicted.").split()[0])
