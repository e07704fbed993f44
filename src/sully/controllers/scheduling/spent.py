"""Nodes that had nothing for a kind of pod: they are passed over until they gain something.

Taking room or devices helps nobody, so a node that refused goes on refusing until it gets something
back or changes. Without this, every pod of a queue asks the same full nodes, and nodes that never
had a device, before it comes to one that has. judging.py asks; the cluster and the ledger tell.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from sully.domain.allocation.catalogue import Catalogue
from sully.domain.devices.pools import PoolId

MANY: Final = 16
"""Refusals that are worth remembering; fewer are found out again at less cost."""
_MOST_QUESTIONS: Final = 64


class Spent:
    """Nodes by the questions that they cannot serve."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._nodes: dict[bytes, set[str]] = {}
        self._world: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        """Say whether anything is remembered."""
        return bool(self._nodes)

    def in_world(self, *versions: int) -> None:
        """Forget everything if what nodes are offered, or what classes mean, is different now."""
        if versions != self._world:
            self._world = versions
            self._nodes.clear()

    def on(self, question: bytes) -> AbstractSet[str]:
        """Return the nodes that need not be asked."""
        return self._nodes.get(question, frozenset())

    def add(self, question: bytes, nodes: AbstractSet[str]) -> None:
        """Remember nodes that refused."""
        if question not in self._nodes and len(self._nodes) >= _MOST_QUESTIONS:
            self._nodes.clear()
        self._nodes.setdefault(question, set()).update(nodes)

    def gained(self, node: str) -> None:
        """Ask a node again: it changed, or has more room."""
        for nodes in self._nodes.values():
            nodes.discard(node)

    def freed(self, pool: PoolId) -> None:
        """Ask the nodes again that a pool has devices for."""
        if self._nodes:
            for node in self._catalogue.viewers(pool):
                self.gained(node)
