"""Controllers on a server that has rules in an older version, and patches as custom resources."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from controllers.scheduling import placing
from controllers.world import SCHEME, Obj, World, running
from manifests import DRIVER
from sully.client.discovery.capabilities import RelocatedTransport, relocated
from sully.client.discovery.resources import of_scheme
from sully.client.transport import Key, Kind
from sully.controller_context import ControllerConfig
from sully.controller_setup import build_manager
from sully.machinery.gates import Gates
from sully.machinery.scheme import Scheme
from sully.machinery.strategy import ResourceType, Strategy
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics

GROUP = "resource.k8s.io"
MOVES = {
    (GROUP, "devicetaintrules"): (GROUP, "v1beta2"),
    (GROUP, "resourceslicepatches"): ("sully.dev", "v1alpha1"),
}
RULES: Kind[Obj] = Kind(
    GROUP, "v1beta2", "devicetaintrules", "DeviceTaintRule", dict, namespaced=False
)
PATCHES: Kind[Obj] = Kind(
    "sully.dev", "v1alpha1", "resourceslicepatches", "ResourceSlicePatch", dict, namespaced=False
)
TAINT = {"key": "example.com/broken", "effect": "NoExecute"}
ONLY = frozenset(("eviction", "scheduling", "patchstatus"))


def elsewhere(resource: ResourceType) -> ResourceType:
    """Return a resource as that server has it."""
    if resource.kind == "DeviceTaintRule":
        versions = tuple(version for version in resource.versions if version.name == "v1beta2")
        return replace(resource, versions=versions)
    if resource.kind == "ResourceSlicePatch":
        # A custom resource: nothing is stamped, and only the schema is checked.
        version = replace(resource.storage_version, name="v1alpha1")
        return replace(resource, group="sully.dev", versions=(version,), strategy=Strategy())
    return resource


@pytest.fixture
def there(world: World) -> World:
    scheme = Scheme()
    scheme.tables = SCHEME.tables
    for resource in SCHEME.resources():
        scheme.add(elsewhere(resource))
    world.serve(scheme=scheme)
    return world


@asynccontextmanager
async def working(world: World) -> AsyncIterator[None]:
    config = ControllerConfig(
        transport=lambda name: RelocatedTransport(world.transport(name), MOVES),
        served=relocated(of_scheme(world.api.scheme), MOVES),
        gates=Gates(),
        ids=Ids(random.Random(2)),
        chosen=ONLY,
    )
    manager = build_manager(config, world.clock, Metrics())
    async with running(manager):
        await world.settle()
        yield


async def pods(world: World) -> dict[str, bool]:
    """Return which pods there are, and whether they terminate."""
    items = (await world.admin.list(placing.PODS)).items
    return {item["metadata"]["name"]: "deletionTimestamp" in item["metadata"] for item in items}


async def test_a_rule_in_an_older_version_evicts(there: World) -> None:
    await placing.prepare(there)
    async with working(there):
        await placing.wanting(there, "a")
        await there.settle()
        spec = {"deviceSelector": {"driver": DRIVER}, "taint": TAINT}
        await there.admin.create(RULES, {"metadata": {"name": "out"}, "spec": spec})
        await there.pass_time(5)
        rule = await there.admin.get(RULES, Key("", "out"))

        assert (await pods(there)).get("a", True)
        assert rule["status"]["conditions"][0]["type"] == "EvictionInProgress"


async def test_a_patch_that_is_a_custom_resource_evicts(there: World) -> None:
    await placing.prepare(there, devices=2)
    async with working(there):
        await placing.wanting(there, "a")
        await placing.wanting(
            there, "b", tolerations=[{**TAINT, "operator": "Exists", "tolerationSeconds": 60}]
        )
        await there.settle()
        devices = {"filter": {"driver": DRIVER}, "taints": [TAINT]}
        body = {"metadata": {"name": "p"}, "spec": {"devices": devices}}
        stored = await there.admin.create(PATCHES, body)
        await there.pass_time(30)
        early = await pods(there)
        await there.pass_time(31)
        patch = await there.admin.get(PATCHES, Key("", "p"))

        assert "timeAdded" not in stored["spec"]["devices"]["taints"][0]
        assert (early.get("a", True), early.get("b", True)) == (True, False)
        assert (await pods(there)).get("b", True)
        assert patch["status"]["conditions"]
