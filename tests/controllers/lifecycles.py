"""ReplicaSets, Deployments and budgets without nodes: the test sets the status of pods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

import manifests
from controllers.world import ACCOUNTS, PODS, Obj, World
from sully.client.direct import DirectTransport
from sully.client.events import EVENTS
from sully.client.objects import key_of
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Kind, Transport, WatchEvent
from sully.controllers.framework.manager import Manager
from sully.controllers.workloads import kinds as workloads
from sully.controllers.workloads.daemonsets import DaemonSetController
from sully.controllers.workloads.deployments import DeploymentController
from sully.controllers.workloads.disruption import DisruptionController, Workloads
from sully.controllers.workloads.jobs import JobController
from sully.controllers.workloads.owned_pods import OwnedPods, OwnerT
from sully.controllers.workloads.replicasets import ReplicaSetController
from sully.controllers.workloads.statefulsets import StatefulSetController
from sully.machinery.formats.timestamps import format_time
from sully.views.snapshot import kinds as snapshots

REPLICA_SETS: Kind[Obj] = workloads.REPLICA_SETS.read_as(dict)
DEPLOYMENTS: Kind[Obj] = workloads.DEPLOYMENTS.read_as(dict)
JOBS: Kind[Obj] = workloads.JOBS.read_as(dict)
STATEFUL_SETS: Kind[Obj] = workloads.STATEFUL_SETS.read_as(dict)
DAEMON_SETS: Kind[Obj] = workloads.DAEMON_SETS.read_as(dict)
REVISIONS: Kind[Obj] = workloads.REVISIONS.read_as(dict)
NODES: Kind[Obj] = snapshots.NODES.read_as(dict)
BUDGETS: Kind[Obj] = snapshots.BUDGETS.read_as(dict)
LABELS = {"app": "web"}
NOW = DeleteOptions(grace_period_seconds=0)

_shared: WeakKeyDictionary[Manager, workloads.Pods] = WeakKeyDictionary()


def pods_of(manager: Manager) -> workloads.Pods:
    """Return the cache of pods that the controllers of a manager share."""
    if manager not in _shared:
        _shared[manager] = workloads.Pods(manager.informer(snapshots.PODS))
    return _shared[manager]


def owned_pods(
    world: World,
    manager: Manager,
    kind: Kind[OwnerT],
    name: str,
    transport: Transport | None = None,
) -> OwnedPods[OwnerT]:
    env = manager.env(world.transport(name), name)
    return OwnedPods(
        owners=manager.informer(kind),
        pods=pods_of(manager),
        env=env._replace(transport=transport or env.transport),
    )


def replica_sets(world: World, manager: Manager) -> ReplicaSetController:
    owned = owned_pods(world, manager, workloads.REPLICA_SETS, ReplicaSetController.name)
    return ReplicaSetController(owned)


def deployments(world: World, manager: Manager) -> DeploymentController:
    name = DeploymentController.name
    return DeploymentController(
        deployments=manager.informer(workloads.DEPLOYMENTS),
        sets=manager.informer(workloads.REPLICA_SETS),
        pods=pods_of(manager),
        env=manager.env(world.transport(name), name),
    )


def jobs(world: World, manager: Manager) -> JobController:
    return JobController(owned_pods(world, manager, workloads.JOBS, JobController.name))


def stateful_sets(world: World, manager: Manager) -> StatefulSetController:
    return StatefulSetController(
        owned=owned_pods(world, manager, workloads.STATEFUL_SETS, StatefulSetController.name),
        revisions=manager.informer(workloads.REVISIONS),
    )


def daemon_sets(world: World, manager: Manager) -> DaemonSetController:
    return DaemonSetController(
        owned=owned_pods(world, manager, workloads.DAEMON_SETS, DaemonSetController.name),
        nodes=manager.informer(snapshots.NODES),
        revisions=manager.informer(workloads.REVISIONS),
    )


def budgets(world: World, manager: Manager) -> DisruptionController:
    name = DisruptionController.name
    return DisruptionController(
        budgets=manager.informer(snapshots.BUDGETS),
        pods=pods_of(manager),
        workloads=Workloads(
            manager.informer(workloads.REPLICA_SETS), manager.informer(workloads.DEPLOYMENTS)
        ),
        env=manager.env(world.transport(name), name),
    )


class Late:
    """The event of one kind, held back from all caches for as long as the block lasts."""

    def __init__(self, world: Any, plural: str) -> None:
        self._plural = plural
        self._open = asyncio.Event()
        self._open.set()
        ordinary = world.transport
        world.transport = lambda name: (
            self._late(ordinary(name)) if name == "informers" else ordinary(name)
        )

    def __enter__(self) -> None:
        self._open.clear()

    def __exit__(self, *_: object) -> None:
        self._open.set()

    def _late(self, transport: Any) -> DirectTransport:
        watch, plural, is_open = transport.watch, self._plural, self._open

        async def late(kind: Kind[Any], *args: Any) -> AsyncGenerator[WatchEvent[Any], None]:
            async with aclosing(watch(kind, *args)) as events:
                async for event in events:
                    if kind.plural == plural:
                        await is_open.wait()
                    yield event

        transport.watch = late
        return transport


async def open_namespace(world: World, name: str = "a") -> None:
    """Make a namespace in which pods can be created."""
    await world.namespace(name)
    await world.create(ACCOUNTS, name, "default")


def template(labels: Obj | None = None, image: str = "example.com/web:1") -> Obj:
    container = {"name": "c", "image": image}
    spec = {"containers": [container], "automountServiceAccountToken": False}
    return manifests.pod_template(labels or LABELS, spec)


async def replica_set(world: World, replicas: int = 3, name: str = "web", **spec: Any) -> Obj:
    made = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template()}
    return await world.create(REPLICA_SETS, "a", name, spec=made | spec)


async def deployment(world: World, replicas: int = 3, name: str = "web", **spec: Any) -> Obj:
    made = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template()}
    return await world.create(DEPLOYMENTS, "a", name, spec=made | spec)


async def change_image(world: World, image: str, name: str = "web") -> None:
    """Change the template of a Deployment, as `kubectl set image` does."""
    change = {"spec": {"template": template(image=image)}}
    await world.admin.patch(DEPLOYMENTS, Key("a", name), change)


async def sets(world: World) -> dict[str, Obj]:
    """Return the ReplicaSets by the image of their template."""
    items = (await world.admin.list(REPLICA_SETS, "a")).items
    return {image_of(item["spec"]["template"]["spec"]): item for item in items}


def image_of(spec: Obj) -> str:
    return str(spec["containers"][0]["image"]).rpartition(":")[2]


async def images(world: World) -> dict[str, int]:
    """Return how many active pods there are of each image."""
    counts: dict[str, int] = {}
    for item in await active(world):
        image = image_of(item["spec"])
        counts[image] = counts.get(image, 0) + 1
    return counts


async def pod(world: World, name: str, labels: Obj | None = None, **metadata: Any) -> Obj:
    spec = template()["spec"]
    meta = {"labels": LABELS if labels is None else labels} | metadata
    return await world.create(PODS, "a", name, metadata=meta, spec=spec)


async def pods(world: World) -> list[Obj]:
    return list((await world.admin.list(PODS, "a")).items)


async def active(world: World) -> list[Obj]:
    return [pod for pod in await pods(world) if "deletionTimestamp" not in pod["metadata"]]


async def make_ready(
    world: World, *chosen: Obj, ready: bool = True, phase: str = "Running"
) -> None:
    """Report pods as a node would: they run, and serve or not."""
    state = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "lastTransitionTime": format_time(world.clock.now()),
    }
    for item in chosen:
        patch = {"status": {"phase": phase, "conditions": [state]}}
        await world.admin.patch(PODS, key_of(item), patch, subresource="status")


async def bring_up(world: World) -> None:
    """Let all pods serve that there are."""
    waiting = [item for item in await active(world) if not is_ready(item)]
    await make_ready(world, *waiting)
    await world.settle()


def is_ready(pod: Obj) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


async def status(world: World, kind: Kind[Obj], name: str = "web") -> Obj:
    result: Obj = (await world.admin.get(kind, Key("a", name)))["status"]
    return result


async def events(world: World, kind: str = "") -> list[tuple[str, str]]:
    """Return reason and message of what was reported, in order."""
    items = sorted(
        (await world.admin.list(EVENTS, "a")).items,
        key=lambda item: int(item["metadata"]["resourceVersion"]),
    )
    return [
        (message["reason"], message["message"])
        for message in items
        if kind in ("", message["involvedObject"]["kind"])
    ]


async def conditions(world: World) -> dict[str, tuple[str, str]]:
    result = (await status(world, DEPLOYMENTS)).get("conditions") or ()
    return {item["type"]: (item["status"], item["reason"]) for item in result}


async def roll(world: World, limit: int = 30) -> None:
    """Let pods come up until nothing changes."""
    before = -1
    for _ in range(limit):
        await world.settle()
        if world.store.revision == before:
            return
        before = world.store.revision
        await bring_up(world)
        await finish_deletions(world)


async def finish_deletions(world: World) -> None:
    for pod in await pods(world):
        if "deletionTimestamp" in pod["metadata"]:
            await world.admin.delete(PODS, key_of(pod), NOW)
