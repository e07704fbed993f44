"""Whether simulated nodes may be added to a cluster: what else is there, and what is in the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sully.domain.simulated.fleet import Fleet, is_simulated


class Neighbors(msgspec.Struct, frozen=True):
    """The nodes of a cluster that are not simulated."""

    names: tuple[str, ...]
    conflicts: tuple[str, ...]
    """Those with a name that a simulated node would have."""


def neighbors(fleet: Fleet, nodes: Iterable[tuple[str, Mapping[str, str]]]) -> Neighbors:
    """Return the nodes that are not simulated, of nodes by name and labels."""
    names = tuple(sorted(name for name, labels in nodes if not is_simulated(labels)))
    return Neighbors(names, tuple(name for name in names if fleet.number(name) is not None))
