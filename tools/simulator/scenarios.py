"""Short histories that random operations rarely make: changes that meet in the same seconds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from simulator import fleet

CONTROLLERS = ("alpha", "beta")
Step = tuple[float, str, dict[str, Any]]
"""Seconds after the start of the scenario, an operation and its arguments."""
Name = Callable[[str], str]
"""Returns a new name with a prefix."""


def scenario(rng: random.Random, name: Name, *, limited: bool, silent: bool) -> list[Step]:
    """Return one of them; `limited`: evictions per minute are; `silent`: watches may be."""
    makers = [_withdrawn_rule, _withdrawn_rule, _exhausted_budget]
    makers += [_suspended_leader, _short_suspensions]
    if limited:
        makers += [_takeover] * 4
    if silent:
        makers += [_missed_deletion] * 4
    return rng.choice(makers)(rng, name)


def _withdrawn_rule(rng: random.Random, name: Name) -> list[Step]:
    """A rule is deleted or paused while it evicts."""
    rule = _rule(name, "NoExecute")
    later = rng.choice((0.5, 2.0, 8.0)) * rng.random()
    end: Step = (later, "delete rule", {"name": rule["name"]})
    if rng.random() < 0.3:
        end = (later, "pause rule", {"name": rule["name"], "paused": True})
    return [(0.0, "create rule", rule), end]


def _exhausted_budget(rng: random.Random, name: Name) -> list[Step]:
    """A rule has to evict more pods than their budget allows."""
    replicas = rng.randint(3, 5)
    workload = {"name": name("app"), "kind": "plain", "replicas": replicas, "budget": replicas - 1}
    rule = _rule(name, "NoExecuteWithPodDisruptionBudget")
    return [
        (0.0, "create workload", workload),
        (40.0, "create rule", rule),
        (80.0 + 60.0 * rng.random(), "delete rule", {"name": rule["name"]}),
    ]


def _takeover(rng: random.Random, name: Name) -> list[Step]:
    """Controllers are killed in the minute of many evictions."""
    workload = {"name": name("app"), "kind": "plain", "replicas": 6, "budget": None}
    rule = _rule(name, "NoExecute")
    at = 31.0 + 6.0 * rng.random()
    kills: list[Step] = [
        (at, "kill", {"machine": machine, "steps": rng.randint(1, 100), "down": 0.5})
        for machine in CONTROLLERS
    ]
    return [
        (0.0, "create workload", workload),
        (30.0, "create rule", rule),
        *kills,
        (120.0 + 60.0 * rng.random(), "delete rule", {"name": rule["name"]}),
    ]


def _suspended_leader(rng: random.Random, name: Name) -> list[Step]:
    """A controller stops in the middle of its work, and continues when another leads."""
    rule = _rule(name, "NoExecute")
    suspension = {
        "machine": rng.choice(CONTROLLERS),
        "seconds": round(rng.uniform(40.0, 100.0), 3),
    }
    return [
        (0.0, "create rule", rule),
        (rng.choice((0.1, 1.0, 4.0)) * rng.random(), "suspend", suspension),
        (20.0 + 40.0 * rng.random(), "delete rule", {"name": rule["name"]}),
    ]


def _short_suspensions(rng: random.Random, name: Name) -> list[Step]:
    """Each controller stops for less than the renew deadline: the leader continues as such."""
    steps: list[Step] = []
    for start, machine in zip((0.0, 40.0), CONTROLLERS, strict=True):
        rule = _rule(name, "NoExecute")
        seconds = round(rng.uniform(14.0, 18.0), 3)
        steps += [
            (start, "create rule", rule),
            (start + 2.0 * rng.random(), "suspend", {"machine": machine, "seconds": seconds}),
            (start + 10.0, "delete rule", {"name": rule["name"]}),
        ]
    return steps


def _missed_deletion(rng: random.Random, name: Name) -> list[Step]:
    """A rule is deleted while no watch delivers, and forgotten before they are opened again."""
    rule = _rule(name, "NoSchedule")
    silence: list[Step] = [
        (20.0, "silence watches", {"machine": machine, "share": 1.0}) for machine in CONTROLLERS
    ]
    deletion: Step = (22.0 + 10.0 * rng.random(), "delete rule", {"name": rule["name"]})
    return [(0.0, "create rule", rule), *silence, deletion]


def _rule(name: Name, effect: str) -> dict[str, Any]:
    return {
        "name": name("rule"),
        "selector": {"driver": fleet.DRIVER},
        "key": fleet.KEYS[0],
        "effect": effect,
        "rate": 0,
        "paused": False,
    }
