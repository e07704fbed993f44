"""The group as clients find it: names, versions, columns, and values for controllers."""

from typing import Any

import msgspec
import pytest

from api.cluster.hub import Hub, cluster, placement, taint
from embedded import SCHEME
from sully.api.cluster import types
from sully.api.cluster.schemas import schema
from sully.machinery.schema import ObjectType
from sully.testing.clock import NOON

Obj = dict[str, Any]

RESOURCES = {
    resource.kind: resource for resource in SCHEME.resources() if resource.group == types.GROUP
}
KINDS = {
    "ManagedCluster": ("v1", False, ("mcl", "mcls"), True),
    "ManagedClusterSet": ("v1beta2", False, ("mclset", "mclsets"), True),
    "ManagedClusterSetBinding": ("v1beta2", True, ("mclsetbinding", "mclsetbindings"), True),
    "Placement": ("v1beta1 v1alpha1", True, (), True),
    "PlacementDecision": ("v1beta1", True, (), True),
    "AddOnPlacementScore": ("v1alpha1", True, (), True),
    "ClusterClaim": ("v1alpha1", False, (), False),
}


def test_all_kinds_are_served() -> None:
    results = {
        kind: (
            " ".join(version.name for version in one.versions),
            one.namespaced,
            one.short_names,
            one.status is not None,
        )
        for kind, one in RESOURCES.items()
    }

    assert results == KINDS


def _row(kind: str, obj: Obj) -> Obj:
    return {one.name: one.cell(obj, NOON) for one in RESOURCES[kind].columns}


MADE = {"name": "x", "creationTimestamp": "2030-01-01T11:59:00Z"}


def _conditions(**statuses: str) -> Obj:
    return {
        "conditions": [
            {"type": name, "status": status, "reason": f"{name}IsSo"}
            for name, status in statuses.items()
        ]
    }


ROWS: dict[str, tuple[str, Obj, Obj]] = {
    "cluster": (
        "ManagedCluster",
        {
            "spec": {
                "hubAcceptsClient": True,
                "managedClusterClientConfigs": [{"url": "https://a"}, {"url": "https://b"}],
            },
            "status": _conditions(
                ManagedClusterJoined="True", ManagedClusterConditionAvailable="Unknown"
            ),
        },
        {
            "Hub Accepted": True,
            "Managed Cluster URLs": "https://a",
            "Joined": "True",
            "Available": "Unknown",
            "Age": "60s",
        },
    ),
    "cluster that is unknown": (
        "ManagedCluster",
        {},
        {
            "Hub Accepted": None,
            "Managed Cluster URLs": None,
            "Joined": None,
            "Available": None,
            "Age": "60s",
        },
    ),
    "set": (
        "ManagedClusterSet",
        {"status": _conditions(ClusterSetEmpty="False")},
        {"Empty": "False", "Age": "60s"},
    ),
    "binding": ("ManagedClusterSetBinding", {}, {"Age": "60s"}),
    "placement": (
        "Placement",
        {"status": {**_conditions(PlacementSatisfied="True"), "numberOfSelectedClusters": 3}},
        {"Succeeded": "True", "Reason": "PlacementSatisfiedIsSo", "SelectedClusters": 3},
    ),
    "decision": ("PlacementDecision", {}, {"Age": "60s"}),
    "score": ("AddOnPlacementScore", {}, {"Age": "60s"}),
    "claim": ("ClusterClaim", {}, {"Age": "60s"}),
}


@pytest.mark.parametrize(("kind", "obj", "want"), ROWS.values(), ids=ROWS.keys())
def test_rows(kind: str, obj: Obj, want: Obj) -> None:
    assert _row(kind, {"metadata": MADE, **obj}) == {"Name": "x", **want}


STRUCTS = {
    "ManagedCluster": types.ManagedCluster,
    "ManagedClusterSet": types.ManagedClusterSet,
    "ManagedClusterSetBinding": types.ManagedClusterSetBinding,
    "Placement": types.Placement,
    "PlacementDecision": types.PlacementDecision,
    "AddOnPlacementScore": types.AddOnPlacementScore,
    "ClusterClaim": types.ClusterClaim,
}


def _fields(struct: Any) -> dict[str, Any]:
    return {one.encode_name: one.type for one in msgspec.structs.fields(struct)}


def _inner(kind: Any) -> Any:
    """Return the struct or table inside a list, a map or an optional."""
    for part in (kind, *getattr(kind, "__args__", ())):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            return part
    return None


def _differences(table: ObjectType, struct: Any, at: str) -> list[str]:
    fields = _fields(struct)
    names = {name for name in table.fields if name not in ("apiVersion", "kind")}
    result = [f"{at}.{name}" for name in sorted(names ^ fields.keys())]
    for name in sorted(names & fields.keys() - {"metadata"}):
        below = table.fields[name].type
        below = getattr(below, "item", below)
        inner = _inner(fields[name])
        if isinstance(below, ObjectType) and inner is not None:
            result += _differences(below, inner, f"{at}.{name}")
    return result


@pytest.mark.parametrize("kind", STRUCTS)
def test_values_have_the_fields_of_the_tables(kind: str) -> None:
    table = schema(RESOURCES[kind].storage_version.name, kind)

    assert _differences(table, STRUCTS[kind], kind) == []


async def test_what_is_stored_can_be_read_as_a_value() -> None:
    hub = Hub()
    stored = await hub.create(cluster("c1", taint(value="v"), hubAcceptsClient=True))
    placed = await hub.create(placement({"tolerations": [{"key": "k", "tolerationSeconds": 90}]}))

    read = msgspec.convert(stored.obj, types.ManagedCluster)
    read_placement = msgspec.convert(placed.obj, types.Placement)

    assert read.spec.taints == (
        types.Taint(key="k", value="v", effect="NoSelect", time_added=NOON),
    )
    assert read_placement.spec.tolerations == (
        types.Toleration(key="k", operator="Equal", toleration_seconds=90),
    )
    assert read_placement.spec.number_of_clusters is None
