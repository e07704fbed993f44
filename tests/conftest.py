"""Fixtures of the whole suite: a control plane that all tests of a run share, and calls to it.

Sharing is safe because every test works in a namespace of its own, or on names of its own. The
plane's controllers work there too: a test of kinds they care for takes `calm`, and one that needs
another store, clock or identity makes its own server (serving.py).
"""

import logging
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
import structlog

import probes.started  # noqa: F401 - first: what is imported afterwards is measured
from serving import Asgi, Http, Obj, connected, fresh, local
from sully.app import RunningControlPlane
from sully.testing.cluster import in_process

pytest_plugins = [
    "suite_plugin",
    "beside_plugin",
    "coverage_plugin",
    "worker_plugin",
    "leaks_plugin",
]

# By default a traceback shows the values of all variables if `rich` is installed, which takes a
# second of processor time each; the program itself never does that.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        ),
    ]
)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Undo what a command that ran in this process did to logs: it is kept in globals."""
    root = logging.getLogger()
    handlers, level, before = root.handlers[:], root.level, structlog.get_config()
    yield
    if structlog.get_config()["processors"] is not before["processors"]:
        structlog.configure(**before)
        root.handlers[:], root.level = handlers, level


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_plane() -> AsyncIterator[RunningControlPlane]:
    """Run a control plane in this process: memory store, real socket, real TLS."""
    async with in_process() as plane:
        yield plane


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def http(shared_plane: RunningControlPlane) -> AsyncIterator[Http]:
    """Call the shared plane with an administrator's certificate."""
    async with connected(shared_plane) as caller:
        yield caller


@pytest_asyncio.fixture(loop_scope="session")
async def calm() -> AsyncIterator[Asgi]:
    """Make a server for one test on which nothing happens by itself: no controllers, no time."""
    async with local(pods=True) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def namespace_path(http: Http) -> str:
    """Make a namespace for one test, and wait for what a controller puts there; return its path."""
    name = fresh("namespace")
    path = f"/api/v1/namespaces/{name}"
    made: Obj = (await http.post("/api/v1/namespaces", {"metadata": {"name": name}})).ok(201)
    query = {
        "fieldSelector": "metadata.name=default",
        "resourceVersion": made["metadata"]["resourceVersion"],
    }
    async with http.watch(f"{path}/serviceaccounts", **query) as lines:
        await lines.take(1)
    return path
