"""Tries changes on a cluster: plan, apply, wait until it is quiet, compare.

Worlds are tried in threads, many at a time. A world is quiet when its pods have not changed for a
while, and its owners have the pods they want. That while is longer if the outcome is not the
planned one: the cluster may still be about to do what was planned. A Job may wait for minutes
before it does: then the outcome stays open.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Semaphore
from typing import Any

from e2e.raw import Raw
from e2e.watching import until
from kube.agreement.objects import RULES, cluster_objects, rule, rule_name, workload_objects
from kube.agreement.outcomes import Agreement, Outcome, PodState, observed, planned
from kube.agreement.pods import PodHistory
from kube.agreement.worlds import Change, Workload, World
from kube.process import Foreign

STORM = 3
"""So many evicted replacements for each pod of a workload are a storm, which does not end."""
_LOOK = 0.5
_PLANS_AT_A_TIME = 2


@dataclass(frozen=True, slots=True)
class Patience:
    """How many seconds without a change are quiet, and how long to wait for that at most."""

    agreed: float = 4.0
    differing: float = 14.0
    most: float = 150.0
    back_off: float = 100.0
    """The longest back-off of a Job that is waited for."""


@dataclass(frozen=True, slots=True)
class Start:
    """The pods of a world when a change is made."""

    pods: tuple[PodState, ...]

    @property
    def active(self) -> tuple[PodState, ...]:
        """Return those that run or wait."""
        return tuple(pod for pod in self.pods if pod.active)

    def since(self, pods: Iterable[PodState]) -> list[PodState]:
        """Return, of all pods there have been, those that were active and those that are new."""
        ended = {pod.uid for pod in self.pods if not pod.active}
        return [pod for pod in pods if pod.uid not in ended]

    def churned(self, pods: Iterable[PodState], workload: Workload) -> int:
        """Count the evicted replacements of a workload."""
        known = {pod.uid for pod in self.pods}
        new = (pod for pod in pods if pod.uid not in known and pod.workload == workload.name)
        return sum(pod.deleted for pod in new)


@dataclass(frozen=True, slots=True)
class Tried:
    """One change and what came of it."""

    world: World
    change: Change
    agreement: Agreement
    settled: bool
    """Whether the cluster became quiet; a storm does not."""
    evictions: int
    """How many pods were evicted, replacements included."""
    unfinished: bool = False
    """Whether the outcome was not awaited: a Job waits for too long."""

    @property
    def leaves_unrest(self) -> bool:
        """Report whether pods may continue changing, so that nothing else can be tried yet."""
        agreement = self.agreement
        return not self.settled or agreement.plan.churn or agreement.reality.churn


@dataclass(slots=True)
class Attempt:
    """A change that is being tried."""

    world: World
    change: Change
    start: Start
    expected: Outcome
    since: float
    pods: tuple[PodState, ...] = ()
    """All pods there have been up to now."""
    endless: bool = False
    """Whether the world did not become quiet in time."""
    unfinished: bool = False
    """Whether a Job waits for longer than the trial does."""

    @property
    def agreement(self) -> Agreement:
        """Compare the plan with what has happened up to now."""
        reality = observed(self.start.active, self.start.since(self.pods))
        return Agreement(self.expected, reality)

    @property
    def is_storm(self) -> bool:
        """Report whether replacements are evicted again and again.

        Only after a while: pods of other workloads may tolerate the taint for some time.
        """
        if time.monotonic() - self.since < self.world.patience + STORM:
            return False
        return any(
            self.start.churned(self.pods, workload) > STORM * workload.replicas
            for workload in self.world.workloads
        )

    @property
    def has_churn(self) -> bool:
        """Report whether replacements are evicted as well, as planned or in reality."""
        return self.agreement.plan.churn or self.agreement.reality.churn

    def result(self) -> Tried:
        """Return what came of it."""
        evictions = sum(pod.deleted for pod in self.start.since(self.pods))
        settled = not self.endless and not self.is_storm
        # What is wrong by now does not become right.
        open_ = self.unfinished and self.agreement.evicted and not self.agreement.reality.churn
        return Tried(self.world, self.change, self.agreement, settled, evictions, unfinished=open_)


@dataclass(slots=True)
class Trial:
    """A cluster on which changes are tried."""

    there: Foreign
    admin: Raw
    history: PodHistory
    nodes: list[str]
    folder: Path
    patience: Patience = field(default_factory=Patience)
    plan_flags: Sequence[str] = ()
    planning: Semaphore = field(default_factory=lambda: Semaphore(_PLANS_AT_A_TIME))

    def run(self, world: World) -> list[Tried]:
        """Try the changes of a world in turn, until it does not come to rest any more."""
        try:
            return list(self._run(world))
        finally:
            self._delete(world)

    def _run(self, world: World) -> Iterator[Tried]:
        self._create(world)
        self._wait(lambda: self._is_calm(world))
        gone: set[str] = set()
        for change in world.changes:
            if change.rule in gone:
                continue
            tried = self._try(world, change)
            yield tried
            if tried.leaves_unrest and not tried.unfinished:
                gone.add(change.rule)
                if not self._wait(lambda: self._is_calm(world)):
                    return
            elif tried.unfinished:
                return

    # -- one change ---------------------------------------------------------------------------

    def _try(self, world: World, change: Change) -> Tried:
        start, plan = self._predict(world, change)
        expected = planned(plan, world.name, start.active)
        attempt = Attempt(world, change, start, expected, since=self._apply(world, change))
        attempt.endless = not self._wait(lambda: self._is_over(attempt))
        if attempt.endless or attempt.is_storm or attempt.has_churn:
            self._delete_rule(attempt)
        return attempt.result()

    def _delete_rule(self, attempt: Attempt) -> None:
        path = f"{RULES}/{rule_name(attempt.world, attempt.change)}"
        self._call("DELETE", path, 200, 404)
        self.history.touch(attempt.world.name)

    def _predict(self, world: World, change: Change) -> tuple[Start, dict[str, Any]]:
        """Return a plan and the pods it is about."""
        while True:
            start = Start(self.history.pods(world.name))
            with self.planning:
                plan = self._plan(world, change)
            # Otherwise something happened meanwhile, and the plan may be about other pods.
            if self.history.pods(world.name) == start.pods:
                return start, plan

    def _plan(self, world: World, change: Change) -> dict[str, Any]:
        path = self.folder / f"{rule_name(world, change)}.json"
        path.write_text(json.dumps(rule(world, change, self.nodes)))
        delete = ("--delete",) if change.delete else ()
        done = self.there.sully("plan", "-f", str(path), "-o", "json", *delete, *self.plan_flags)
        if not done.stdout:
            raise RuntimeError(f"plan of {path}: exit code {done.returncode}: {done.stderr}")
        plan: dict[str, Any] = json.loads(done.stdout)
        return plan

    def _apply(self, world: World, change: Change) -> float:
        """Make a change, and return when it was made."""
        self.history.touch(world.name)
        if change.delete:
            self._call("DELETE", f"{RULES}/{rule_name(world, change)}", 200)
        else:
            self._call("POST", RULES, 201, body=rule(world, change, self.nodes))
        return time.monotonic()

    # -- waiting ------------------------------------------------------------------------------

    def _wait(self, holds: Callable[[], bool]) -> bool:
        """Wait until something holds, at most for some time; report whether it does."""
        until_ = time.monotonic() + self.patience.most
        while time.monotonic() < until_:
            self.history.wait(_LOOK)
            if holds():
                return True
        return False

    def _is_over(self, attempt: Attempt) -> bool:
        """Report whether nothing more will happen, or for longer than the trial lasts."""
        world = attempt.world
        attempt.pods = self.history.pods(world.name)
        if attempt.is_storm:
            return True
        quiet = self.history.quiet_seconds(world.name)
        if quiet < self.patience.agreed + world.patience:
            return False
        attempt.unfinished = self._longest_wait(attempt) > self.patience.back_off
        if attempt.unfinished:
            return True
        if time.monotonic() - attempt.since < attempt.expected.last + self.patience.agreed:
            return False
        if attempt.agreement.right and self._has_owners_satisfied(world):
            return True
        return quiet >= self._enough(world)

    def _enough(self, world: World) -> float:
        """Return for how long nothing has to happen, so that nothing more will."""
        enough = self.patience.differing + world.patience
        if self._has_owners_satisfied(world):
            return enough
        # Owners that wait, such as a Job between two attempts, are given more time.
        return max(2 * enough, self._back_off(world) + self.patience.differing)

    def _longest_wait(self, attempt: Attempt) -> float:
        """Return how long the longest wait is that is planned, or that a Job is in."""
        return max(attempt.expected.last, self._back_off(attempt.world))

    def _back_off(self, world: World) -> float:
        """Return for how long a Job of a world waits that lacks pods; 0 if there is none."""
        pods = self.history.pods(world.name)
        waits = [0.0]
        for job in world.workloads:
            own = [pod for pod in pods if pod.workload == job.name]
            lacks = sum(pod.active for pod in own) < job.replicas
            if job.kind == "Job" and lacks and not self._has_failed(world, job):
                failures = sum(not pod.active for pod in own)
                waits.append(min(600.0, 5.0 * 2**failures))
        return max(waits)

    def _is_calm(self, world: World) -> bool:
        """Report whether all pods of a world are there, and nothing happens."""
        quiet = self.history.quiet_seconds(world.name)
        if self._has_owners_satisfied(world):
            return quiet >= self.patience.agreed + world.patience
        return quiet >= self._enough(world)

    def _has_owners_satisfied(self, world: World) -> bool:
        pods = [pod for pod in self.history.pods(world.name) if pod.active]
        return all(
            sum(pod.workload == workload.name for pod in pods) >= workload.replicas
            or workload.kind == "Pod"
            or (workload.kind == "StatefulSet" and _waits(pods, workload))
            or (workload.kind == "Job" and self._has_failed(world, workload))
            for workload in world.workloads
        )

    def _has_failed(self, world: World, job: Workload) -> bool:
        path = f"/apis/batch/v1/namespaces/{world.name}/jobs/{job.name}"
        conditions = self._call("GET", path, 200)["status"].get("conditions") or ()
        return any(
            condition["type"] == "Failed" and condition["status"] == "True"
            for condition in conditions
        )

    # -- worlds -------------------------------------------------------------------------------

    def _create(self, world: World) -> None:
        namespace = f"/api/v1/namespaces/{world.name}"
        self._call("POST", "/api/v1/namespaces", 201, body={"metadata": {"name": world.name}})
        for path, body in cluster_objects(world, self.nodes):
            self._call("POST", path, 201, body=body)
        until(self.admin, f"{namespace}/serviceaccounts", lambda result: "default" in result)
        for path, body in workload_objects(world):
            self._call("POST", path, 201, body=body)
        self.history.touch(world.name)

    def _delete(self, world: World) -> None:
        for change in world.changes:
            self._call("DELETE", f"{RULES}/{rule_name(world, change)}", 200, 404)
        self._call("DELETE", f"/api/v1/namespaces/{world.name}", 200, 404)
        for path, body in cluster_objects(world, self.nodes):
            self._call("DELETE", f"{path}/{body['metadata']['name']}", 200, 404)

    def _call(self, verb: str, path: str, *codes: int, body: object = None) -> dict[str, Any]:
        answer = self.admin.request(verb, path, body)
        if answer.code not in codes:
            raise RuntimeError(f"{verb} {path}: {answer.code}: {answer.body.decode()}")
        document: dict[str, Any] = answer.json()
        return document


def _waits(pods: Iterable[PodState], workload: Workload) -> bool:
    """Report whether a pod is unschedulable; a StatefulSet creates no other before it runs."""
    return any(pod.workload == workload.name and not pod.node for pod in pods)
