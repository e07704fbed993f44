"""What is tried to find out what would help a pod: changes, and a scheduler to try them with.

nearest.py searches with these, remedies.py says what came of it; the trials themselves are made in
the room above (`explaining/tries.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sully.domain.scheduling.diagnosis import Diagnosis, Taint
from sully.domain.scheduling.objects import NodeTaint

Where = tuple[str, str]
"""A claim, as `namespace/name`, and a request of it, as `name` or `name/alternative`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What keeps a node from taking a pod, devices aside, and can be changed."""

    node: str
    cordoned: bool = False
    taints: tuple[NodeTaint, ...] = ()
    """Those that the pod does not tolerate."""
    unchosen: bool = False
    """The pod's own selector or affinity is for other nodes."""
    full: bool = False
    """It has enough of everything, but others use it."""

    @property
    def size(self) -> int:
        """Return how many things must change."""
        return self.cordoned + len(self.taints) + self.unchosen


@dataclass(frozen=True, slots=True)
class Trial:
    """A change that may help."""

    tolerate: tuple[Taint, ...] = ()
    """Taints of devices that are tolerated."""
    free: tuple[str, ...] = ()
    """Claims that give their devices back, which is when their users leave."""
    leave: tuple[str, ...] = ()
    """Pods that leave."""
    opening: Opening | None = None
    where: tuple[Where, ...] | None = None
    """The requests that tolerate; all, if it does not say."""

    @property
    def size(self) -> int:
        """Return how many things are changed."""
        opened = self.opening.size if self.opening is not None else 0
        return len(self.tolerate) + len(self.free) + len(self.leave) + opened


class Help(NamedTuple):
    """A trial that worked."""

    trial: Trial
    node: str
    liftable: bool = True
    """To lift what is tolerated would do as well."""


class Largest(NamedTuple):
    """The node with the most devices of a kind, were they all free and untainted."""

    devices: int
    node: str


class TooMuch(NamedTuple):
    """Something that a pod asks for and that no node has so much of."""

    resource: str
    asked: str
    most: str
    """What the largest node has; empty if none has any."""


class Tries(Protocol):
    """A scheduler to try things with."""

    def node_for(self, trial: Trial, only: str = "") -> str:
        """Return the node that the pod would get, of all or only of one; nothing if none."""

    def account_after(self, trial: Trial, only: str = "") -> Diagnosis | None:
        """Return what speaks against devices then; nothing if the pod gets a node."""

    def nodes(self) -> Sequence[str]:
        """Return nodes that take the pod, devices aside; of many, the emptiest."""

    def openings(self) -> Sequence[Opening]:
        """Return nodes that would take the pod if little changed; of many, the nearest."""

    def too_much(self) -> Sequence[TooMuch]:
        """Return what the pod asks for that no node has so much of."""

    def uncovers(self, taint: Taint, node: str) -> bool:
        """Say whether another taint like it would come to light if it were lifted."""

    def holders_near(self, node: str) -> Sequence[str]:
        """Return the claims with devices that a node can use."""

    def pods_on(self, node: str) -> Sequence[str]:
        """Return who may leave a node, in the order in which that helps most."""

    def largest(self) -> Mapping[Where, Largest]:
        """Return for each request the node with the most devices that could serve it."""
