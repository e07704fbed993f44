"""What an explanation promises is what then happens: the real controllers, no other writer, and a
clock that only the test moves. That words are enough and needed, in many more worlds than these, is
test_remedies.py's."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hypothesis import event, given, settings
from hypothesis import strategies as st

import manifests
from controllers.world import NAMESPACES, PODS, SCHEME, Obj, World, running
from property_examples import examples
from sully.client.discovery.resources import of_scheme
from sully.client.transport import Key, Kind
from sully.controller_context import ControllerConfig
from sully.controller_setup import build_manager
from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings
from sully.domain.simulated.fleet import DRIVER, Fleet, PodDelays, name_of
from sully.explain.explanation import Explanation
from sully.explain.kinds import DEVICE_KINDS
from sully.explain.questions import QUESTIONS
from sully.explain.reader import Reader
from sully.machinery.gates import Gates
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.views import kinds
from sully.views.snapshot.kinds import NODES as NODE_KIND
from sully.views.snapshot.kinds import TEMPLATES
from sully.views.snapshot.loading import load

RULES: Kind[Obj] = kinds.RULES.read_as(dict)
CLAIM_TEMPLATES: Kind[Obj] = TEMPLATES.read_as(dict)
NODES: Kind[Obj] = NODE_KIND.read_as(dict)
CHOSEN = frozenset(("serviceaccounts", "claims", "scheduling"))
NAMESPACE = "a"


@dataclass(frozen=True)
class Scene:
    """A cluster with pods on it, and a pod that comes last."""

    nodes: int
    users: tuple[tuple[int, str], ...]
    """How many devices each pod has, and how much cpu."""
    marked: tuple[str, ...]
    """Nodes with a rule against their devices."""
    cordoned: tuple[str, ...]
    wants: tuple[int, str]


@asynccontextmanager
async def controlled(scene: Scene) -> AsyncIterator[World]:
    world = World()
    settings = SimulatedNodeSettings(Fleet(scene.nodes, 2), PodDelays(start=0, stop=0.5))
    config = ControllerConfig(
        transport=world.transport,
        served=of_scheme(SCHEME),
        gates=Gates(),
        ids=Ids(random.Random(2)),
        simulated_nodes=settings,
        chosen=CHOSEN,
    )
    async with running(build_manager(config, world.clock, Metrics())):
        await world.settle()
        yield world


async def make(world: World, name: str, wants: tuple[int, str]) -> None:
    devices, cpu = wants
    asked = manifests.claim_spec(DRIVER, "gpu", count=devices)
    await world.create(CLAIM_TEMPLATES, NAMESPACE, name, spec={"spec": asked})
    spec = manifests.pod_spec(template=name, resources={"requests": {"cpu": cpu}})
    await world.create(PODS, NAMESPACE, name, spec=spec)
    await world.pass_time(1, step=1)


async def fill(world: World, scene: Scene) -> None:
    """Create pods, delete those that are unschedulable, then taint and cordon."""
    await world.admin.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await world.settle()
    for at, wants in enumerate(scene.users):
        await make(world, f"user-{at}", wants)
        if not await node_of(world, f"user-{at}"):
            await world.admin.delete(PODS, Key(NAMESPACE, f"user-{at}"))
            await world.settle()
    for node in scene.marked:
        selector = {"driver": DRIVER, "pool": node}
        taint = {"value": node}
        body = manifests.rule(f"fw-{node}", key="example.com/fw", selector=selector, taint=taint)
        await world.admin.create(RULES, body)
    for node in scene.cordoned:
        await cordon(world, node, closed=True)
    await world.settle()


async def cordon(world: World, name: str, *, closed: bool) -> None:
    node = await world.admin.get(NODES, Key("", name))
    changed = {**node, "spec": {**node.get("spec", {}), "unschedulable": closed}}
    await world.admin.update(NODES, changed)


async def node_of(world: World, name: str) -> str:
    pod = await world.admin.get(PODS, Key(NAMESPACE, name))
    return str(pod["spec"].get("nodeName", ""))


async def explained(world: World) -> Explanation:
    snapshot = await load(world.admin, DEVICE_KINDS, now=world.clock.now())
    answer = QUESTIONS["pod"].answer(Reader(snapshot), Key(NAMESPACE, "last"))
    assert answer is not None
    return answer


async def do(world: World, remedy: str) -> None:
    """Apply a remedy; taints that could be tolerated are removed."""
    for name in re.findall(r"from rule ([^\s,]+)", remedy):
        await world.admin.delete(RULES, Key("", name))
    for name in re.findall(r"\(kubectl uncordon (\S+)\)", remedy):
        await cordon(world, name, closed=False)
    waiting = "".join(re.findall(r"[Ww]ait until (?:claim|pod)s? .*", remedy))
    for name in dict.fromkeys(re.findall(r"\ba/(user-\d+)(?![\w-])", waiting)):
        await world.admin.delete(PODS, Key(NAMESPACE, name))
    await world.pass_time(2, step=0.5)


async def happens(scene: Scene, choice: int) -> tuple[str, str, str] | None:
    """Return what was reported, the promised node, and its node; None if it had one before."""
    async with controlled(scene) as world:
        await fill(world, scene)
        await make(world, "last", scene.wants)
        if await node_of(world, "last"):
            return None
        remedies = (await explained(world)).remedies
        promised = [remedy for remedy in remedies if "would then be scheduled to node" in remedy]
        if not promised:
            return "\n".join(remedies), "", ""
        remedy = promised[choice % len(promised)]
        await do(world, remedy)
        return remedy, remedy.rpartition(" ")[2].rstrip("."), await node_of(world, "last")


WISHES = st.tuples(st.integers(1, 2), st.sampled_from(("1", "20")))
SOME_NODES = st.sets(st.sampled_from((name_of(0), name_of(1)))).map(sorted).map(tuple)
SCENES = st.integers(1, 2).flatmap(
    lambda nodes: st.builds(
        Scene,
        nodes=st.just(nodes),
        users=st.lists(WISHES, max_size=3).map(tuple),
        marked=SOME_NODES,
        cordoned=SOME_NODES.map(lambda result: tuple(x for x in result if x < name_of(nodes))),
        wants=WISHES,
    )
)


@settings(max_examples=examples(20))
@given(SCENES, st.integers(0, 2))
def test_what_is_promised_is_what_happens(scene: Scene, choice: int) -> None:
    result = asyncio.run(happens(scene, choice))
    if result is None:
        event("it had a node")
        return
    remedy, promised, node = result
    event(re.sub(r"\d|\(.*?\)|v=\w+", "", remedy)[:40])
    assert promised, remedy
    assert node == promised, remedy
