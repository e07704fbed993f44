"""Clusters of etcd for tests: none of them ever has the port of another."""

from __future__ import annotations

import socket

import pytest

from etcds import Etcd, reserved_port

pytestmark = pytest.mark.slow


def test_the_ports_of_a_dead_member_are_given_to_nobody() -> None:
    with Etcd() as etcd:
        member = etcd.members[0]
        etcd.kill(member)

        for port in (member.client, member.peer):
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", port))

        etcd.start(member)
        etcd.await_healthy(member)


def test_a_reserved_port_is_that_of_one() -> None:
    with reserved_port() as port, socket.socket() as server, socket.socket() as other:
        for item in (server, other):
            item.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen()

        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
