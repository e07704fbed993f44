"""What must hold after every transaction, whatever failed before it.

Each check gets the state of the store at that moment, and who wrote. Decisions of a controller are
older than its writes, by the delays of the network and by what its caches may lag. So an eviction
is in order if it was at any moment within `slack` seconds.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulator import fleet
from simulator.clock import SimulatedClock
from simulator.judgement import BUDGETED, CLAIMS, RULES, SLICES, Cause, causes, claims_of
from simulator.knowledge import EVICTOR, PODS, is_eviction
from simulator.loop import Process, SimulatedLoop
from simulator.storage import Actor
from simulator.truth import Truth
from sully.client.calls import Call
from sully.server.inprocess import Reply
from sully.store.base import Event

Obj = dict[str, Any]
LEASES = "coordination.k8s.io/leases"
RECORDS = "sully.dev/evictionrecords"
BUDGETS = "policy/poddisruptionbudgets"
BURST = 10
MINUTE = 60.0
STALE_SLACK = 100.0
"""For how long evictions may trust caches that get no events."""
STATUS_SECONDS = 200.0
"""How long the status of a budget may lag: the controller may have to wait for the lease."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """One eviction."""

    at: float
    name: str
    uid: str
    sources: frozenset[str]


class Invariants:
    """The checks of one run."""

    def __init__(
        self,
        truth: Truth,
        loop: SimulatedLoop,
        report: Callable[[str, str], None],
        *,
        slack: float,
        max_per_minute: int | None,
    ) -> None:
        self.slack = slack
        self.evictions: dict[str, Eviction] = {}
        """By uid of the pod."""
        self.accepted: set[str] = set()
        """Pods whose eviction a server accepted, also if another client had deleted them before."""
        self.last_change = 0.0
        self._truth = truth
        self._loop = loop
        self._report = report
        self._max_per_minute = max_per_minute
        self._changes: deque[tuple[float, str, tuple[str, str], Obj | None]] = deque()
        """What pods, claims, rules and slices were before each change, the latest last."""
        self._unbudgeted: list[tuple[float, dict[str, str]]] = []
        """When pods were deleted without asking a budget, and their labels."""
        truth.listeners.append(self._changed)

    def write_started(self, process: Process, user: str, _: Call) -> None:
        """Check that only the holder of the lease starts to write."""
        lease = self._truth.objects[LEASES].get(("kube-system", "sully-controllers"))
        holder = ((lease or {}).get("spec") or {}).get("holderIdentity", "")
        if holder and holder != process.name:
            self._report("leases", f"{process.name} writes as {user} while {holder} leads")

    def answered(self, _: int, user: str, call: Call, __: Reply) -> None:
        """Note evictions that a server accepted."""
        if user == EVICTOR and is_eviction(call):
            pod = self._truth.objects[PODS].get((call.ref.namespace, call.ref.name))
            if pod is not None and "deletionTimestamp" in pod["metadata"]:
                self.accepted.add(pod["metadata"]["uid"])

    def _changed(self, event: Event, obj: Obj, before: Obj | None, actor: Actor) -> None:
        key = event.record.key
        self.last_change = self._loop.time()
        if key.resource == PODS:
            self._pod_changed(event, obj, before, actor)
        elif key.resource == CLAIMS and event.kind != "DELETED":
            self._claim_changed(obj)
        if key.resource in (PODS, CLAIMS, RULES, SLICES):
            self._changes.append(
                (self._loop.time(), key.resource, (key.namespace, key.name), before)
            )
            while self._changes and self._changes[0][0] < self._loop.time() - 200.0:
                self._changes.popleft()

    # -- allocation -------------------------------------------------------------------------------

    def _claim_changed(self, claim: Obj) -> None:
        results = _results(claim)
        if not results:
            return
        name = claim["metadata"]["name"]
        used: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        memory: dict[tuple[str, str, str], int] = defaultdict(int)
        slots: dict[str, int] = defaultdict(int)
        for (_, other), stored in self._truth.objects[CLAIMS].items():
            for result in _results(stored):
                device = (result["driver"], result["pool"], result["device"])
                if device[0] == fleet.SHARED:
                    memory[device] += _gibibytes((result.get("consumedCapacity") or {})["memory"])
                    continue
                used[device].append(other)
                if device[0] == fleet.PARTS:
                    slots[device[1]] += fleet.PART_SLOTS[int(device[2].rpartition("-")[2])]
        for result in results:
            device = (result["driver"], result["pool"], result["device"])
            shown = "/".join(device)
            if len(used[device]) > 1:
                self._report("allocation", f"{shown} is allocated to {used[device]}")
            if memory[device] > fleet.SHARED_MEMORY:
                self._report("allocation", f"{shown}: {memory[device]} Gi in use, also by {name}")
            if slots[device[1]] > fleet.SLOTS:
                self._report("allocation", f"{shown}: {slots[device[1]]} slots in use")

    # -- pods -------------------------------------------------------------------------------------

    def _pod_changed(self, event: Event, pod: Obj, before: Obj | None, actor: Actor) -> None:
        if before is not None and before["spec"].get("nodeName", "") != pod["spec"].get(
            "nodeName", ""
        ):
            self._bound(pod, before)
        ends = event.kind == "DELETED" or "deletionTimestamp" in pod["metadata"]
        ended = before is not None and "deletionTimestamp" in before["metadata"]
        if not ends or ended:
            return
        if actor.verb != "create":
            self._unbudgeted.append((self._loop.time(), pod["metadata"].get("labels") or {}))
        if actor.user == EVICTOR and actor.process is not None:
            self._evicted(pod, actor)

    def _bound(self, pod: Obj, before: Obj) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if before["spec"].get("nodeName"):
            self._report("binding", f"{name} was bound twice")
        claims = list(claims_of(self._truth.objects, pod))
        for claim in claims:
            users = [user["uid"] for user in (claim.get("status") or {}).get("reservedFor") or ()]
            if not _results(claim) or uid not in users:
                self._report("binding", f"{name} was bound without {claim['metadata']['name']}")
        if len(claims) < len(pod["spec"].get("resourceClaims") or ()):
            self._report("binding", f"{name} was bound without its claims")

    def _evicted(self, pod: Obj, actor: Actor) -> None:
        assert actor.process is not None, "evictions come from clients"
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        due = self._due_lately(pod, actor)
        budgeted = actor.verb == "create"
        if not due:
            known = list(causes(self._truth.objects, pod))
            self._report("eviction", f"{name} was evicted without a due taint: {known}")
        elif not budgeted and all(cause.effect == BUDGETED for cause in due):
            self._report("budgets", f"{name} was deleted without asking its budgets: {due}")
        if budgeted:
            self._check_budget(pod)
        now = self._loop.time()
        eviction = Eviction(now, name, uid, frozenset(cause.source for cause in due))
        self.evictions[uid] = eviction
        assert isinstance(actor.process.clock, SimulatedClock), "every client has one"
        if now - actor.process.clock.stepped_at > MINUTE:
            # Rates follow the time of day: a clock that jumps makes a minute shorter or longer.
            self._check_rates(due, now)

    def _due_lately(self, pod: Obj, actor: Actor) -> list[Cause]:
        """Return the causes of the latest moment within the slack at which there were some."""
        assert actor.process is not None, "evictions come from clients"
        clock = actor.process.clock
        assert isinstance(clock, SimulatedClock), "every client has one"
        now = clock.now()
        slack = self.slack
        if self._loop.time() - actor.process.resumed_at < STALE_SLACK:
            # What arrived while it was suspended is read later.
            slack = STALE_SLACK
        if self._loop.time() - clock.stepped_at < slack:
            # It was another time when this was decided.
            return [cause for cause in causes(self._truth.objects, pod) if not cause.paused] or [
                Cause("unknown", "NoExecute", now)
            ]
        view = {
            resource: dict(self._truth.objects[resource]) for resource in (CLAIMS, RULES, SLICES)
        }
        oldest = self._loop.time() - slack
        for at, resource, key, before in [
            (float("inf"), "", ("", ""), None),
            *reversed(self._changes),
        ]:
            if resource in view:
                if before is None:
                    view[resource].pop(key, None)
                else:
                    view[resource][key] = before
            due = [c for c in causes(view, pod) if c.due <= now and not c.paused]
            if due:
                return due
            if at < oldest:
                break
        return []

    def _check_budget(self, pod: Obj) -> None:
        labels = pod["metadata"].get("labels") or {}
        for (namespace, _), budget in self._truth.objects[BUDGETS].items():
            expected = budget["spec"]["selector"]["matchLabels"]
            if namespace != pod["metadata"]["namespace"] or expected.items() - labels.items():
                continue
            if self._deleted_lately(expected):
                continue
            healthy = sum(
                _is_ready(other)
                for (_, _), other in self._truth.objects[PODS].items()
                if not expected.items() - (other["metadata"].get("labels") or {}).items()
                and "deletionTimestamp" not in other["metadata"]
            )
            if _is_ready(pod) and healthy < budget["spec"]["minAvailable"]:
                self._report(
                    "budgets",
                    f"{pod['metadata']['name']} was evicted: {healthy} healthy pods are left,"
                    f" {budget['spec']['minAvailable']} must be",
                )

    def _deleted_lately(self, expected: dict[str, str]) -> bool:
        """Report whether pods were deleted that no budget was asked for: its status lags then."""
        since = self._loop.time() - STATUS_SECONDS
        return any(at > since and not expected.items() - of.items() for at, of in self._unbudgeted)

    def _check_rates(self, due: list[Cause], now: float) -> None:
        limit = self._max_per_minute
        if limit is not None:
            recent = [e for e in self.evictions.values() if e.at > now - MINUTE + self.slack]
            if len(recent) > limit:
                self._report("rates", f"{len(recent)} evictions in a minute, limit {limit}")
        if len({cause.source for cause in due}) != 1 or not due[0].rate:
            return
        source, rate = due[0].source, due[0].rate
        times = sorted(e.at for e in self.evictions.values() if e.sources == {source})
        for index, since in enumerate(times):
            allowed = BURST + rate * (now - since + self.slack) + 1
            if len(times) - index > allowed:
                self._report("rates", f"{len(times) - index} evictions of {source} since {since}")
                return


def _results(claim: Obj) -> list[Obj]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def _gibibytes(quantity: str) -> int:
    return int(quantity.removesuffix("Gi"))


def _is_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
