"""Our scheduler evaluates constraints, and retries when something happened that may help."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import manifests
from controllers.scheduling.placing import NODES, Scheduling, node, prepare, where
from controllers.world import NAMESPACES, PODS, Obj, World
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.views.snapshot import kinds

NOW = DeleteOptions(grace_period_seconds=0)
CLAIMS = kinds.VOLUME_CLAIMS.read_as(dict)
VOLUMES = kinds.VOLUMES.read_as(dict)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
WEB = {"matchLabels": {"app": "web"}}
Step = Callable[[World], Awaitable[Any]]


def near(app: str = "web", **term: Any) -> Obj:
    own = {"topologyKey": "on", "labelSelector": {"matchLabels": {"app": app}}, **term}
    return {"affinity": {"podAffinity": {REQUIRED: [own]}}}


APART: Obj = {
    "affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "on", "labelSelector": WEB}]}}
}
SPREAD: Obj = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "on",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": WEB,
        }
    ]
}
SIDECAR = {
    "name": "s",
    "image": "example.com/x:1",
    "restartPolicy": "Always",
    "ports": [{"containerPort": 80, "hostPort": 80}],
}
PORT: Obj = {"initContainers": [SIDECAR]}


async def labeled(world: World, name: str, app: str = "web", **spec: Any) -> None:
    body = manifests.pod(name, manifests.pod_spec(**spec), namespace="a", labels={"app": app})
    await world.admin.create(PODS, body)


async def label(world: World, name: str, **labels: str | None) -> None:
    await world.admin.patch(PODS, Key("a", name), {"metadata": {"labels": labels}})


async def nothing(_: World) -> None:
    """Let nothing happen before."""


def creates(name: str, **spec: Any) -> Step:
    return lambda world: labeled(world, name, **spec)


def deletes(name: str) -> Step:
    return lambda world: world.admin.delete(PODS, Key("a", name), NOW)


def relabels(name: str, **labels: str | None) -> Step:
    return lambda world: label(world, name, **labels)


async def binds_volume(world: World) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/data"},
        "claimRef": {"namespace": "a", "name": "c"},
    }
    await world.admin.create(VOLUMES, manifests.body("PersistentVolume", "v", spec, labels={}))
    bound = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
    await world.admin.patch(CLAIMS, Key("a", "c"), bound | {"spec": {"volumeName": "v"}})


async def claims_volume(world: World) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = manifests.body("PersistentVolumeClaim", "c", spec, namespace="a")
    await world.admin.create(CLAIMS, body)


async def labels_namespace(world: World) -> None:
    await world.admin.patch(NAMESPACES, Key("", "a"), {"metadata": {"labels": {"team": "x"}}})


async def removes_node(world: World) -> None:
    await world.admin.delete(NODES, Key("", "node-2"))


async def with_second_node(world: World) -> None:
    """Make the domain with the fewest pods one that takes none."""
    await node(world, "node-2", unschedulable=True)
    await labeled(world, "first")


USES = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
TEAM: Obj = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
EVENTS: dict[str, tuple[Step, Obj, str, Step]] = {
    "a pod that it has affinity to": (
        nothing,
        near("db"),
        "pod affinity",
        lambda world: labeled(world, "db", "db"),
    ),
    "a pod gets the label": (
        creates("web"),
        near("db"),
        "pod affinity",
        relabels("web", app="db"),
    ),
    "it has affinity to itself": (nothing, near(), "", nothing),
    "a pod loses the label": (
        creates("web"),
        APART,
        "pod anti-affinity",
        relabels("web", app=None),
    ),
    "a pod that it keeps apart from goes": (
        creates("web"),
        APART,
        "pod anti-affinity",
        deletes("web"),
    ),
    "a pod that keeps apart from it goes": (
        creates("web", **APART),
        {},
        "existing pods anti-affinity",
        deletes("web"),
    ),
    "the node of a domain goes": (with_second_node, SPREAD, "topology spread", removes_node),
    "a port is free": (creates("web", **PORT), PORT, "free ports", deletes("web")),
    "a volume is bound": (
        claims_volume,
        USES,
        "unbound immediate PersistentVolumeClaims",
        binds_volume,
    ),
    "a claim is created": (nothing, USES, 'persistentvolumeclaim "c" not found', claims_volume),
    "a namespace gets a label": (
        creates("web"),
        near(**TEAM),
        "pod affinity",
        labels_namespace,
    ),
}


@pytest.mark.parametrize(("before", "spec", "waits", "event"), EVENTS.values(), ids=EVENTS.keys())
async def test_what_helps(world: World, before: Step, spec: Obj, waits: str, event: Step) -> None:
    await prepare(world, devices=0)
    scheduling = Scheduling()
    async with scheduling.running(world):
        await before(world)
        await world.settle()
        await labeled(world, "p", **spec)
        await world.settle()
        reported = await where(world, "p")
        await event(world)
        await world.settle()
        then = await where(world, "p")

    assert (waits in reported) if waits else reported == "node-1"
    if event is claims_volume:
        assert "unbound immediate PersistentVolumeClaims" in then, "it was tried again"
    else:
        assert then == "node-1"


async def test_pods_spread(world: World) -> None:
    await prepare(world, "node-1", "node-2", "node-3", devices=0)
    async with Scheduling().running(world):
        for number in range(6):
            await labeled(world, f"p{number}", **SPREAD)
            await world.settle()

    nodes = [await where(world, f"p{number}") for number in range(6)]
    assert sorted(nodes) == ["node-1", "node-1", "node-2", "node-2", "node-3", "node-3"]
