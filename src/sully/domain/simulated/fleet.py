"""The machines of a simulated fleet: how many, which devices they have, what is wrong with them.

Everything follows from the number of a machine, so that another start with the same numbers wants
exactly the same objects. How they look on the wire is machines.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

DRIVER = "gpu.sully.dev"
"""The driver that publishes the devices, and the class that picks them."""
SIMULATED = "sully.dev/simulated"
"""The label of nodes that are ours, and of what belongs to them."""
PREFIX = "worker"
"""What names of nodes start with, unless another prefix is chosen."""
MOST_NODES = 10_000

_NAME = re.compile(r"(.+)-(\d{4,})")


def is_simulated(labels: Mapping[str, str]) -> bool:
    """Report whether an object belongs to a simulated node or cluster."""
    return labels.get(SIMULATED) == "true"


class Model(msgspec.Struct, frozen=True):
    """A kind of machine, called after its devices."""

    name: str
    architecture: str
    memory: str
    """Of one device."""
    cpu: int
    host_memory: str


MODELS = (
    Model("h100", "Hopper", "80Gi", 192, "2Ti"),
    Model("a100", "Ampere", "80Gi", 128, "1Ti"),
    Model("l4", "Ada", "24Gi", 64, "256Gi"),
)
"""Machines take turns, so a fleet of any size has some of each."""


class Fleet(msgspec.Struct, frozen=True):
    """A number of machines with the same number of devices each."""

    nodes: int
    devices: int
    faults: Mapping[tuple[int, int], Mapping[str, str]] = msgspec.field(default_factory=dict)
    """Taints that the driver puts on devices, by the numbers of machine and device."""
    driver: str = DRIVER
    prefix: str = PREFIX
    """What the names of the nodes start with; fleets of one cluster have different ones."""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Further labels of the nodes."""
    tainted: bool = False
    """Whether only pods that tolerate it run here, because the cluster has other nodes."""

    def name(self, number: int) -> str:
        """Return the name of a node."""
        return name_of(number, self.prefix)

    def number(self, name: str) -> int | None:
        """Return the number of a node, or None if it has no name of this fleet."""
        return number_of(name, self.prefix)

    def has(self, number: int) -> bool:
        """Report whether a machine belongs to the fleet."""
        return 0 <= number < self.nodes

    def taint(self, number: int, device: int) -> dict[str, Any] | None:
        """Return what is wrong with a device, or None."""
        taint = self.faults.get((number, device))
        return None if taint is None else dict(taint)


class PodDelays(msgspec.Struct, frozen=True):
    """How long pods take to start and to stop, in seconds."""

    start: float = 0.5
    stop: float = 1.0


def name_of(number: int, prefix: str = PREFIX) -> str:
    """Return what a machine is called; names sort as numbers do."""
    return f"{prefix}-{number:04}"


def number_of(name: str, prefix: str = PREFIX) -> int | None:
    """Return which node has a name, or None if it is not one of a simulated node."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    number = int(match[2])
    # Each machine has one name; worker-00001 is none of them.
    return number if number < MOST_NODES and name_of(number, prefix) == name else None


def model_of(number: int) -> Model:
    """Return what kind of machine it is."""
    return MODELS[number % len(MODELS)]


def address_of(number: int) -> str:
    """Return the address of a machine."""
    return f"10.64.{number // 250}.{number % 250 + 1}"


def pod_network(number: int) -> str:
    """Return what the addresses of a machine's pods begin with."""
    return f"10.{128 + number // 256}.{number % 256}."
