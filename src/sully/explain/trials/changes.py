"""What may be changed to get a pod scheduled, and the scheduler that changes are tried with.

search.py looks for the smallest change; what_if.py makes the trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

from sully.domain.scheduling.diagnosis import BlockingTaint, Diagnosis
from sully.domain.scheduling.objects import NodeTaint

RequestName = tuple[str, str]
"""A claim, as `namespace/name`, and a request of it, as `name` or `name/alternative`."""


class NodeObstacles(msgspec.Struct, frozen=True, kw_only=True):
    """What prevents scheduling of a pod to a node, devices aside, and can be changed."""

    node: str
    cordoned: bool = False
    taints: tuple[NodeTaint, ...] = ()
    """Those that the pod does not tolerate."""
    unselected: bool = False
    """The pod's own node selector or affinity does not match."""
    full: bool = False
    """It is large enough, but other pods use it."""

    @property
    def size(self) -> int:
        return self.cordoned + len(self.taints) + self.unselected


@dataclass(frozen=True, slots=True)
class Change:
    tolerate: tuple[BlockingTaint, ...] = ()
    """Device taints that requests tolerate."""
    deallocate: tuple[str, ...] = ()
    """Claims that release their devices, which is when their pods are gone."""
    remove: tuple[str, ...] = ()
    obstacles: NodeObstacles | None = None
    """What is cleared away on one node."""
    requests: tuple[RequestName, ...] | None = None
    """The requests that tolerate; None for all."""

    @property
    def size(self) -> int:
        cleared = self.obstacles.size if self.obstacles is not None else 0
        return len(self.tolerate) + len(self.deallocate) + len(self.remove) + cleared


class Solution(NamedTuple):
    """A change that works, and the node that the pod would be scheduled to."""

    change: Change
    node: str
    removable: bool = True
    """To remove the taints that are tolerated would do as well."""


class LargestNode(NamedTuple):
    """The node with the most devices for a request, were they all free and untainted."""

    devices: int
    node: str


class Excess(NamedTuple):
    """A resource of which no node has as much as a pod requests."""

    resource: str
    requested: str
    most: str
    """What the largest node has; empty if none has any."""


class WhatIf(Protocol):
    """A scheduler to try changes with, for one pod."""

    def node_for(self, change: Change, only: str = "") -> str:
        """Return the node that the pod would get, of all or only of one; empty if none."""

    def diagnosis_after(self, change: Change, only: str = "") -> Diagnosis | None:
        """Return why there are no devices then; None if the pod gets a node."""

    def nodes(self) -> Sequence[str]:
        """Return nodes that fit the pod, devices aside; of many, the emptiest."""

    def obstacles(self) -> Sequence[NodeObstacles]:
        """Return what could be cleared away on nodes that do not fit; of many, the least."""

    def exceeding(self) -> Sequence[Excess]:
        """Return what the pod requests more of than any node has."""

    def reveals(self, taint: BlockingTaint, node: str) -> bool:
        """Report whether another taint like it would take effect if it were removed."""

    def claims_near(self, node: str) -> Sequence[str]:
        """Return the claims with devices that a node can use."""

    def pods_on(self, node: str) -> Sequence[str]:
        """Return pods that may be removed from a node, in the order in which that helps most."""

    def largest(self) -> Mapping[RequestName, LargestNode]:
        """Return for each request the node with the most devices that could satisfy it."""
