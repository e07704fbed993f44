"""Accepting a cluster, moving it between sets and binding a set each need a right of their own."""

from dataclasses import dataclass
from typing import Any

import pytest

import manifests
from server.authorization.world import MASTER, World, person, rule, user
from sully.machinery.errors import ApiError
from sully.server.requests import ResourceRef, User

Obj = dict[str, Any]

GROUP = "cluster.open-cluster-management.io"
CLUSTERS = f"{GROUP}/managedclusters"
SET = f"{GROUP}/clusterset"
ANN = person("ann")
WRITES = rule("create update patch", "managedclusters", GROUP)
ACCEPTS = rule("update", "managedclusters/accept", "register.open-cluster-management.io")
ACCEPTS_C1 = rule("update", "managedclusters/accept", "register.open-cluster-management.io", "c1")
BINDS = rule("create", "managedclustersets/bind", GROUP, "east")


def _joins(*names: str) -> Obj:
    return rule("create", "managedclustersets/join", GROUP, " ".join(names))


def _denied(hook: str, resource: str, name: str, why: str) -> str:
    return (
        f'admission webhook "{hook}.admission.{GROUP}" denied the request: {resource}.{GROUP}'
        f' "{name}" is forbidden: {why}'
    )


def _no_acceptance(name: str) -> str:
    why = 'user "ann" cannot update the HubAcceptsClient field'
    return _denied("managedclustervalidators", "managedclusters/accept", name, why)


def _no_joining(name: str) -> str:
    why = f'user "ann" cannot add/remove a ManagedCluster to/from ManagedClusterSet "{name}"'
    return _denied("managedclustervalidators", "managedclustersets/join", name, why)


@dataclass(frozen=True)
class Case:
    """A cluster before and after, and who may what."""

    rules: tuple[Obj, ...]
    after: Obj
    before: Obj | None = None  # None: it is created
    want: str = ""


def _cluster(*, accepted: bool | None = None, of: str = "default") -> Obj:
    return manifests.cluster("c1", accepted=accepted, labels={SET: of})


CASES = {
    "creating": Case((_joins("default"),), _cluster()),
    "creating in a set": Case((_joins("east"),), _cluster(of="east")),
    "creating in a set of others": Case(
        (_joins("default"),), _cluster(of="east"), want=_no_joining("east")
    ),
    "creating an accepted one": Case((_joins("default"), ACCEPTS), _cluster(accepted=True)),
    "creating an accepted one without the right": Case(
        (_joins("default"),), _cluster(accepted=True), want=_no_acceptance("c1")
    ),
    "accepting": Case((ACCEPTS_C1,), _cluster(accepted=True), _cluster()),
    "accepting without the right": Case(
        (), _cluster(accepted=True), _cluster(accepted=False), want=_no_acceptance("c1")
    ),
    "leaving it accepted": Case((), _cluster(accepted=True), _cluster(accepted=True)),
    "accepting no longer": Case((), _cluster(accepted=False), _cluster(accepted=True)),
    "changing something else": Case(
        (),
        {"spec": {"taints": [{"key": "k", "effect": "NoSelect"}], "leaseDurationSeconds": 5}},
        _cluster(accepted=True, of="east"),
    ),
    "moving": Case((_joins("east", "west"),), _cluster(of="west"), _cluster(of="east")),
    "moving to where one may not": Case(
        (_joins("east"),), _cluster(of="west"), _cluster(of="east"), want=_no_joining("west")
    ),
    "moving from where one may not": Case(
        (_joins("west"),), _cluster(of="west"), _cluster(of="east"), want=_no_joining("east")
    ),
}


async def _let(world: World, *rules: Obj) -> None:
    await world.role("some", *rules)
    await world.bind("some", "ClusterRole/some", [user("ann")])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_clusters(world: World, case: Case) -> None:
    await _let(world, WRITES, *case.rules)
    if case.before is None:
        got = await world.refused(ANN, "create", CLUSTERS, case.after)
    else:
        await world.call(MASTER, "create", CLUSTERS, case.before)
        merge = "application/merge-patch+json"
        got = await world.refused(ANN, "patch", CLUSTERS, case.after, name="c1", patch_type=merge)

    assert got == case.want


async def test_no_cluster_is_accepted_while_its_namespace_is_deleted(world: World) -> None:
    await world.call(MASTER, "create", "namespaces", {"metadata": {"name": "c1"}})
    await world.call(MASTER, "delete", "namespaces", name="c1")

    got = await world.refused(MASTER, "create", CLUSTERS, _cluster(accepted=True))

    why = 'cluster namespace "c1" is terminating'
    assert got == _denied("managedclustervalidators", "managedclusters/accept", "c1", why)


async def _bind(world: World, who: User, name: str) -> str:
    ref = ResourceRef(GROUP, "v1beta2", "managedclustersetbindings", "default", "")
    try:
        await world.caller(who).call("create", ref, body=manifests.set_binding(name))
    except ApiError as error:
        return error.message
    return ""


async def test_binding_a_set(world: World) -> None:
    await _let(world, rule("create", "managedclustersetbindings", GROUP), BINDS)

    assert await _bind(world, ANN, "east") == ""
    assert await _bind(world, ANN, "west") == _denied(
        "managedclustersetbindingvalidators",
        "managedclustersets/bind",
        "west",
        'user "ann" is not allowed to bind cluster set "west"',
    )


async def test_r10_a_binding_that_is_there_is_changed_without_the_right(world: World) -> None:
    await _let(world, rule("create update", "managedclustersetbindings", GROUP))
    await _bind(world, MASTER, "east")
    ref = ResourceRef(GROUP, "v1beta2", "managedclustersetbindings", "default", "east")
    obj = (await world.caller(MASTER).call("get", ref)).obj
    obj["metadata"]["labels"] = {"team": "web"}

    changed = (await world.caller(ANN).call("update", ref, body=obj)).obj

    assert changed["metadata"]["labels"] == {"team": "web"}
    assert (await _bind(world, ANN, "west")).endswith('not allowed to bind cluster set "west"')


async def test_a_new_cluster_introduces_itself(world: World) -> None:
    newcomer = person("agent", "system:bootstrappers:managedcluster")

    await world.call(newcomer, "create", CLUSTERS, {"metadata": {"name": "c9"}})
    got = await world.refused(
        newcomer,
        "create",
        CLUSTERS,
        {"metadata": {"name": "c8"}, "spec": {"hubAcceptsClient": True}},
    )

    assert got.endswith('user "agent" cannot update the HubAcceptsClient field')


@pytest.mark.parametrize(
    ("role", "verb", "kind", "want"),
    [
        ("view", "get", "placementdecisions", True),
        ("view", "create", "placements", False),
        ("edit", "create", "placements", True),
        ("edit", "update", "placementdecisions", False),
        ("edit", "get", "managedclusters", False),
    ],
)
async def test_people_place_from_their_namespaces(
    world: World, role: str, verb: str, kind: str, want: bool
) -> None:
    await world.bind("some", f"ClusterRole/{role}", [user("ann")], "default")

    assert world.may(ANN, verb, f"{GROUP}/{kind}", "default") is want


TAKEN = (
    'namespace "{0}" exists and is not the namespace of cluster "{0}"; rename the cluster, or give'
    " the namespace to its agent with the label open-cluster-management.io/cluster-name={0}"
)


@pytest.mark.parametrize("name", ["kube-system", "default", "theirs"])
async def test_no_cluster_is_accepted_in_a_namespace_of_others(world: World, name: str) -> None:
    await world.call(MASTER, "create", "namespaces", {"metadata": {"name": "theirs"}})
    spec = {"hubAcceptsClient": True}

    reported = await world.refused(
        MASTER, "create", CLUSTERS, {"metadata": {"name": name}, "spec": spec}
    )

    resource = "managedclusters/accept"
    assert reported == _denied("managedclustervalidators", resource, name, TAKEN.format(name))


async def test_a_cluster_is_accepted_in_its_own_namespace(world: World) -> None:
    labels = {"open-cluster-management.io/cluster-name": "c1"}
    await world.call(MASTER, "create", "namespaces", {"metadata": {"name": "c1", "labels": labels}})

    assert not await world.refused(MASTER, "create", CLUSTERS, _cluster(accepted=True))
