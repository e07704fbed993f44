"""The token of an agent writes only the report of its node."""

from __future__ import annotations

import pytest

import manifests
from server.test_admission_policies import BINDINGS, POLICIES, Obj, World
from sully.client.direct import DirectTransport
from sully.client.transport import Kind
from sully.install.node_agent import OTHER_NODE, node_agent
from sully.install.workload import Settings
from sully.machinery.errors import ApiError
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.views.kinds import DEVICE_HEALTH

AGENT = "system:serviceaccount:sully-system:sully-monitor"
HEALTH: Kind[Obj] = DEVICE_HEALTH.read_as(dict)


def report(node: str, name: str = "") -> Obj:
    return manifests.device_health(node, name=name, renewTime="2030-01-01T12:00:00.000000Z")


def user(world: World, name: str, *nodes: str) -> DirectTransport:
    extra = {"authentication.kubernetes.io/node-name": nodes} if nodes else {}
    who = User(name, ("system:masters",), extra=extra)
    return DirectTransport(InProcess(world.api, who, agent=name))


@pytest.fixture
async def world() -> World:
    created = World()
    await created.start()
    kinds = {kind.kind: kind for kind in (POLICIES, BINDINGS)}
    for obj in node_agent(Settings(monitor="nvml")):
        if obj["kind"] in kinds:
            await created.admin.create(kinds[obj["kind"]], obj)
    return created


async def test_its_own_report(world: World) -> None:
    agent = user(world, AGENT, "n1")
    created = await agent.create(HEALTH, report("n1"))
    created["spec"]["message"] = "NVML: Driver Not Loaded"

    assert (await agent.update(HEALTH, created))["spec"]["message"]


REFUSED = {
    "of another node": (("n1",), report("n2")),
    "of another reporter": (("n1",), report("n1", "n1.nvml")),
    "with a token of no node": ((), report("n1")),
}


@pytest.mark.parametrize(("nodes", "obj"), REFUSED.values(), ids=REFUSED.keys())
async def test_other_reports(world: World, nodes: tuple[str, ...], obj: Obj) -> None:
    with pytest.raises(ApiError, match=OTHER_NODE):
        await user(world, AGENT, *nodes).create(HEALTH, obj)
    # Others are not restricted by it.
    await user(world, "monitor-of-somebody").create(HEALTH, obj)
