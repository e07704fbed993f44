"""In whatever order things happen, pods are evicted at their time, and no other pod is.

Rules and slices come, change and go; so do allocations, reservations and pods; time passes, the
clock is set back, and the controller restarts. After each step the oracle is asked.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta
from random import Random
from typing import Any

import pytest

import manifests
from controllers.eviction.evicting import (
    CLAIMS,
    DRIVER,
    RULES,
    SLICES,
    Evicting,
    allocate,
    bound_pod,
    claim,
    prepare,
)
from controllers.eviction.oracle import Oracle, look
from controllers.world import NAMESPACES, PODS, Obj, World
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Kind
from sully.machinery.formats.timestamps import format_time

KEYS = ("example.com/a", "example.com/b")
NAMES = tuple("cdefg")
"""Of claims, each with two devices of its own, and of pods."""
DEVICES = tuple(f"gpu-{index}" for index in range(2 * len(NAMES)))
POOLS = ("pool-1", "pool-2")
STEPS = 40


class RandomEvents:
    """What happens to a world, drawn from a seed."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.draw = Random(seed)
        self.stack = AsyncExitStack()

    async def begin(self) -> None:
        await prepare(self.world)
        may = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await self.world.admin.patch(NAMESPACES, Key("", "a"), may)
        for name in NAMES:
            await claim(self.world, name)
            await self.new_pod(name)
        for name in NAMES:
            await self.give(name)
        await self.restart()

    async def step(self) -> str:
        """Let something happen; return what it was."""
        steps = [
            *(self.rule, self.change_effect, self.change_selector, self.unrule),
            *(self.publish, self.retaint, self.unpublish),
            *(self.reallocate, self.replace_claim, self.reserve),
            *(self.replace_pod, self.bind, self.finish),
            *(self.pass_time, self.pass_time, self.pass_time, self.set_back, self.restart),
        ]
        chosen = self.draw.choice(steps)
        await chosen()
        return chosen.__name__

    def maybe(self, rng: float = 0.5) -> bool:
        return self.draw.random() < rng

    async def one_of(self, kind: Kind[Obj], namespace: str = "") -> Obj:
        """Return some object of a kind, or nothing if there is none."""
        items = list((await self.world.admin.list(kind, namespace)).items)
        return self.draw.choice(items) if items else {}

    # -- rules ------------------------------------------------------------------------------------

    def taint(self) -> Obj:
        effect = self.draw.choice(("NoExecute", "NoExecute", "NoSchedule", "None"))
        added = self.world.clock.now() + timedelta(seconds=self.draw.randint(-60, 60))
        return (
            {"key": self.draw.choice(KEYS), "effect": effect}
            | ({"value": "x"} if self.maybe(0.3) else {})
            | ({"timeAdded": format_time(added)} if self.maybe() else {})
        )

    def selector(self) -> Obj:
        choices: list[Any] = [None, {}, {"driver": DRIVER}, {"driver": "other.example.com"}]
        choices += [{"pool": self.draw.choice(POOLS)}, {"device": self.draw.choice(DEVICES)}]
        result = self.draw.choice(choices)
        return {} if result is None else {"deviceSelector": result}

    async def rule(self) -> None:
        spec = {"taint": self.taint(), **self.selector()}
        await self.world.admin.create(RULES, {"metadata": {"generateName": "r-"}, "spec": spec})

    async def change_effect(self) -> None:
        if rule := await self.one_of(RULES):
            effect = self.draw.choice(("NoExecute", "None", "NoSchedule"))
            rule["spec"]["taint"]["effect"] = effect
            await self.world.admin.update(RULES, rule)

    async def change_selector(self) -> None:
        if rule := await self.one_of(RULES):
            rule["spec"] = {"taint": rule["spec"]["taint"], **self.selector()}
            await self.world.admin.update(RULES, rule)

    async def unrule(self) -> None:
        if rule := await self.one_of(RULES):
            await self.world.admin.delete(RULES, Key("", rule["metadata"]["name"]))

    # -- slices -----------------------------------------------------------------------------------

    async def publish(self) -> None:
        """Publish a pool in one slice, as one of its generations, old or new."""
        devices = [
            {"name": name, "taints": [self.taint()] if self.maybe(0.3) else []} for name in DEVICES
        ]
        generations = {
            slice_["spec"]["pool"]["generation"]
            for slice_ in (await self.world.admin.list(SLICES)).items
        }
        generation = self.draw.choice([index for index in range(99) if index not in generations])
        pool = self.draw.choice(POOLS)
        slice_ = manifests.slice_("", pool, *devices, generation=generation, nodeName="node-1")
        body = slice_ | {"metadata": {"generateName": "s-"}}
        await self.world.admin.create(SLICES, body)

    async def retaint(self) -> None:
        if slice_ := await self.one_of(SLICES):
            device = self.draw.choice(slice_["spec"]["devices"])
            device["taints"] = [self.taint() for _ in range(self.draw.randint(0, 2))]
            await self.world.admin.update(SLICES, slice_)

    async def unpublish(self) -> None:
        if slice_ := await self.one_of(SLICES):
            await self.world.admin.delete(SLICES, Key("", slice_["metadata"]["name"]))

    # -- claims and pods --------------------------------------------------------------------------

    def toleration(self) -> Obj:
        operator = self.draw.choice(("Exists", "Equal"))
        seconds = self.draw.choice((-5, 0, 5, 30, 90))
        return (
            {"operator": operator, "effect": "NoExecute"}
            | ({"key": self.draw.choice(KEYS)} if self.maybe(0.7) else {})
            | ({"value": "x"} if operator == "Equal" and self.maybe() else {})
            | ({"tolerationSeconds": seconds} if self.maybe(0.9) else {})
        )

    async def give(self, name: str) -> None:
        """Give a claim one or both of its devices, for some of the pods."""
        first = 2 * NAMES.index(name)
        there = [pod["metadata"]["name"] for pod in (await look(self.world)).pods]
        await allocate(
            self.world,
            name,
            tuple(self.draw.sample(DEVICES[first : first + 2], self.draw.randint(1, 2))),
            pods=tuple(pod for pod in there if self.maybe(0.6)),
            tolerations=tuple(self.toleration() for _ in range(self.draw.randint(0, 3))),
            pool=self.draw.choice(POOLS),
            adminAccess=self.maybe(0.2),
        )

    async def reallocate(self) -> None:
        name, nothing = self.draw.choice(NAMES), {"allocation": None, "reservedFor": None}
        change = {"status": nothing}
        await self.world.admin.patch(CLAIMS, Key("a", name), change, subresource="status")
        await self.give(name)

    async def replace_claim(self) -> None:
        name = self.draw.choice(NAMES)
        await self.world.admin.delete(CLAIMS, Key("a", name))
        await claim(self.world, name)
        await self.give(name)

    async def reserve(self) -> None:
        claim = await self.one_of(CLAIMS, "a")
        users = [pod["metadata"] for pod in (await look(self.world)).pods if self.maybe()]
        claim["status"]["reservedFor"] = [
            {"resource": "pods", "name": user["name"], "uid": user["uid"]} for user in users
        ]
        await self.world.admin.update(CLAIMS, claim, "status")

    async def new_pod(self, name: str) -> None:
        claims = self.draw.sample(NAMES, self.draw.randint(1, 3))
        node = "node-1" if self.maybe(0.8) else ""
        finalizers = ["example.com/keep"] if self.maybe(0.2) else []
        await bound_pod(self.world, name, *claims, node=node, finalizers=finalizers)

    async def replace_pod(self) -> None:
        """Take a pod away for good, and make another of its name."""
        key = Key("a", self.draw.choice(NAMES))
        await self.world.admin.patch(PODS, key, {"metadata": {"finalizers": None}})
        if key.name in [pod["metadata"]["name"] for pod in (await look(self.world)).pods]:
            await self.world.admin.delete(PODS, key, DeleteOptions(grace_period_seconds=0))
        await self.new_pod(key.name)

    async def bind(self) -> None:
        pod = await self.one_of(PODS, "a")
        if "nodeName" in pod["spec"] or "deletionTimestamp" in pod["metadata"]:
            return
        target = {"kind": "Node", "name": "node-1"}
        body = {"metadata": {"name": pod["metadata"]["name"], "namespace": "a"}, "target": target}
        await self.world.admin.create(PODS, {"kind": "Binding", **body}, "binding")

    async def finish(self) -> None:
        key, change = Key("a", self.draw.choice(NAMES)), {"status": {"phase": "Succeeded"}}
        await self.world.admin.patch(PODS, key, change, subresource="status")

    # -- time -------------------------------------------------------------------------------------

    async def pass_time(self) -> None:
        self.world.clock.advance(self.draw.choice((1, 5, 20, 60)))

    async def set_back(self) -> None:
        self.world.clock.set_back(self.draw.choice((1, 30, 300)))

    async def restart(self) -> None:
        await self.stack.aclose()
        await self.stack.enter_async_context(self.world.controlled(Evicting().make()))


def terminating(seen: Oracle) -> set[str]:
    metadatas = [pod["metadata"] for pod in seen.pods]
    return {item["uid"] for item in metadatas if "deletionTimestamp" in item}


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_happens(world: World, seed: int) -> None:
    rng = RandomEvents(world, seed)
    async with rng.stack:
        await rng.begin()
        for number in range(STEPS):
            await world.settle()
            before = terminating(await look(world))
            what = await rng.step()
            seen = await look(world)
            there = {pod["metadata"]["uid"] for pod in seen.pods}
            await world.settle()

            got = terminating(await look(world))
            assert got == (before | seen.leavers()) & there, f"step {number}: {what}"
