"""The definitions of the kinds of OCM, as clients find them."""

from typing import Any

import pytest

from embedded import REFERENCE, SCHEME, embedded
from serving import ADMIN
from sully.api.cluster.definitions import definitions
from sully.api.cluster.types import GROUP
from sully.server.api import Api
from sully.server.bootstrap import ensure_definitions
from sully.server.customresources.controller import DefinitionController
from sully.server.inprocess import InProcess
from sully.server.requests import ResourceRef
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock

Obj = dict[str, Any]
DEFINITIONS = {
    one["spec"]["names"]["kind"]: one for one in definitions(SCHEME.resources(), SCHEME.tables)
}
ALL = ResourceRef("apiextensions.k8s.io", "v1", "customresourcedefinitions")


def version(kind: str) -> Any:
    return DEFINITIONS[kind]["spec"]["versions"][0]


def test_every_kind_of_the_group_has_one() -> None:
    kinds = {one.kind for one in SCHEME.resources() if one.group == GROUP}

    assert DEFINITIONS.keys() == kinds


def test_what_is_ours_is_left_out_in_reference_mode() -> None:
    reference = definitions(REFERENCE.resources(), REFERENCE.tables)
    versions = {
        one["spec"]["names"]["kind"]: [v["name"] for v in one["spec"]["versions"]]
        for one in reference
    }

    assert versions["Placement"] == ["v1beta1"]
    assert [v["name"] for v in DEFINITIONS["Placement"]["spec"]["versions"]] == [
        "v1beta1",
        "v1alpha1",
    ]


def test_columns_and_subresources() -> None:
    cluster = version("ManagedCluster")

    assert [column["jsonPath"] for column in cluster["additionalPrinterColumns"]] == [
        ".spec.hubAcceptsClient",
        ".spec.managedClusterClientConfigs[*].url",
        '.status.conditions[?(@.type=="ManagedClusterJoined")].status',
        '.status.conditions[?(@.type=="ManagedClusterConditionAvailable")].status',
        ".metadata.creationTimestamp",
    ]
    assert cluster["subresources"] == {"status": {}}
    assert "additionalPrinterColumns" not in version("PlacementDecision")
    assert "subresources" not in version("ClusterClaim")


def test_schemas_have_limits_and_defaults() -> None:
    spec = version("ManagedCluster")["schema"]["openAPIV3Schema"]["properties"]["spec"]
    taint = spec["properties"]["taints"]["items"]["properties"]
    set_ = version("ManagedClusterSet")["schema"]["openAPIV3Schema"]["properties"]["spec"]

    assert spec["properties"]["leaseDurationSeconds"]["default"] == 60
    assert taint["effect"]["enum"] == ["NoSelect", "PreferNoSelect", "NoSelectIfNew"]
    assert taint["key"]["maxLength"] == 316
    assert taint["timeAdded"]["nullable"] is True
    assert set_["default"] == {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}


@pytest.fixture
def api() -> Api:
    return embedded(MemoryStore(), FakeClock())


@pytest.fixture
def access(api: Api) -> InProcess:
    return InProcess(api, ADMIN)


async def stored(access: InProcess) -> dict[str, Obj]:
    page = await access.call("list", ALL)
    return {item.obj["metadata"]["name"]: item.obj for item in page.items}


async def test_they_are_valid_and_established(api: Api, access: InProcess) -> None:
    await api.definitions.start()
    await ensure_definitions(access, DEFINITIONS.values())
    await api.definitions.catch_up()
    await DefinitionController(api.store, api.definitions, access, FakeClock()).reconcile()

    for one in (await stored(access)).values():
        conditions = {entry["type"]: entry["status"] for entry in one["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}


async def test_a_changed_definition_is_restored(access: InProcess) -> None:
    await ensure_definitions(access, DEFINITIONS.values())
    name = f"placements.{GROUP}"
    changed = (await stored(access))[name]
    changed["spec"]["versions"] = changed["spec"]["versions"][:1]
    await access.call("update", ResourceRef(ALL.group, "v1", ALL.plural, name=name), body=changed)

    await ensure_definitions(access, DEFINITIONS.values())

    assert len((await stored(access))[name]["spec"]["versions"]) == 2
