"""All that happened to pods, claims and the lease, change by change, and what must never happen.

It sees every change once and in order, so a device that two claims hold for the length of one write
is seen. Which pods must be evicted follows from its shape, the devices it got and the
existing rules.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

import ledgers
from kills.fleet import Obj
from ledgers import Holdings
from replicas.work import BIG_RULE, EVICTED, model_of, shape_of

LEASE = "sully-controllers"


@dataclass(slots=True)
class PodHistory(ledgers.PodHistory):
    """What was seen of one pod, and whether it runs."""

    running: bool = False
    mark: str = ""
    """Since when it currently has DisruptionTarget; a stale one is removed after two minutes."""

    def saw(self, kind: str, pod: Obj) -> list[str]:
        """Take one change of the pod; return problems."""
        problems = ledgers.PodHistory.saw(self, kind, pod)
        self.running = (pod.get("status") or {}).get("phase") == "Running"
        before, self.mark = self.mark, ledgers.disruption_time(pod)
        if before and self.mark not in ("", before):
            problems.append(f"{self.name} was marked at {before} and at {self.mark}")
        return problems


@dataclass(slots=True)
class Ledger:
    """Which claims held which devices, how pods were evicted, who led when."""

    problems: list[str] = field(default_factory=list)
    pods: dict[str, PodHistory] = field(default_factory=dict)  # by uid
    tainted: set[str] = field(default_factory=set)
    """Pools with a rule of their own."""
    big_rule: bool = False
    holder: str = ""
    led: list[tuple[str, datetime]] = field(default_factory=list)
    """Who got the lease when, as the lease records it."""
    changes: int = 0
    changed_at: float = field(default_factory=time.monotonic)
    _holdings: Holdings = field(default_factory=Holdings)
    _own: set[str] = field(default_factory=set)
    """Claims that were generated for one pod."""
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
        history = self.pods.setdefault(metadata["uid"], PodHistory(metadata["name"]))
        self.problems += history.saw(kind, pod)

    def _note(self) -> None:
        self.changes += 1
        self.changed_at = time.monotonic()

    def bound(self) -> int:
        """Return how many pods are bound."""
        return sum(bool(history.node) for history in self.pods.values())

    def deleted_count(self) -> int:
        """Return how many pods were deleted."""
        return sum(history.deleted for history in self.pods.values())

    def is_evicted(self, uid: str) -> bool:
        """Report whether a pod must be evicted."""
        return bool(self._reasons(uid))

    def must_be_evicted(self) -> dict[str, PodHistory]:
        """Return the pods that must be evicted, by uid."""
        return {uid: history for uid, history in self.pods.items() if self.is_evicted(uid)}

    def _reasons(self, uid: str) -> set[str]:
        """Return the rules that evict a pod."""
        if shape_of(self.pods[uid].name).tolerates == -1:
            return set()
        pools = self._pools.get(uid, set())
        big = {BIG_RULE} if self.big_rule and any(model_of(p) == EVICTED for p in pools) else set()
        return big | (pools & self.tainted)

    def unfinished(self) -> list[str]:
        """Return what still has to happen."""
        texts = []
        for uid, history in self.pods.items():
            if self.is_evicted(uid) and not history.deleted:
                texts.append(f"{history.name} on {history.node} must be evicted and still exists")
            elif not self.is_evicted(uid) and not history.running:
                texts.append(f"{history.name} must not be evicted and does not run")
        kept = sum(not self.is_evicted(uid) for uid in self.pods)
        # Pods with a shared claim are all evicted; each of the others has a claim with one device.
        held = len(self._holdings.held)
        if not texts and not held == len(self._own) == kept:
            texts.append(f"{held} devices are held, by {len(self._own)} claims of {kept} pods")
        return texts

    def check_pods(self, made: set[str]) -> None:
        """Compare what clients created with what was seen."""
        names = Counter(history.name for history in self.pods.values())
        for name in sorted(made - names.keys()):
            self.problems.append(f"{name} was acknowledged and never seen")
        for name, number in names.items():
            if number > 1:
                self.problems.append(f"{name} existed {number} times")
        for uid, history in self.pods.items():
            if (history.marked or history.terminating) and not self.is_evicted(uid):
                self.problems.append(f"{history.name} on {history.node} was evicted for no reason")

    def check_records(self, records: list[Obj]) -> None:
        """Compare the records with what was seen."""
        self.problems += ledgers.record_problems(self.must_be_evicted(), records)

    def uncounted(self, rules: list[Obj]) -> list[str]:
        """Return rules whose count differs from how many pods they evicted."""
        by_rule = Counter(reason for uid in self.must_be_evicted() for reason in self._reasons(uid))
        return list(ledgers.count_problems(rules, by_rule))
