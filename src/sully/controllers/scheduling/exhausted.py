"""Questions that every node refused: only nodes that gained something since are worth asking.

`spent.py` knows the nodes that a pod need not ask on its way to a place. Where there is no place,
what has changed since is shorter than what has not: gains go into one log, and each question knows
how far it has read. judging.py asks; the cluster and the ledger tell.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from sully.controllers.scheduling.questions import Question
from sully.domain.allocation.catalogue import Catalogue
from sully.domain.devices.pools import PoolId
from sully.domain.scheduling.decisions import Concern

_MOST_QUESTIONS: Final = 1024
_MOST_GAINS: Final = 200_000
"""Gains in the log; a cluster that gained so much since is best asked as a whole."""


@dataclass(slots=True)
class Since:
    """What happened since all nodes refused a question."""

    concern: Concern
    """What their refusals were about."""
    read: int
    nodes: set[str] = field(default_factory=set)
    """Nodes that may have something again."""


class Exhausted:
    """Questions without an answer."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[Question, Since] = {}
        self._gains: list[str] = []
        self._world: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        """Say whether anything is remembered."""
        return bool(self._known)

    def in_world(self, *versions: int) -> None:
        """Forget everything if what nodes are offered, or what classes mean, is different now."""
        if versions != self._world:
            self._world = versions
            self._forget()

    def add(self, question: Question, concern: Concern) -> None:
        """Remember that all nodes refused."""
        if question not in self._known and len(self._known) >= _MOST_QUESTIONS:
            self._forget()
        self._known[question] = Since(concern, len(self._gains))

    def since(self, question: Question) -> Since | None:
        """Return what happened since all nodes refused; None if they never did."""
        found = self._known.get(question)
        if found is not None and found.read < len(self._gains):
            found.nodes.update(self._gains[found.read :])
            found.read = len(self._gains)
        return found

    def refused(self, question: Question, nodes: AbstractSet[str], concern: Concern) -> None:
        """Note that nodes that gained something refused again."""
        found = self._known.get(question)
        if found is not None:
            found.nodes -= nodes
            found.concern |= concern

    def gained(self, node: str) -> None:
        """Ask a node again: it changed, or has more room."""
        if self._known:
            self._gains.append(node)
            if len(self._gains) > _MOST_GAINS:
                self._forget()

    def freed(self, pool: PoolId) -> None:
        """Ask the nodes again that a pool has devices for."""
        if self._known:
            for node in self._catalogue.viewers(pool):
                self.gained(node)

    def _forget(self) -> None:
        self._known.clear()
        self._gains.clear()
