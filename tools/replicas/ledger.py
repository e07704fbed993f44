"""All that happened to pods, claims and the lease, change by change, and what must never happen.

It sees every change once and in order, so a device that two claims hold for the length of one write
is seen. What should have become of each pod follows from its shape, the devices it got and the
rules there are.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from kills.fleet import Obj
from kills.ledger import Device, devices
from replicas.work import BIG_RULE, LEAVING, model_of, shape_of

MARK = "DisruptionTarget"
COUNT = "sully.dev/Evicted"
LEASE = "sully-controllers"


@dataclass(slots=True)
class PodStory:
    """What is known of one pod."""

    name: str
    node: str = ""
    running: bool = False
    marked: str = ""
    """When it was first marked as one that has to leave, as the mark says."""
    mark: str = ""
    """The mark it has now: one that stays without an end is taken away after two minutes."""
    going: bool = False
    gone: bool = False


@dataclass(slots=True)
class Ledger:
    """Who held what, who left how, who led when."""

    problems: list[str] = field(default_factory=list)
    pods: dict[str, PodStory] = field(default_factory=dict)  # by uid
    tainted: set[str] = field(default_factory=set)
    """Pools with a rule of their own."""
    big_rule: bool = False
    holder: str = ""
    led: list[tuple[str, datetime]] = field(default_factory=list)
    """Who got the lease when, as the lease says."""
    changes: int = 0
    changed_at: float = field(default_factory=time.monotonic)
    _held: dict[Device, str] = field(default_factory=dict)
    _claims: dict[str, frozenset[Device]] = field(default_factory=dict)  # by uid
    _own: set[str] = field(default_factory=set)
    """Claims that were made for one pod."""
    _pools: dict[str, set[str]] = field(default_factory=dict)  # of the devices a pod got, by uid

    def saw_lease(self, kind: str, lease: Obj) -> None:
        """Take one change of the controllers' lease."""
        if lease["metadata"]["name"] == LEASE:
            spec = {} if kind == "DELETED" else lease.get("spec") or {}
            before, self.holder = self.holder, spec.get("holderIdentity") or ""
            if self.holder not in ("", before):
                self.led.append((self.holder, datetime.fromisoformat(spec["acquireTime"])))

    def saw_claim(self, kind: str, claim: Obj) -> None:
        """Take one change of a claim."""
        self._note()
        uid = claim["metadata"]["uid"]
        before = self._claims.pop(uid, frozenset())
        self._own.discard(uid)
        now = frozenset() if kind == "DELETED" else devices(claim)
        if kind != "DELETED":
            self._claims[uid] = now
            if not claim["metadata"]["name"].startswith("shared-"):
                self._own.add(uid)
            for user in (claim.get("status") or {}).get("reservedFor") or ():
                self._pools.setdefault(user["uid"], set()).update(pool for _, pool, _ in now)
        for device in before - now:
            if self._held.get(device) == uid:
                del self._held[device]
        for device in now - before:
            other = self._held.setdefault(device, uid)
            if other != uid:
                self.problems.append(f"{'/'.join(device)} is held by {uid} and by {other}")

    def saw_pod(self, kind: str, pod: Obj) -> None:
        """Take one change of a pod."""
        self._note()
        metadata, status = pod["metadata"], pod.get("status") or {}
        story = self.pods.setdefault(metadata["uid"], PodStory(metadata["name"]))
        node = pod["spec"].get("nodeName", "")
        if story.node and node != story.node:
            self.problems.append(f"{story.name} was bound to {story.node} and to {node}")
        story.node = node
        story.running = status.get("phase") == "Running"
        before, story.mark = story.mark, _marked(status)
        if before and story.mark not in ("", before):
            self.problems.append(f"{story.name} was marked at {before} and at {story.mark}")
        story.marked = story.marked or story.mark
        # Only whether: a kubelet that confirms the end sets another time.
        story.going = story.going or "deletionTimestamp" in metadata
        story.gone = kind == "DELETED"
        if story.gone and not story.marked:
            self.problems.append(f"{story.name} is lost: it went without having been evicted")

    def _note(self) -> None:
        self.changes += 1
        self.changed_at = time.monotonic()

    def bound(self) -> int:
        """Return how many pods have their place."""
        return sum(bool(story.node) for story in self.pods.values())

    def gone(self) -> int:
        """Return how many pods have left."""
        return sum(story.gone for story in self.pods.values())

    def must_leave(self, uid: str) -> bool:
        """Say whether a pod has no business to be there any more."""
        return bool(self._reasons(uid))

    def leaving(self) -> dict[str, PodStory]:
        """Return the pods that must leave, by uid."""
        return {uid: story for uid, story in self.pods.items() if self.must_leave(uid)}

    def _reasons(self, uid: str) -> set[str]:
        """Return the rules that send a pod away."""
        if shape_of(self.pods[uid].name).tolerates == -1:
            return set()
        pools = self._pools.get(uid, set())
        big = {BIG_RULE} if self.big_rule and any(model_of(p) == LEAVING for p in pools) else set()
        return big | (pools & self.tainted)

    def unfinished(self) -> list[str]:
        """Return what still has to happen."""
        found = []
        for uid, story in self.pods.items():
            if self.must_leave(uid) and not story.gone:
                found.append(f"{story.name} on {story.node} must leave and is there")
            elif not self.must_leave(uid) and not story.running:
                found.append(f"{story.name} must stay and does not run")
        staying = sum(not self.must_leave(uid) for uid in self.pods)
        # Those that share a claim all leave, and each of the others has one with one device.
        if not found and not len(self._held) == len(self._own) == staying:
            held = f"{len(self._held)} devices are held, by {len(self._own)} claims"
            found.append(f"{held} of {staying} pods")
        return found

    def check_pods(self, made: set[str]) -> None:
        """Compare what clients were told was made with what was seen."""
        names = Counter(story.name for story in self.pods.values())
        for name in sorted(made - names.keys()):
            self.problems.append(f"{name} was acknowledged and never seen")
        for name, number in names.items():
            if number > 1:
                self.problems.append(f"{name} was there {number} times")
        for uid, story in self.pods.items():
            if (story.marked or story.going) and not self.must_leave(uid):
                self.problems.append(f"{story.name} on {story.node} was evicted for no reason")

    def check_records(self, records: list[Obj]) -> None:
        """Compare the lasting records with what was seen."""
        expected = self.leaving()
        recorded = Counter(record["spec"]["pod"]["uid"] for record in records)
        for uid in expected.keys() - recorded.keys():
            self.problems.append(f"no record tells that {expected[uid].name} was evicted")
        for uid in recorded.keys() - expected.keys():
            self.problems.append(f"a record tells of {uid}, which was not evicted")
        for uid, number in recorded.items():
            if number > 1:
                self.problems.append(f"{number} records tell of {uid}")

    def uncounted(self, rules: list[Obj]) -> list[str]:
        """Return what rules say wrongly of how many pods left because of them."""
        by_rule = Counter(reason for uid in self.leaving() for reason in self._reasons(uid))
        found = []
        for rule in rules:
            name = rule["metadata"]["name"]
            if (said := _counted(rule)) != by_rule[name]:
                found.append(f"rule {name} counts {said} pods, {by_rule[name]} were evicted")
        return found


def _marked(status: Obj) -> str:
    for each in status.get("conditions") or ():
        if each["type"] == MARK and each["status"] == "True":
            return str(each.get("lastTransitionTime") or "once")
    return ""


def _counted(rule: Obj) -> int:
    conditions = (rule.get("status") or {}).get("conditions") or ()
    said = {each["type"]: each.get("message", "") for each in conditions}
    return int(said.get(COUNT, "0 pods evicted.").split()[0])
