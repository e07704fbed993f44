"""Random histories: what users, drivers and fate do, as data that can be repeated and shortened.

An operation never depends on the state of the cluster, so that a history with some of them left out
is a history too.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from simulator import fleet
from simulator.scenarios import CONTROLLERS, scenario

MACHINES = (*CONTROLLERS, "nodes", "admin")
SHORT = 0.5
"""Histories below this scale have small workloads: many of them find more than a few large ones."""
DRIVER_EFFECTS = ("NoExecute", "NoSchedule", "NoExecute")
RULE_EFFECTS = (
    "NoExecute",
    "NoExecute",
    "NoExecute",
    "NoSchedule",
    "NoExecuteWithPodDisruptionBudget",
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that happens at a time."""

    at: float
    name: str
    args: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the operation as a line of a history."""
        args = " ".join(f"{name}={value}" for name, value in self.args.items())
        return f"{self.at:9.3f}  {self.name} {args}".rstrip()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a seed decides before the first step."""

    seed: int
    nodes: int
    devices: int
    duration: float
    delays: tuple[float, ...]
    reorder: float
    history: float
    """Seconds of events that the store keeps."""
    drift: dict[str, float]
    max_per_minute: int | None
    silent: bool
    """Whether watches may fall silent: then caches may lag for as long as evictions trust them."""
    operations: tuple[Operation, ...]


def plan(seed: int, *, scale: float = 1.0) -> Plan:
    """Return the history of a seed; a larger scale is a longer one."""
    rng = random.Random(seed)
    nodes, devices = rng.randint(2, 3), rng.randint(3, 8)
    short = scale < SHORT
    duration = rng.choice((300.0, 600.0, 1200.0)) * scale
    silent = rng.random() < 0.3
    limit = rng.choice((None, None, 4))
    generator = _Generator(
        rng, (nodes, devices), duration, silent=silent, limited=limit is not None, short=short
    )
    return Plan(
        seed=seed,
        nodes=nodes,
        devices=devices,
        duration=duration,
        delays=rng.choice(((0.001,), (0.0005, 0.005, 0.05), (0.01, 0.2, 0.8))),
        reorder=rng.choice((0.0, 0.2, 0.6)),
        history=rng.choice((30.0, 300.0)),
        drift={machine: 1.0 + rng.uniform(-0.002, 0.002) for machine in (*MACHINES, "server")},
        max_per_minute=limit,
        silent=silent,
        operations=tuple(generator.operations(round(rng.randint(15, 35) * scale))),
    )


class _Generator:
    def __init__(
        self,
        rng: random.Random,
        size: tuple[int, int],
        duration: float,
        *,
        silent: bool,
        limited: bool,
        short: bool,
    ) -> None:
        self._rng = rng
        self._nodes, self._devices = size
        self._duration = duration
        self._faults = rng.random() < 0.85
        self._silent = silent
        self._limited = limited
        self._workloads = 2 if short else 3
        self._max_replicas = 2 if short else max(2, self._nodes * self._devices // 3)
        self._count = 0

    def operations(self, number: int) -> list[Operation]:
        """Return operations in the order of their times."""
        found = [
            Operation(self._rng.uniform(0.0, 5.0), *self._workload())
            for _ in range(self._workloads)
        ]
        for _ in range(number):
            at = round(self._rng.uniform(5.0, self._duration), 3)
            fault = self._faults and self._rng.random() < 0.35
            found.append(Operation(at, *(self._fault() if fault else self._change())))
        for _ in range(self._rng.randint(1, self._workloads - 1) if self._faults else 0):
            found += self._scenario()
        return sorted(found, key=lambda operation: operation.at)

    def _scenario(self) -> list[Operation]:
        start = self._rng.uniform(20.0, self._duration)
        steps = scenario(self._rng, self._name, limited=self._limited, silent=self._silent)
        return [Operation(round(start + after, 3), name, args) for after, name, args in steps]

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}-{self._count}"

    def _earlier(self, prefix: str) -> str:
        return f"{prefix}-{self._rng.randint(1, max(1, self._count))}"

    def _change(self) -> tuple[str, dict[str, Any]]:
        rng = self._rng
        makers = (
            (5, self._rule), (4, self._workload), (2, self._pod), (4, self._remove_rule),
            (3, self._pause), (3, self._flip), (1, self._delete_pod), (1, self._scale),
            (1, self._policy),
        )  # fmt: skip
        maker = rng.choices([make for _, make in makers], [weight for weight, _ in makers])[0]
        return maker()

    def _rule(self) -> tuple[str, dict[str, Any]]:
        rng = self._rng
        selector: dict[str, Any] = {"driver": fleet.DRIVER}
        if rng.random() < 0.85:
            selector["pool"] = fleet.node_name(rng.randrange(self._nodes))
        if rng.random() < 0.4:
            selector["device"] = f"gpu-{rng.randrange(self._devices)}"
        return "create rule", {
            "name": self._name("rule"),
            "selector": selector,
            "key": rng.choice(fleet.KEYS),
            "effect": rng.choice(RULE_EFFECTS),
            "rate": rng.choice((0, 0, 1)),
            "paused": rng.random() < 0.2,
        }

    def _remove_rule(self) -> tuple[str, dict[str, Any]]:
        return "delete rule", {"name": self._earlier("rule")}

    def _pause(self) -> tuple[str, dict[str, Any]]:
        return "pause rule", {"name": self._earlier("rule"), "paused": self._rng.random() < 0.6}

    def _workload(self) -> tuple[str, dict[str, Any]]:
        rng = self._rng
        kind = rng.choice(("plain", "plain", *fleet.CLAIM_KINDS))
        replicas = rng.randint(1, self._max_replicas)
        budget = rng.choice((None, None, max(0, replicas - 1)))
        return "create workload", {
            "name": self._name("app"),
            "kind": kind,
            "replicas": replicas,
            "budget": budget,
        }

    def _pod(self) -> tuple[str, dict[str, Any]]:
        kind = self._rng.choice(fleet.CLAIM_KINDS)
        return "create pod", {"name": self._name("pod"), "kind": kind}

    def _delete_pod(self) -> tuple[str, dict[str, Any]]:
        return "delete pod", {"name": self._earlier("pod")}

    def _scale(self) -> tuple[str, dict[str, Any]]:
        return "scale", {"name": self._earlier("app"), "replicas": self._rng.randint(0, 4)}

    def _flip(self) -> tuple[str, dict[str, Any]]:
        rng = self._rng
        tainted = [index for index in range(self._devices) if rng.random() < 0.25]
        return "flip health", {
            "node": rng.randrange(self._nodes),
            "tainted": tainted if rng.random() < 0.6 else [],
            "effect": rng.choice(DRIVER_EFFECTS),
        }

    def _policy(self) -> tuple[str, dict[str, Any]]:
        return "create policy", {"name": self._name("policy")}

    def _fault(self) -> tuple[str, dict[str, Any]]:
        rng = self._rng
        machine, leader = rng.choice(MACHINES), rng.choice(CONTROLLERS)
        pause = round(rng.choice((0.5, 5.0, 40.0)) * rng.random(), 3)
        seconds = round(rng.choice((2.0, 20.0, 90.0, 300.0)) * rng.random(), 3)
        jump = rng.choice((-30.0, -1.0, 1.0, 20.0))
        faults: list[tuple[str, dict[str, Any]]] = [
            ("crash server", {"down": pause}),
            ("power cut", {"writes": rng.randint(1, 60), "down": pause}),
            ("io errors", {"count": rng.randint(1, 6)}),
            ("kill", {"machine": "nodes", "steps": rng.randint(1, 3000), "down": pause}),
            ("kill", {"machine": leader, "steps": rng.randint(1, 3000), "down": pause}),
            ("kill", {"machine": leader, "steps": rng.randint(1, 300), "down": pause}),
            ("cut", {"machine": machine, "seconds": seconds}),
            ("lose messages", {"share": rng.choice((0.02, 0.1, 0.3)), "seconds": seconds}),
            ("break watches", {"machine": machine, "share": rng.choice((0.3, 1.0))}),
            ("step clock", {"machine": rng.choice((leader, "server")), "seconds": jump}),
            ("suspend", {"machine": leader, "seconds": seconds}),
        ]
        if self._silent:
            faults.append(("silence watches", {"machine": leader, "share": 0.5}))
        return rng.choice(faults)
