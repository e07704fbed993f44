"""Pods that are scheduled to devices while a question is open: the plan does not show them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pytest

from cli.terminals import terminal
from cli.test_taint import (
    ACCOUNTS,
    DRIVER,
    KEY,
    NAMESPACES,
    NODES,
    PODS,
    RULES,
    SETS,
    SLICES,
    Server,
    are_running,
    make,
    name_of,
    until,
)
from controllers.eviction.evicting import holder, prepare, publish
from controllers.world import World
from e2e.beside import plane as controlled
from sully.cli.change.later_pods import refreshed
from sully.cli.client.session import Session
from sully.cli.command import Options
from sully.client.http.transport import HttpTransport
from sully.views.snapshot.kinds import PODS as SCHEDULED
from sully.views.snapshot.kinds import TEMPLATES
from sully.views.snapshot.loading import load

if TYPE_CHECKING:
    from sully.client.discovery.adapting import AdaptingTransport

DEVICES = f"{DRIVER}/{name_of(1)}/gpu-[0-2]"


@pytest.fixture(scope="module")
def up(where: str) -> Iterator[Server]:
    flags = ("--store", "memory", "--simulated-nodes", str(NODES), "--devices-per-node", "8")
    with controlled(where, *flags) as plane:
        server = Server(plane.kubeconfig, plane.child)

        async def prepare(transport: HttpTransport) -> None:
            await until(transport, SLICES, lambda slices: len(slices) == NODES)
            await transport.create(NAMESPACES, {"metadata": {"name": "a"}})
            await until(transport, ACCOUNTS, bool)

        server.ask(prepare)
        yield server


@pytest.fixture
def server(up: Server) -> Iterator[Server]:
    """Return a server where one pod uses a device of the second node."""
    schedule(up, "early", running=1)
    yield up

    async def clear(transport: HttpTransport) -> None:
        await transport.delete_collection(RULES)
        for kind in (SETS, TEMPLATES.read_as(dict), PODS):
            await transport.delete_collection(kind, "a")
        await until(transport, PODS, lambda pods: not pods)

    up.ask(clear)


def schedule(server: Server, name: str, *, running: int) -> None:
    """Schedule one pod more to the second node, and wait until so many run."""

    async def work(transport: HttpTransport) -> None:
        await make(transport, name, 1, name_of(1))
        await until(transport, PODS, are_running(running))

    server.ask(work)


@pytest.mark.slow
@pytest.mark.e2e
def test_a_drain_asks_again_about_pods_that_were_scheduled_since_the_plan(server: Server) -> None:
    with terminal("drain", "device", DEVICES, env=server.env) as screen:
        screen.wait_for("Evict 1 pod and cordon 3 devices? [y/N] ")
        schedule(server, "late", running=2)
        screen.type("y\n")
        screen.wait_for("1 pod was scheduled to these devices since the plan: a/late-")
        screen.wait_for("2 pods would be evicted")
        screen.wait_for("Evict 2 pods and cordon 3 devices? [y/N] ")
        screen.type("n\n")
        screen.wait_for("Nothing changed.")
        assert screen.end() == 1

    assert not server.rules()


@pytest.mark.slow
@pytest.mark.e2e
def test_a_taint_asks_again_about_pods_that_were_scheduled_since_the_plan(server: Server) -> None:
    arguments = ("taint", "device", DEVICES, f"{KEY}:NoExecute", "--name", "hot")
    with terminal(*arguments, env=server.env) as screen:
        screen.wait_for("[y/N] ")
        schedule(server, "late", running=2)
        screen.type("y\n")
        screen.wait_for("1 pod was scheduled to these devices since the plan: a/late-")
        screen.wait_for("before the rule takes effect")
        screen.wait_for(f"Taint 3 devices with {KEY}:NoExecute and evict 2 pods? [y/N] ")
        screen.type("y\n")
        screen.wait_for("\n2 pods evicted")
        assert screen.end() == 0


@pytest.mark.slow
@pytest.mark.e2e
def test_a_maintenance_asks_again_about_pods_that_were_scheduled_since_the_plan(
    server: Server,
) -> None:
    arguments = ("maintenance", "create", "late", "--pool", name_of(1), "--start", "8h")
    with terminal(*arguments, env=server.env) as screen:
        screen.wait_for("Create maintenance late of 8 devices and evict 1 pod during it? [y/N] ")
        schedule(server, "late", running=2)
        screen.type("y\n")
        screen.wait_for("1 pod was scheduled to these devices since the plan: a/late-")
        screen.wait_for("evict 2 pods during it? [y/N] ")
        screen.type("n\n")
        screen.wait_for("Nothing changed.")
        assert screen.end() == 1


async def test_pods_are_read_again_only_if_the_plan_is_old() -> None:
    world = World()
    await prepare(world)
    await publish(world, devices=2)
    await holder(world, "early", "gpu-0")
    # It answers without discovery.
    session = Session(Options(), "drain", world.clock, cast("AdaptingTransport", world.admin))
    snapshot = await load(world.admin, (SCHEDULED,), now=world.clock.now())
    await holder(world, "late", "gpu-1")

    assert await refreshed(session, snapshot) is None

    world.clock.advance(2)
    newer = await refreshed(session, snapshot)
    assert newer is not None
    assert newer.taken - snapshot.taken == timedelta(seconds=2)
    assert [pod.metadata.name for pod in newer.of(SCHEDULED).values()] == ["early", "late"]
