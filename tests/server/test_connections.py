"""Who gets a connection when there are few, and who has to give one up."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from sully.server.authentication.groups import MASTERS
from sully.server.net.connections import (
    ConnectionLimits,
    Connections,
    Rank,
    network_of,
    owner_of,
    rank_of,
)
from sully.server.requests import User

ADMIN = User("admin", (MASTERS,))
NODE = User("system:node:one", ("system:nodes",))
ALICE = User("alice")
ROBOT = User("system:serviceaccount:team:robot")


@dataclass(eq=False)
class Held:
    """A connection that notes that it was cut off."""

    address: str = "10.0.0.1"
    deadline: float = float("inf")
    idle_since: float | None = 0.0
    cut: bool = False
    closed: list[str] = field(default_factory=list)

    def abort(self) -> None:
        self.cut = True

    def expire(self) -> None:
        self.closed.append("expired")


USERS = {
    "a member of system:masters": (ADMIN, Rank.MASTER, "admin"),
    "a node": (NODE, Rank.SYSTEM, "system:node:one"),
    "a component": (User("system:kube-scheduler"), Rank.SYSTEM, "system:kube-scheduler"),
    "an account of the system": (
        User("system:serviceaccount:kube-system:x"),
        Rank.SYSTEM,
        "system:serviceaccount:kube-system",
    ),
    "an account of a tenant": (ROBOT, Rank.USER, "system:serviceaccount:team"),
    "a user": (ALICE, Rank.USER, "alice"),
}


@pytest.mark.parametrize(("user", "rank", "owner"), USERS.values(), ids=USERS.keys())
def test_rank_and_owner(user: User, rank: Rank, owner: str) -> None:
    assert (rank_of(user), owner_of(user)) == (rank, owner)


NETWORKS = {
    "10.0.0.1": "10.0.0.1",
    "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::",
    "fe80::1%eth0": "fe80::",
    "::ffff:10.0.0.1": "10.0.0.1",
    "no:address": "no:address",
}


@pytest.mark.parametrize(("address", "network"), NETWORKS.items())
def test_what_counts_as_one_address(address: str, network: str) -> None:
    assert network_of(address) == network


def opened(connections: Connections, user: User | None = None, **more: object) -> Held:
    """Open a connection, which must be accepted."""
    held = Held(**more)  # type: ignore[arg-type]  # its own fields
    assert connections.add(held)
    if user is not None:
        assert connections.identify(held, user)
    return held


def test_an_address_gives_up_its_own_oldest_connection() -> None:
    connections = Connections(ConnectionLimits(per_address=2))
    other = opened(connections, address="10.0.0.2")
    known = opened(connections, ALICE)
    first, second, third = (opened(connections) for _ in range(3))

    assert [item.cut for item in (other, known, first, second, third)] == [
        False,
        False,
        True,
        False,
        False,
    ]


def test_those_who_are_not_known_have_half() -> None:
    connections = Connections(ConnectionLimits(total=10))
    held = [opened(connections, address=f"10.0.0.{number}") for number in range(7)]

    assert [item.cut for item in held] == [True] * 2 + [False] * 5


def test_a_user_gives_up_the_connection_that_is_idle_longest() -> None:
    connections = Connections(ConnectionLimits(per_user=3))
    other = opened(connections, ALICE)
    busy = opened(connections, ROBOT, idle_since=None)
    later = opened(connections, ROBOT, idle_since=20.0)
    sooner = opened(connections, ROBOT, idle_since=10.0)

    opened(connections, ROBOT, idle_since=30.0)

    assert [item.cut for item in (other, busy, later, sooner)] == [False, False, False, True]


def test_a_user_whose_connections_are_all_busy_gets_no_more() -> None:
    connections = Connections(ConnectionLimits(per_user=2))
    busy = [opened(connections, ALICE, idle_since=None) for _ in range(2)]
    refused = Held()
    assert connections.add(refused)

    assert not connections.identify(refused, ALICE)
    assert not any(item.cut for item in busy)
    assert connections.identify(Held(), ALICE) is False, "nobody added it"


def test_users_leave_room_for_nodes_and_nodes_for_admins() -> None:
    connections = Connections(ConnectionLimits(total=20))
    for number in range(16):
        opened(connections, User(f"user-{number}"), idle_since=None)
    refused = Held()
    connections.add(refused)
    assert not connections.identify(refused, ALICE)
    connections.remove(refused)

    nodes = [opened(connections, NODE, idle_since=None) for _ in range(2)]
    connections.add(refused)
    assert not connections.identify(refused, NODE)
    connections.remove(refused)
    admins = [opened(connections, ADMIN, idle_since=None) for _ in range(2)]

    assert not any(node.cut for node in (*nodes, *admins))
    assert not connections.add(Held()), "everything is in use"


@pytest.mark.parametrize("number", [1, 2, 5, 20, 100, 1000])
def test_an_admin_gets_in_whatever_others_hold(number: int) -> None:
    connections = Connections(ConnectionLimits(total=number))
    for user in (ALICE, ROBOT, NODE, None):
        for _ in range(2 * number):
            held = Held(idle_since=None if user else 0.0)
            if connections.add(held) and user and not connections.identify(held, user):
                connections.remove(held)
                held.abort()

    if number >= 5:
        opened(connections, ADMIN)
    assert len(connections) <= number


def test_whoever_is_missed_least_is_evicted_first() -> None:
    connections = Connections(ConnectionLimits())
    admin = opened(connections, ADMIN)
    node = opened(connections, NODE)
    busy = opened(connections, ALICE, idle_since=None)
    idle = opened(connections, ALICE)
    unknown = opened(connections)
    order: list[Held] = []
    while connections.close_one():
        order += [
            item for item in (admin, node, busy, idle, unknown) if item.cut and item not in order
        ]

    assert order == [unknown, idle, node]
    assert len(connections) == 2
    assert connections.shed == 3


def test_what_is_removed_is_forgotten() -> None:
    connections = Connections(ConnectionLimits(per_address=1, per_user=1))
    for _ in range(3):
        held = opened(connections, ALICE)
        connections.remove(held)
        connections.remove(held)
    unknown = opened(connections)
    connections.remove(unknown)

    assert len(connections) == 0
    assert connections.shed == 0


def test_deadlines() -> None:
    connections = Connections()
    late = opened(connections, deadline=10.0)
    opened(connections, deadline=20.0)

    assert connections.expired(9.9) == []
    assert connections.expired(10.0) == [late]
