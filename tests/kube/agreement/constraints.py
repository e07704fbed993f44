"""Constraints between the pods of a workload, which decide where replacements go."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from kube.agreement.worlds import Workload, World

KINDS: Final = ("apart", "spread", "near", "port", "")
_HOST: Final = "kubernetes.io/hostname"
_FIRST_PORT: Final = 20000


def constrained(worlds: Sequence[World], seed: int) -> list[World]:
    """Return worlds whose workloads have constraints at random.

    Their pods tolerate nothing and share no claim: constraints are what differs.
    """
    rng = random.Random(seed)
    return [replace(world, workloads=tuple(_workloads(world, rng))) for world in worlds]


def _workloads(world: World, rng: random.Random) -> Iterator[Workload]:
    for workload in world.workloads:
        constraint = rng.choice(KINDS)
        yield replace(workload, tolerations="none", shared=False, constraint=constraint)


def pod_fields(constraint: str, name: str, labels: dict[str, str]) -> dict[str, Any]:
    """Return the fields of the pods of a workload."""
    selector = {"matchLabels": labels}
    term = {"topologyKey": _HOST, "labelSelector": selector}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    match constraint:
        case "apart":
            return {"affinity": {"podAntiAffinity": required}}
        case "near":
            return {"affinity": {"podAffinity": required}}
        case "spread":
            hard = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
            return {"topologySpreadConstraints": [{**term, **hard}]}
        case "port":
            # Worlds share the nodes, so each workload has a port of its own: c07-b.
            world, _, letter = name[1:].partition("-")
            number = _FIRST_PORT + 10 * int(world) + "abcd".index(letter)
            ports = [{"containerPort": 80, "hostPort": number}]
            return {"containers": [{"name": "c", "image": "example.com/x:1", "ports": ports}]}
        case _:
            return {}
