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

import ledgers
from kills.fleet import Obj
from ledgers import Holdings
from replicas.work import BIG_RULE, LEAVING, model_of, shape_of

LEASE = "sully-controllers"


@dataclass(slots=True)
class PodStory(ledgers.PodStory):
    """What is known of one pod, and whether it runs."""

    running: bool = False
    mark: str = ""
    """The mark it has now: one that stays without an end is taken away after two minutes."""

    def saw(self, kind: str, pod: Obj) -> list[str]:
        """Take one change of the pod; return what must never happen to any."""
        problems = ledgers.PodStory.saw(self, kind, pod)
        self.running = (pod.get("status") or {}).get("phase") == "Running"
        before, self.mark = self.mark, ledgers.mark_of(pod)
        if before and self.mark not in ("", before):
            problems.append(f"{self.name} was marked at {before} and at {self.mark}")
        return problems


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
    _holdings: Holdings = field(default_factory=Holdings)
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
        self.problems += self._holdings.saw(kind, claim)
        uid = claim["metadata"]["uid"]
        self._own.discard(uid)
        if kind == "DELETED":
            return
        if not claim["metadata"]["name"].startswith("shared-"):
            self._own.add(uid)
        pools = {pool for _, pool, _ in self._holdings.claims[uid]}
        for user in (claim.get("status") or {}).get("reservedFor") or ():
            self._pools.setdefault(user["uid"], set()).update(pools)

    def saw_pod(self, kind: str, pod: Obj) -> None:
        """Take one change of a pod."""
        self._note()
        metadata = pod["metadata"]
        story = self.pods.setdefault(metadata["uid"], PodStory(metadata["name"]))
        self.problems += story.saw(kind, pod)

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
        """Report whether a pod has no business to be there any more."""
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
        held = len(self._holdings.held)
        if not found and not held == len(self._own) == staying:
            found.append(f"{held} devices are held, by {len(self._own)} claims of {staying} pods")
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
        self.problems += ledgers.unlike_records(self.leaving(), records)

    def uncounted(self, rules: list[Obj]) -> list[str]:
        """Return what rules say wrongly of how many pods left because of them."""
        by_rule = Counter(reason for uid in self.leaving() for reason in self._reasons(uid))
        return list(ledgers.miscounted(rules, by_rule))
