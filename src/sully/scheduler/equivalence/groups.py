"""Unschedulable pods of one equivalence class: only the first in the queue gets attempts.

When a thousand equal pods are unschedulable, every device that is released would cause a thousand
attempts. The first pod of the queue represents all; when it is bound, or deleted, the next one is
activated. A bound pod reduces what is free for others, so those behind it would not fit either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

import msgspec

from sully.client.transport import Key
from sully.scheduler.equivalence.classes import EquivalenceClass
from sully.scheduler.queue import Rank


class _Group(msgspec.Struct):
    representative: tuple[Rank, Key]
    represented: list[tuple[Rank, Key]] = msgspec.field(default_factory=list)


class EquivalenceGroups:
    """Groups of equal pods, each with one pod that represents the others."""

    def __init__(self, activate: Callable[[Key], None]) -> None:
        self._activate = activate
        self._groups: dict[EquivalenceClass, _Group] = {}
        self._members: dict[Key, tuple[EquivalenceClass, Rank]] = {}
        """The group of each pod; a removed one stays in the heap of its group until popped."""

    def __bool__(self) -> bool:
        """Report whether there are groups."""
        return bool(self._groups)

    def representative(self, equivalence: EquivalenceClass) -> tuple[Rank, Key] | None:
        """Return the pod that represents a group, if there is one."""
        group = self._groups.get(equivalence)
        return group.representative if group is not None else None

    def join(self, equivalence: EquivalenceClass, rank: Rank, key: Key) -> Key | None:
        """Add an unschedulable pod to its group; return the pod that is represented."""
        group = self._groups.get(equivalence)
        if group is not None and self._is_member(equivalence, (rank, key)):
            return key if group.representative != (rank, key) else None
        self.remove(key)
        self._members[key] = equivalence, rank
        group = self._groups.get(equivalence)
        if group is None:
            self._groups[equivalence] = _Group((rank, key))
            return None
        represented = max(group.representative, (rank, key))
        group.representative = min(group.representative, (rank, key))
        heappush(group.represented, represented)
        return represented[1]

    def remove(self, key: Key) -> None:
        """Remove a pod; if it represented a group, the next pod of the group is activated."""
        equivalence, rank = self._members.pop(key, (b"", None))
        group = self._groups.get(equivalence)
        if group is None or group.representative != (rank, key):
            return
        while group.represented:
            group.representative = heappop(group.represented)
            if self._is_member(equivalence, group.representative):
                self._activate(group.representative[1])
                return
        del self._groups[equivalence]

    def represented(self) -> Iterator[tuple[Key, Key]]:
        """Yield each represented pod with the one that represents it."""
        for equivalence, group in self._groups.items():
            for represented in group.represented:
                if self._is_member(equivalence, represented):
                    yield represented[1], group.representative[1]

    def _is_member(self, equivalence: EquivalenceClass, member: tuple[Rank, Key]) -> bool:
        rank, key = member
        return self._members.get(key) == (equivalence, rank)
