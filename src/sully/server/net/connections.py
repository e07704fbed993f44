"""The open connections by user, and which ones are closed when there are too many.

A connection is unauthenticated until a certificate or a token identifies its user. File descriptors
are few, and anyone who reaches the port can take one. When they run out, unauthenticated
connections are closed first, oldest first, then idle connections of users, then those of nodes and
other system users. Connections of system:masters are never closed, so that an administrator can
always connect. The rules are here and do no I/O; connection.py closes, listen.py accepts.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from enum import IntEnum
from typing import Protocol

import msgspec

from sully.server.authentication.groups import MASTERS
from sully.server.authentication.service_accounts import split_account
from sully.server.requests import User

_NODES = "system:nodes"
_SYSTEM = "system:"
_SYSTEM_NAMESPACE = "kube-system"


class Rank(IntEnum):
    """The rank of a connection; lower ranks are closed first."""

    UNKNOWN = 0
    USER = 1
    SYSTEM = 2
    MASTER = 3


class ConnectionLimits(msgspec.Struct, frozen=True):
    """The most connections; zero means no limit of this kind."""

    total: int = 0
    per_address: int = 1000  # unauthenticated
    per_user: int = 2000

    def for_rank(self, rank: Rank) -> int:
        """Return how many a rank may have: together with lower ones, except those not known."""
        if not self.total:
            return 0
        reserve = max(1, min(self.total // 10, 1000))
        return {
            Rank.UNKNOWN: max(1, self.total // 2),
            Rank.USER: max(1, self.total - 2 * reserve),
            Rank.SYSTEM: max(1, self.total - reserve),
            Rank.MASTER: 0,
        }[rank]


def rank_of(user: User) -> Rank:
    """Return the rank of an authenticated user."""
    if MASTERS in user.groups:
        return Rank.MASTER
    account = split_account(user.name)
    if account is not None:
        return Rank.SYSTEM if account[0] == _SYSTEM_NAMESPACE else Rank.USER
    system = _NODES in user.groups or user.name.startswith(_SYSTEM)
    return Rank.SYSTEM if system else Rank.USER


def owner_of(user: User) -> str:
    """Return under which name the connections of a user count.

    A user who may create service accounts can create many: those of a namespace count together.
    """
    account = split_account(user.name)
    return user.name if account is None else f"{_SYSTEM}serviceaccount:{account[0]}"


def network_of(address: str) -> str:
    """Return what counts as one address: in IPv6 a /64 network, which one host has."""
    if ":" not in address:
        return address
    try:
        parsed = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((parsed, 64), strict=False).network_address)


class Connection(Protocol):
    """An open connection, and how to close it."""

    address: str
    deadline: float
    idle_since: float | None  # None: a request is in progress

    def abort(self) -> None:
        """Close it immediately."""

    def expire(self) -> None:
        """End it, since its deadline has passed."""


class _Owner:
    """The owner of a connection."""

    __slots__ = ("owner", "rank")

    def __init__(self, rank: Rank, owner: str) -> None:
        self.rank = rank
        self.owner = owner


class Connections:
    """All open connections of a server."""

    def __init__(self, limits: ConnectionLimits | None = None) -> None:
        self._limits = limits or ConnectionLimits()
        # The dictionaries keep the order of arrival: the first connection is the oldest.
        self._entries: dict[Connection, _Owner] = {}
        self._ranks: dict[Rank, dict[Connection, None]] = {rank: {} for rank in Rank}
        self._owners: dict[tuple[bool, str], dict[Connection, None]] = {}
        self.shed = 0
        """How many were closed in favor of others."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._entries))

    def count(self, rank: Rank) -> int:
        """Return how many connections a rank has."""
        return len(self._ranks[rank])

    def add(self, connection: Connection) -> bool:
        """Add a new, unauthenticated connection; False if there are too many."""
        network = network_of(connection.address)
        limits, unknown = self._limits, self._ranks[Rank.UNKNOWN]
        same = self._owners.get((False, network), {})
        if 0 < limits.per_address <= len(same):
            self._close(next(iter(same)))
        if 0 < limits.for_rank(Rank.UNKNOWN) <= len(unknown):
            self._close(next(iter(unknown)))
        if 0 < limits.total <= len(self._entries) and not self.close_one():
            return False
        self._insert(connection, _Owner(Rank.UNKNOWN, network))
        return True

    def identify(self, connection: Connection, user: User) -> bool:
        """Set the user of a connection; False if that user, or its rank, has too many."""
        entry = self._entries.get(connection)
        if entry is None or entry.rank is not Rank.UNKNOWN:
            return entry is not None
        rank, owner = rank_of(user), owner_of(user)
        if rank is not Rank.MASTER and not self._fits(rank, owner):
            return False
        self.remove(connection)
        self._insert(connection, _Owner(rank, owner))
        return True

    def remove(self, connection: Connection) -> None:
        """Forget a connection; a second call does nothing."""
        entry = self._entries.pop(connection, None)
        if entry is None:
            return
        del self._ranks[entry.rank][connection]
        key = (entry.rank is not Rank.UNKNOWN, entry.owner)
        same = self._owners[key]
        del same[connection]
        if not same:
            del self._owners[key]

    def close_one(self) -> bool:
        """Close the least important connection; False if there is none."""
        for connection in self._ranks[Rank.UNKNOWN]:
            self._close(connection)
            return True
        return any(self._close_idle(self._ranks[rank]) for rank in (Rank.USER, Rank.SYSTEM))

    def expired(self, now: float) -> list[Connection]:
        """Return the connections whose deadline has passed."""
        return [connection for connection in self._entries if connection.deadline <= now]

    def _fits(self, rank: Rank, owner: str) -> bool:
        """Report whether one more fits; closes an idle one of the same owner or rank if needed."""
        limits = self._limits
        same = self._owners.get((True, owner), {})
        if 0 < limits.per_user <= len(same) and not self._close_idle(same):
            return False
        ranks = [lower for lower in (Rank.USER, Rank.SYSTEM) if lower <= rank]
        if not 0 < limits.for_rank(rank) <= sum(map(self.count, ranks)):
            return True
        return any(self._close_idle(self._ranks[lower]) for lower in ranks)

    def _close_idle(self, candidates: dict[Connection, None]) -> bool:
        idle = [
            (connection.idle_since, connection)
            for connection in candidates
            if connection.idle_since is not None
        ]
        if not idle:
            return False
        self._close(min(idle, key=lambda pair: pair[0])[1])
        return True

    def _close(self, connection: Connection) -> None:
        self.remove(connection)
        self.shed += 1
        connection.abort()

    def _insert(self, connection: Connection, entry: _Owner) -> None:
        self._entries[connection] = entry
        self._ranks[entry.rank][connection] = None
        key = (entry.rank is not Rank.UNKNOWN, entry.owner)
        self._owners.setdefault(key, {})[connection] = None
