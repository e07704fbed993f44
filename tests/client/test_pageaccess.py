"""Who may read the metrics of a program beside the API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from client.scripted import PartialTransport
from sully.app import Config, RunningControlPlane, running
from sully.client.direct import DirectTransport
from sully.client.metrics_authorizer import CACHE_SECONDS, MetricsAuthorizer
from sully.client.transport import UnreachableError
from sully.runtime.metrics_server import is_local
from sully.server.requests import ResourceRef
from sully.testing.clock import FakeClock

ACCOUNT = ResourceRef("", "v1", "serviceaccounts", "default", "default", "token")


class Counting(PartialTransport):
    """Passes questions on and counts them, or cannot reach anybody."""

    def __init__(self, transport: DirectTransport) -> None:
        self._transport = transport
        self.asked = 0
        self.reachable = True

    async def create(self, *args: Any) -> object:
        self.asked += 1
        if not self.reachable:
            raise UnreachableError("away")
        return await self._transport.create(*args)


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[RunningControlPlane]:
    config = Config(data_dir=tmp_path, port=0, store="memory", audit_log="")
    async with running(config) as plane:
        yield plane


async def token_of(plane: RunningControlPlane) -> str:
    made = await plane.direct().call("create", ACCOUNT, body={"spec": {}})
    return made.obj["status"]["token"]


async def let_in(plane: RunningControlPlane) -> None:
    for plural, body in (
        ("clusterroles", {"rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]}),
        (
            "clusterrolebindings",
            {
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "reader",
                },
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
            },
        ),
    ):
        ref = ResourceRef("rbac.authorization.k8s.io", "v1", plural)
        await plane.direct().call("create", ref, body={"metadata": {"name": "reader"}, **body})


async def test_who_is_let_in(plane: RunningControlPlane) -> None:
    clock, transport = FakeClock(), Counting(DirectTransport(plane.direct()))
    access = MetricsAuthorizer(transport, clock)
    token = await token_of(plane)

    for authorization in ("", "Basic abc", "Bearer", "Bearer ", f"Bearer {'x' * 20_000}"):
        assert await access.check(authorization, "/metrics") == 401
    assert transport.asked == 0
    assert await access.check("Bearer made.up", "/metrics") == 401
    assert await access.check(f"Bearer {token}", "/metrics") == 403

    await let_in(plane)
    clock.advance(CACHE_SECONDS)
    assert await access.check(f"bearer {token}", "/metrics") == 200
    before = transport.asked
    assert await access.check(f"Bearer {token}", "/metrics") == 200
    assert transport.asked == before
    assert await access.check(f"Bearer {token}", "/other") == 403


async def test_a_server_that_cannot_be_asked(plane: RunningControlPlane) -> None:
    clock, transport = FakeClock(), Counting(DirectTransport(plane.direct()))
    access = MetricsAuthorizer(transport, clock)
    await let_in(plane)
    header = f"Bearer {await token_of(plane)}"
    assert await access.check(header, "/metrics") == 200

    transport.reachable = False
    clock.advance(CACHE_SECONDS)
    assert await access.check(header, "/metrics") == 200
    assert await access.check(f"Bearer {await token_of(plane)}", "/metrics") == 503


async def test_made_up_tokens_do_not_fill_the_memory(plane: RunningControlPlane) -> None:
    transport = Counting(DirectTransport(plane.direct()))
    access = MetricsAuthorizer(transport, FakeClock())
    await let_in(plane)
    header = f"Bearer {await token_of(plane)}"
    assert await access.check(header, "/metrics") == 200

    for number in range(200):
        assert await access.check(f"Bearer {number}", "/metrics") == 401
    before = transport.asked

    assert await access.check(header, "/metrics") == 200
    assert transport.asked == before


HOSTS = {
    "127.0.0.1": True,
    "127.8.8.8": True,
    "::1": True,
    "localhost": True,
    "0.0.0.0": False,
    "::": False,
    "10.0.0.1": False,
    "node-1": False,
}


@pytest.mark.parametrize(("host", "want"), HOSTS.items())
def test_is_local(host: str, want: bool) -> None:
    assert is_local(host) is want
