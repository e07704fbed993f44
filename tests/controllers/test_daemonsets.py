"""A DaemonSet has one pod on each node that matches, and no more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controllers.lifecycles import (
    DAEMON_SETS,
    LABELS,
    NODES,
    REVISIONS,
    active,
    daemon_sets,
    image_of,
    make_ready,
    open_namespace,
    roll,
    status,
    template,
)
from controllers.world import PODS, Obj, World
from sully.client.objects import key_of
from sully.client.transport import Key

WEB = Key("a", "web")


@pytest.fixture(autouse=True)
async def _namespace(world: World) -> None:
    await open_namespace(world)


async def nodes(world: World, *names: str, **spec: Any) -> None:
    for name in names:
        await world.create(NODES, "", name, metadata={"labels": {"name": name}}, spec=spec)


async def daemon_set(world: World, pod: Obj | None = None, **spec: Any) -> Obj:
    made = template()
    made["spec"] |= pod or {}
    return await world.create(
        DAEMON_SETS, "a", "web", spec={"selector": {"matchLabels": LABELS}, "template": made} | spec
    )


def node_of(pod: Obj) -> str:
    terms = pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    return str(terms[0]["matchFields"][0]["values"][0])


async def placed(world: World) -> list[str]:
    return sorted(node_of(item) for item in await active(world))


async def change_image(world: World, tag: str) -> None:
    change = {"spec": {"template": template(image=f"example.com/web:{tag}")}}
    await world.admin.patch(DAEMON_SETS, WEB, change)


async def test_each_node_gets_a_pod_also_a_later_one(world: World) -> None:
    await nodes(world, "n1", "n2")
    await daemon_set(world)
    async with world.controlled(daemon_sets):
        await world.settle()
        assert await placed(world) == ["n1", "n2"]
        await nodes(world, "n3")
        await world.settle()
        assert await placed(world) == ["n1", "n2", "n3"]
        await make_ready(world, *(await active(world))[:2])
        await world.settle()

    result = await status(world, DAEMON_SETS)
    assert result == {
        "currentNumberScheduled": 3,
        "desiredNumberScheduled": 3,
        "numberMisscheduled": 0,
        "numberReady": 2,
        "numberAvailable": 2,
        "numberUnavailable": 1,
        "observedGeneration": 1,
        "updatedNumberScheduled": 3,
    }


SUITABLE: dict[str, tuple[Obj, Obj, list[str]]] = {
    "a taint is not tolerated": ({"taints": [{"key": "k", "effect": "NoSchedule"}]}, {}, []),
    "a taint is tolerated": (
        {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        {"tolerations": [{"key": "k", "operator": "Exists"}]},
        ["n"],
    ),
    "a node is cordoned": (
        {
            "unschedulable": True,
            "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        },
        {},
        ["n"],
    ),
    "the node selector matches": ({}, {"nodeSelector": {"name": "n"}}, ["n"]),
    "the node selector does not match": ({}, {"nodeSelector": {"name": "m"}}, []),
}


@pytest.mark.parametrize(("node", "pod", "want"), SUITABLE.values(), ids=SUITABLE.keys())
async def test_which_nodes_match(world: World, node: Obj, pod: Obj, want: list[str]) -> None:
    await nodes(world, "n", **node)
    await daemon_set(world, pod)
    async with world.controlled(daemon_sets):
        await world.settle()

    assert await placed(world) == want


async def test_a_pod_stays_on_a_node_whose_taint_prevents_scheduling_only(world: World) -> None:
    await nodes(world, "n1", "n2")
    await daemon_set(world)
    async with world.controlled(daemon_sets):
        await world.settle()
        for name, effect in (("n1", "NoSchedule"), ("n2", "NoExecute")):
            taint = {"spec": {"taints": [{"key": "k", "effect": effect}]}}
            await world.admin.patch(NODES, Key("", name), taint)
        await world.settle()

    assert await placed(world) == ["n1"]
    assert (await status(world, DAEMON_SETS))["numberMisscheduled"] == 1


async def test_the_pods_of_a_deleted_node_are_deleted(world: World) -> None:
    await nodes(world, "n1", "n2")
    await daemon_set(world)
    async with world.controlled(daemon_sets):
        await world.settle()
        await world.admin.delete(NODES, Key("", "n1"))
        await world.settle()

    assert await placed(world) == ["n2"]


async def test_an_update_replaces_as_many_pods_as_may_be_unavailable(world: World) -> None:
    await nodes(world, "n1", "n2", "n3")
    await daemon_set(world)
    async with world.controlled(daemon_sets):
        await roll(world)
        await change_image(world, "2")
        await world.settle()
        assert len([p for p in await active(world) if image_of(p["spec"]) == "1"]) == 2
        await roll(world)

    assert {image_of(item["spec"]) for item in await active(world)} == {"2"}
    assert await placed(world) == ["n1", "n2", "n3"]
    revisions = (await world.admin.list(REVISIONS, "a")).items
    assert sorted(revision["revision"] for revision in revisions) == [1, 2]


async def test_a_revision_has_its_fields_in_the_order_of_their_names(world: World) -> None:
    # kubectl rollout undo compares the bytes of a revision with what Go writes.
    await nodes(world, "n1")
    await daemon_set(world)
    async with world.controlled(daemon_sets):
        await world.settle()

    (revision,) = (await world.admin.list(REVISIONS, "a")).items
    data = revision["data"]
    assert json.dumps(data) == json.dumps(data, sort_keys=True)
    assert data["spec"]["template"]["$patch"] == "replace"


async def test_a_surge_creates_the_new_pod_first(world: World) -> None:
    await nodes(world, "n1", "n2")
    rolling = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await daemon_set(world, updateStrategy=rolling)
    async with world.controlled(daemon_sets):
        await roll(world)
        await change_image(world, "2")
        await world.settle()
        assert len(await active(world)) == 3
        await roll(world)

    assert {image_of(item["spec"]) for item in await active(world)} == {"2"}
    assert await placed(world) == ["n1", "n2"]


async def test_on_delete_leaves_pods_until_they_are_deleted(world: World) -> None:
    await nodes(world, "n1", "n2")
    await daemon_set(world, updateStrategy={"type": "OnDelete"})
    async with world.controlled(daemon_sets):
        await roll(world)
        await change_image(world, "2")
        await roll(world)
        first = (await active(world))[0]
        assert image_of(first["spec"]) == "1"
        await world.admin.delete(PODS, key_of(first))
        await roll(world)

    assert sorted(image_of(item["spec"]) for item in await active(world)) == ["1", "2"]
