"""Fixtures of the whole suite: a control plane that all tests of a run share, and calls to it.

Sharing is safe because every test works in a namespace of its own, or on names of its own; a test
that needs another store, clock or identity makes its own server (serving.py).
"""

from collections.abc import AsyncIterator

import pytest_asyncio
from serving import Http, Obj, connected, fresh

from sully.app import ControlPlane
from sully.testing.cluster import in_process

pytest_plugins = ["house_plugin"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_plane() -> AsyncIterator[ControlPlane]:
    """Run a control plane in this process: memory store, real socket, real TLS."""
    async with in_process() as plane:
        yield plane


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def http(shared_plane: ControlPlane) -> AsyncIterator[Http]:
    """Call the shared plane with an administrator's certificate."""
    async with connected(shared_plane) as caller:
        yield caller


@pytest_asyncio.fixture(loop_scope="session")
async def room(http: Http) -> str:
    """Make a namespace for one test; return its path under /api/v1."""
    name = fresh("room")
    body: Obj = {"metadata": {"name": name}}
    (await http.post("/api/v1/namespaces", body)).ok(201)
    return f"/api/v1/namespaces/{name}"
