"""Small worlds with devices, and changes of their taints, at random; the same seed, the same ones.

Worlds share the nodes of a cluster, but each has a driver and a namespace of its own: a change in
one cannot be felt in another, so that many can be tried at a time.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KEY, VALUE = "example.com/fault", "broken"
SECONDS = 3
"""How long tolerations last that end."""

_EXISTS = {"key": KEY, "operator": "Exists"}
_EQUAL = {"key": KEY, "operator": "Equal"}
_EXECUTE, _SCHEDULE = {"effect": "NoExecute"}, {"effect": "NoSchedule"}
_ENDS = {"tolerationSeconds": SECONDS}
TOLERATIONS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "none": (),
    "NoExecute": (_EXISTS | _EXECUTE,),
    "NoExecute for 3s": (_EXISTS | _EXECUTE | _ENDS,),
    "NoExecute for 3s, NoSchedule": (_EXISTS | _EXECUTE | _ENDS, _EXISTS | _SCHEDULE),
    "NoExecute for 0s": (_EXISTS | _EXECUTE | {"tolerationSeconds": 0},),
    "NoSchedule": (_EXISTS | _SCHEDULE,),
    "any effect": (_EXISTS,),
    "any effect for 3s": (_EXISTS | _ENDS,),
    "every taint": ({"operator": "Exists"},),
    "same value": (_EQUAL | _EXECUTE | {"value": VALUE},),
    "another value": (_EQUAL | _EXECUTE | {"value": "slow"},),
    "NoExecute for 3s and indefinitely": (_EXISTS | _EXECUTE | _ENDS, _EXISTS | _EXECUTE),
}
"""The tolerations of requests, by their text."""
ALL_KINDS = ("Deployment", "StatefulSet", "Job", "DaemonSet", "Pod")
_WEIGHTS = {"Deployment": 5, "StatefulSet": 3, "Job": 3, "DaemonSet": 1, "Pod": 1}
NODES = 3
"""How many nodes all worlds share; a DaemonSet has a pod on each."""
PLAIN, PARALLEL, FAILED, IGNORED, INDEXED = "", "parallel", "failed only", "ignored", "per index"
_SHAPES = {
    "StatefulSet": (PLAIN, PLAIN, PARALLEL),
    "Job": (PLAIN, PLAIN, PLAIN, FAILED, IGNORED, INDEXED),
}
"""How workloads of a kind differ in what they do about evicted pods."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Equal pods with a device each, or all with the same one."""

    name: str
    kind: str
    replicas: int
    tolerations: str = "none"
    shared: bool = False
    """Whether its pods share a claim."""
    backoff_limit: int = 6
    """Of a Job."""
    shape: str = PLAIN
    constraint: str = ""
    """What its pods require of each other, by the names of constraints.py."""

    @property
    def devices(self) -> int:
        """Return how many devices its pods need."""
        return 1 if self.shared else self.replicas

    def __str__(self) -> str:
        """Return a few words about it."""
        count = f" x{self.replicas}" if self.kind != "Pod" else ""
        limit = f" backoffLimit {self.backoff_limit}" if self.kind == "Job" else ""
        claim = " shared claim" if self.shared else ""
        shape = f" {self.shape}" if self.shape else ""
        more = f" {self.constraint}" if self.constraint else ""
        return f"{self.kind}{count}{limit}{shape}{claim}{more} ({self.tolerations})"


@dataclass(frozen=True, slots=True)
class Change:
    """A rule that is created or deleted."""

    rule: str
    effect: str = "NoExecute"
    pool: int | None = None
    device: int | None = None
    delete: bool = False

    def __str__(self) -> str:
        """Return what changes."""
        if self.delete:
            return f"delete {self.rule} ({self.effect})"
        where = "driver" if self.pool is None else "pool" if self.device is None else "device"
        return f"{self.rule} {self.effect} on a {where}"


@dataclass(frozen=True, slots=True)
class World:
    """A namespace and a driver."""

    name: str
    pools: tuple[int, ...]
    """The number of devices on each node."""
    workloads: tuple[Workload, ...]
    changes: tuple[Change, ...]
    """What is done one after the other."""

    @property
    def driver(self) -> str:
        """Return the driver, which is also the name of the class."""
        return f"{self.name}.example.com"

    @property
    def patience(self) -> int:
        """Return how long the tolerations last that end."""
        lasting = (TOLERATIONS[workload.tolerations] for workload in self.workloads)
        ends = any("tolerationSeconds" in toleration for item in lasting for toleration in item)
        return SECONDS if ends else 0


def generate(
    seed: int,
    count: int,
    *,
    changes: int = 3,
    kinds: Sequence[str] = ALL_KINDS,
    prefix: str = "w",
) -> list[World]:
    """Return worlds with that many changes each.

    Those of another test need another prefix: Kubernetes deletes namespaces in its own time.
    """
    rng = random.Random(seed)
    return [_world(rng, f"{prefix}{number:02}", changes, kinds) for number in range(count)]


def _world(rng: random.Random, name: str, changes: int, kinds: Sequence[str]) -> World:
    pools = tuple(rng.randint(1, 3) for _ in range(rng.randint(1, 3)))
    capacity = sum(pools)
    # Half of the worlds are full, and some of them have one pod too many.
    expected = max(1, rng.choice((capacity // 2 + 1, capacity - 1, capacity, capacity + 1)))
    workloads: list[Workload] = []
    while expected > 0 and len(workloads) < 4:
        made = _workload(rng, f"{name}-{'abcd'[len(workloads)]}", expected, kinds)
        workloads.append(made)
        expected -= made.devices
    return World(name, pools, tuple(workloads), tuple(_changes(rng, pools, changes)))


def _workload(rng: random.Random, name: str, most: int, kinds: Sequence[str]) -> Workload:
    kind = rng.choices(kinds, [_WEIGHTS[kind] for kind in kinds])[0]
    shared = kind == "Deployment" and rng.random() < 0.3
    replicas = 1 if kind == "Pod" else rng.randint(1, 3 if shared else min(3, most))
    replicas = NODES if kind == "DaemonSet" else replicas
    # Most pods of this world tolerate nothing; what tolerations do is what differs.
    shapes = list(TOLERATIONS)
    shape = "none" if rng.random() < 0.3 else rng.choice(shapes[1:])
    limit = rng.choice((0, 1, 6))
    manner = rng.choice(_SHAPES[kind]) if kind in _SHAPES else PLAIN
    return Workload(name, kind, replicas, shape, shared, limit, manner)


def _changes(rng: random.Random, pools: Sequence[int], count: int) -> list[Change]:
    made: list[Change] = []
    standing: list[Change] = []
    for number in range(count):
        if standing and rng.random() < 0.4:
            gone = standing.pop(rng.randrange(len(standing)))
            made.append(Change(gone.rule, gone.effect, gone.pool, gone.device, delete=True))
            continue
        pool = rng.choice((None, rng.randrange(len(pools)), rng.randrange(len(pools))))
        device = rng.randrange(pools[pool]) if pool is not None and rng.random() < 0.4 else None
        effect = "NoSchedule" if rng.random() < 0.15 else "NoExecute"
        standing.append(Change(f"rule-{number}", effect, pool, device))
        made.append(standing[-1])
    return made
