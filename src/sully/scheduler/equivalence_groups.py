"""Unschedulable pods of one equivalence class: only the first in the queue gets attempts.

When a thousand equal pods are unschedulable, every device that is released would cause a thousand
attempts. The first pod of the queue represents all; when it is bound, or deleted, the next one is
activated. A pod that is bound leaves less for others, so those behind it would not fit either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from sully.client.transport import Key
from sully.scheduler.equivalence import EquivalenceClass
from sully.scheduler.queue import Rank


@dataclass(slots=True)
class _Group:
    leader: tuple[Rank, Key]
    followers: list[tuple[Rank, Key]] = field(default_factory=list)


class EquivalenceGroups:
    """Groups of equal pods, each with a leader that represents its followers."""

    def __init__(self, activate: Callable[[Key], None]) -> None:
        self._activate = activate
        self._groups: dict[EquivalenceClass, _Group] = {}
        self._members: dict[Key, tuple[EquivalenceClass, Rank]] = {}
        """Who is in which group; who left is only removed here."""

    def __bool__(self) -> bool:
        """Report whether there are groups."""
        return bool(self._groups)

    def leader(self, equivalence: EquivalenceClass) -> tuple[Rank, Key] | None:
        """Return the leader of a group, if there is one."""
        group = self._groups.get(equivalence)
        return group.leader if group is not None else None

    def join(self, equivalence: EquivalenceClass, rank: Rank, key: Key) -> Key | None:
        """Add an unschedulable pod to its group; return the pod that becomes a follower."""
        group = self._groups.get(equivalence)
        if group is not None and self._is_member(equivalence, (rank, key)):
            return key if group.leader != (rank, key) else None
        self.leave(key)
        self._members[key] = equivalence, rank
        group = self._groups.get(equivalence)
        if group is None:
            self._groups[equivalence] = _Group((rank, key))
            return None
        follower = max(group.leader, (rank, key))
        group.leader = min(group.leader, (rank, key))
        heappush(group.followers, follower)
        return follower[1]

    def leave(self, key: Key) -> None:
        """Remove a pod; if it led a group, the next pod of the group is activated."""
        equivalence, rank = self._members.pop(key, (b"", None))
        group = self._groups.get(equivalence)
        if group is None or group.leader != (rank, key):
            return
        while group.followers:
            group.leader = heappop(group.followers)
            if self._is_member(equivalence, group.leader):
                self._activate(group.leader[1])
                return
        del self._groups[equivalence]

    def followers(self) -> Iterator[tuple[Key, Key]]:
        """Yield each follower with its leader."""
        for equivalence, group in self._groups.items():
            for follower in group.followers:
                if self._is_member(equivalence, follower):
                    yield follower[1], group.leader[1]

    def _is_member(self, equivalence: EquivalenceClass, member: tuple[Rank, Key]) -> bool:
        rank, key = member
        return self._members.get(key) == (equivalence, rank)
