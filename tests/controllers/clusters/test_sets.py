"""Sets are counted, bindings led to them, and the two built-in ones kept (checklist R9, R10)."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from controllers.clusters.hubbing import BINDINGS, CLUSTERS, SETS, HubWorld
from controllers.world import Obj
from sully.client.transport import Key

LABEL = "cluster.open-cluster-management.io/clusterset"
EMPTY = ("True", "NoClusterMatched", "No ManagedCluster selected")


def _counted(number: int) -> tuple[str, str, str]:
    return "False", "ClustersSelected", f"{number} ManagedClusters selected"


async def _status(hub: HubWorld, name: str) -> tuple[str, str, str]:
    set_ = await hub.admin.get(SETS, Key("", name))
    (only,) = set_["status"]["conditions"]
    assert only["type"] == "ClusterSetEmpty"
    return only["status"], only["reason"], only["message"]


async def _bound(hub: HubWorld, name: str) -> tuple[str, str, str]:
    binding = await hub.admin.get(BINDINGS, Key("a", name))
    (only,) = binding["status"]["conditions"]
    assert only["type"] == "Bound"
    return only["status"], only["reason"], only["message"]


async def _make(hub: HubWorld, name: str, **selector: Any) -> None:
    await hub.admin.create(SETS, manifests.cluster_set(name, **selector))
    await hub.calm()


async def _label(hub: HubWorld, cluster: str, **labels: Any) -> None:
    await hub.admin.patch(CLUSTERS, Key("", cluster), {"metadata": {"labels": labels}})
    await hub.calm()


async def test_r9_counts_follow_labels_and_deletions(hub: HubWorld) -> None:
    async with hub.hub():
        await _make(hub, "s1")
        assert await _status(hub, "s1") == EMPTY
        for name in ("c1", "c2"):
            await hub.register(name, metadata={"labels": {LABEL: "s1"}})
        assert await _status(hub, "s1") == _counted(2)
        assert await _status(hub, "global") == _counted(2)
        assert await _status(hub, "default") == EMPTY

        await _label(hub, "c1", **{LABEL: "default"})
        assert (await _status(hub, "s1"), await _status(hub, "default")) == (
            _counted(1),
            _counted(1),
        )
        await hub.admin.delete(CLUSTERS, Key("", "c2"))
        await hub.calm()

        assert await _status(hub, "s1") == EMPTY
        assert await _status(hub, "global") == _counted(1)


async def test_clusters_that_are_being_deleted_count(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.register("c1", metadata={"finalizers": ["example.com/hold"]})

        await hub.admin.delete(CLUSTERS, Key("", "c1"))
        await hub.calm()

        assert await _status(hub, "default") == _counted(1)


SELECTORS: dict[str, tuple[Obj, tuple[str, str, str]]] = {
    "by label": ({"labelSelector": {"matchLabels": {"env": "prod"}}}, _counted(1)),
    "empty": ({"labelSelector": {}}, _counted(2)),
    "absent": ({}, EMPTY),
}


@pytest.mark.parametrize(("selector", "want"), SELECTORS.values(), ids=SELECTORS)
async def test_selectors(hub: HubWorld, selector: Obj, want: tuple[str, str, str]) -> None:
    async with hub.hub():
        await hub.register("c1", metadata={"labels": {"env": "prod"}})
        await hub.register("c2")

        await _make(hub, "s1", selectorType="LabelSelector", **selector)

        assert await _status(hub, "s1") == want


async def test_a_set_that_selects_differently_is_counted_again(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.register("c1", metadata={"labels": {"env": "prod"}})
        await _make(hub, "s1")
        assert await _status(hub, "s1") == EMPTY

        spec = {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}}
        await hub.admin.patch(SETS, Key("", "s1"), {"spec": spec})
        await hub.calm()

        assert await _status(hub, "s1") == _counted(1)


async def test_health_of_a_cluster_does_not_touch_its_sets(hub: HubWorld) -> None:
    async with hub.hub():
        await hub.register("c1")
        before = await hub.admin.get(SETS, Key("", "default"))

        await hub.report("c1", "True")

        assert await hub.admin.get(SETS, Key("", "default")) == before


@pytest.mark.parametrize("name", ["default", "global"])
async def test_r9_built_in_sets_come_back(hub: HubWorld, name: str) -> None:
    async with hub.hub():
        first = await hub.admin.get(SETS, Key("", name))

        await hub.admin.delete(SETS, Key("", name))
        await hub.calm()

        second = await hub.admin.get(SETS, Key("", name))
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        assert second["spec"] == first["spec"]


OTHER: Obj = {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"x": "y"}}}


@pytest.mark.parametrize("name", ["default", "global"])
async def test_r9_built_in_sets_are_rolled_back(hub: HubWorld, name: str) -> None:
    async with hub.hub():
        first = await hub.admin.get(SETS, Key("", name))

        patch = {"metadata": {"labels": {"mine": "1"}}, "spec": {"clusterSelector": OTHER}}
        await hub.admin.patch(SETS, Key("", name), patch)
        await hub.calm()

        set_ = await hub.admin.get(SETS, Key("", name))
        assert set_["spec"] == first["spec"]
        assert set_["metadata"]["labels"] == {"mine": "1"}


async def test_r9_a_source_that_reports_it_is_left_alone(hub: HubWorld) -> None:
    annotation = {"cluster.open-cluster-management.io/autoupdate": "false"}
    async with hub.hub():
        patch = {"metadata": {"annotations": annotation}, "spec": {"clusterSelector": OTHER}}
        await hub.admin.patch(SETS, Key("", "default"), patch)
        await hub.calm()

        set_ = await hub.admin.get(SETS, Key("", "default"))
        assert set_["spec"]["clusterSelector"] == OTHER


async def test_r10_a_binding_follows_its_set(hub: HubWorld) -> None:
    await hub.namespace("a")
    async with hub.hub():
        binding = {"metadata": {"namespace": "a", "name": "s1"}, "spec": {"clusterSet": "s1"}}
        await hub.admin.create(BINDINGS, binding)
        await hub.calm()
        assert await _bound(hub, "s1") == ("False", "ClusterSetNotFound", "")

        await _make(hub, "s1")
        assert await _bound(hub, "s1") == ("True", "ClusterSetBound", "")
        await hub.admin.delete(SETS, Key("", "s1"))
        await hub.calm()

        assert await _bound(hub, "s1") == ("False", "ClusterSetNotFound", "")
