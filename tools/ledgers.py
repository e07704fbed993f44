"""What all ledgers of a run share: pods and claims as they were seen, and what must hold of both.

`kills/ledger.py` and `replicas/ledger.py` build on it; each knows for itself which pods have to
leave. What is wrong comes back in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Obj = dict[str, Any]
Device = tuple[str, str, str]
MARK = "DisruptionTarget"
COUNT = "sully.dev/Evicted"


@dataclass(slots=True)
class Holdings:
    """Which claim has which devices for itself.

    It is told of every change, so that a device is seen which two have for the length of one write.
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
        (each["driver"], each["pool"], each["device"])
        for each in results
        if not each.get("adminAccess")
    )


@dataclass(slots=True)
class PodStory:
    """What is known of one pod."""

    name: str
    node: str = ""
    marked: str = ""
    """When it was first marked as one that has to leave, as the mark says."""
    going: bool = False
    gone: bool = False

    def saw(self, kind: str, pod: Obj) -> list[str]:
        """Take one change of the pod; return what must never happen to any."""
        problems = []
        node = pod["spec"].get("nodeName", "")
        if self.node and node != self.node:
            problems.append(f"{self.name} was bound to {self.node} and to {node}")
        self.node = node
        self.marked = self.marked or mark_of(pod)
        # Only whether: a kubelet that confirms the end sets another time.
        self.going = self.going or "deletionTimestamp" in pod["metadata"]
        self.gone = kind == "DELETED"
        if self.gone and not self.marked:
            problems.append(f"{self.name} is lost: it went without having been evicted")
        return problems


def mark_of(pod: Obj) -> str:
    """Return since when a pod is marked as one that has to leave; nothing if it is not."""
    for each in (pod.get("status") or {}).get("conditions") or ():
        if each["type"] == MARK and each["status"] == "True":
            return str(each.get("lastTransitionTime") or "once")
    return ""


def unlike_records(left: Mapping[str, PodStory], records: Iterable[Obj]) -> Iterator[str]:
    """Yield what the lasting records tell wrongly of the pods that had to leave, by uid."""
    recorded = Counter(record["spec"]["pod"]["uid"] for record in records)
    for uid in left.keys() - recorded.keys():
        yield f"no record tells that {left[uid].name} was evicted"
    for uid in recorded.keys() - left.keys():
        yield f"a record tells of {uid}, which was not evicted"
    for uid, number in recorded.items():
        if number > 1:
            yield f"{number} records tell of {uid}"


def miscounted(rules: Iterable[Obj], left: Counter[str]) -> Iterator[str]:
    """Yield what rules say wrongly of how many pods left because of them, by the rule's name."""
    for rule in rules:
        name, said = rule["metadata"]["name"], _counted(rule)
        if said != left[name]:
            yield f"rule {name} counts {said} pods, {left[name]} were evicted"


def _counted(rule: Obj) -> int:
    conditions = (rule.get("status") or {}).get("conditions") or ()
    said = {each["type"]: each.get("message", "") for each in conditions}
    return int(said.get(COUNT, "0 pods evicted.").split()[0])
