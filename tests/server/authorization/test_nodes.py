"""A node identity reads what its pods use and writes what is its own."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

import manifests
from manifests import slice_
from server.authorization.world import MASTER, World, ask, node, person
from sully.api import build_scheme
from sully.machinery.schema import ListOf, MapOf, ObjectType, Type
from sully.server.authorization.attributes import Decision
from sully.server.requests import User

Obj = dict[str, Any]
N1 = node("n1")
SLICES = "resource.k8s.io/resourceslices"
LEASES = "coordination.k8s.io/leases"
NOT_RELATED = "no relationship found between node 'n1' and this object"


def in_pool(pool: str) -> Obj:
    made = slice_("new", "n1")
    made["spec"]["pool"]["name"] = pool
    return made


def pod_on(name: str, node: str = "", **spec: Any) -> Obj:
    container: Obj = {"name": "c", "image": "i", **spec.pop("container", {})}
    spec = {"containers": [container], **spec, **({"nodeName": node} if node else {})}
    return manifests.pod(name, spec)


USES: Obj = {
    "container": {
        "env": [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": "env-secret", "key": "k"}}},
            {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "env-map", "key": "k"}}},
        ],
        "envFrom": [
            {"secretRef": {"name": "from-secret"}},
            {"configMapRef": {"name": "from-map"}},
        ],
        "resources": {"claims": [{"name": "gpu"}]},
    },
    "imagePullSecrets": [{"name": "pull-secret"}],
    "volumes": [
        {"name": "a", "secret": {"secretName": "volume-secret"}},
        {"name": "b", "configMap": {"name": "volume-map"}},
        {"name": "c", "projected": {"sources": [{"secret": {"name": "projected-secret"}}]}},
    ],
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}],
}


async def furnished(world: World) -> None:
    """Make two nodes' worth of objects."""
    await world.call(MASTER, "create", "serviceaccounts", _named("default"), namespace="default")
    for body in (pod_on("mine", "n1", **USES), pod_on("theirs", "n2"), pod_on("free")):
        await world.call(MASTER, "create", "pods", body, namespace="default")
    for body in (slice_("s1", "n1"), slice_("s2", "n2")):
        await world.call(MASTER, "create", SLICES, body)
    for name in ("n1", "n2"):
        await world.call(MASTER, "create", "nodes", _named(name))


def _named(name: str, **more: Any) -> Obj:
    return {"metadata": {"name": name, **more}}


@dataclass(frozen=True)
class Case:
    verb: str
    what: str
    namespace: str = ""
    name: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    want: str | None = None  # None: allowed; else why not


D = "default"
CASES = {
    "a secret of an environment": Case("get", "secrets", D, "env-secret"),
    "a secret of a whole environment": Case("get", "secrets", D, "from-secret"),
    "a secret of a volume": Case("watch", "secrets", D, "volume-secret"),
    "a secret of a projected volume": Case("list", "secrets", D, "projected-secret"),
    "a secret for images": Case("get", "secrets", D, "pull-secret"),
    "another secret": Case("get", "secrets", D, "other", want=NOT_RELATED),
    "the same name elsewhere": Case("get", "secrets", "x", "env-secret", want=NOT_RELATED),
    "all secrets": Case("list", "secrets", D, want="No Object name found"),
    "all secrets everywhere": Case(
        "list", "secrets", want="can only read namespaced object of this type"
    ),
    "writing a secret": Case(
        "update", "secrets", D, "env-secret", want="can only read resources of this type"
    ),
    "a map": Case("get", "configmaps", D, "env-map"),
    "a map of a volume": Case("get", "configmaps", D, "volume-map"),
    "another map": Case("get", "configmaps", D, "other", want=NOT_RELATED),
    "its claim": Case("get", "resource.k8s.io/resourceclaims", D, "claim"),
    "another claim": Case("get", "resource.k8s.io/resourceclaims", D, "x", want=NOT_RELATED),
    "all claims": Case(
        "list",
        "resource.k8s.io/resourceclaims",
        want="can only get individual resources of this type",
    ),
    "its pod": Case("get", "pods", D, "mine"),
    "another pod": Case("get", "pods", D, "theirs", want=NOT_RELATED),
    "a pod of no node": Case("get", "pods", D, "free", want=NOT_RELATED),
    "its pods": Case("list", "pods", fields={"spec__nodeName": "n1"}),
    "pods of another": Case(
        "watch",
        "pods",
        fields={"spec__nodeName": "n2"},
        want="can only list/watch pods with spec.nodeName field selector",
    ),
    "a token of its account": Case("create", "serviceaccounts/token", D, "default"),
    "a token of another account": Case("create", "serviceaccounts/token", D, "x", want=NOT_RELATED),
    "itself": Case("get", "nodes", "", "n1"),
    "another node": Case(
        "get", "nodes", "", "n2", want="node 'n1' cannot read 'n2', only its own Node object"
    ),
    "all nodes": Case(
        "list", "nodes", want="node 'n1' cannot read all nodes, only its own Node object"
    ),
    "deleting itself": Case("delete", "nodes", "", "n1", want=""),
    "its slice": Case("get", SLICES, "", "s1"),
    "changing its slice": Case("update", SLICES, "", "s1"),
    "deleting its slice": Case("delete", SLICES, "", "s1"),
    "another slice": Case("get", SLICES, "", "s2", want=NOT_RELATED),
    "changing another slice": Case("patch", SLICES, "", "s2", want=NOT_RELATED),
    "deleting another slice": Case("delete", SLICES, "", "s2", want=NOT_RELATED),
    "its slices": Case("list", SLICES, fields={"spec__nodeName": "n1"}),
    "deleting its slices": Case("deletecollection", SLICES, fields={"spec__nodeName": "n1"}),
    "deleting all slices": Case(
        "deletecollection",
        SLICES,
        want="can only list/watch/deletecollection resourceslices with nodeName field selector",
    ),
    "its lease": Case("update", LEASES, "kube-node-lease", "n1"),
    "another lease": Case(
        "update",
        LEASES,
        "kube-node-lease",
        "n2",
        want="can only access node lease with the same name as the requesting node",
    ),
    "a lease elsewhere": Case(
        "get",
        LEASES,
        "kube-system",
        "n1",
        want='can only access leases in the "kube-node-lease" system namespace',
    ),
    "all leases": Case(
        "list",
        LEASES,
        "kube-node-lease",
        want="can only get, create, update, patch, or delete a node lease",
    ),
    "a taint rule": Case("get", "resource.k8s.io/devicetaintrules", "", "r", want=""),
    "an event": Case("create", "events", D),
    "a review": Case("create", "authorization.k8s.io/subjectaccessreviews"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_what_a_node_may(world: World, case: Case) -> None:
    await furnished(world)

    decision = world.authorize(
        N1, ask(case.verb, case.what, case.namespace, case.name, **case.fields)
    )

    assert decision == Decision(case.want is None, f"node: {case.want}" if case.want else "")


async def test_who_only_calls_itself_a_node_is_nobody(world: World) -> None:
    await furnished(world)

    assert not world.may(person("system:node:n1"), "get", "nodes", name="n1")
    assert not world.may(User("n1", ("system:nodes",)), "get", "nodes", name="n1")


async def test_what_a_pod_used_is_closed_when_it_is_deleted(world: World) -> None:
    await furnished(world)
    before = world.may(N1, "get", "secrets", "default", "env-secret")

    await world.call(
        MASTER,
        "delete",
        "pods",
        {"gracePeriodSeconds": 0},
        namespace="default",
        name="mine",
    )

    assert [before, world.may(N1, "get", "secrets", "default", "env-secret")] == [True, False]


# -- what only the content of a write shows --------------------------------------------------------


@dataclass(frozen=True)
class Write:
    verb: str
    plural: str
    body: Obj | None = None
    namespace: str = ""
    name: str = ""
    refused: str = ""
    options: dict[str, Any] = field(default_factory=dict)


UID = "the uid of n1"


def mirror(name: str, where: str, **spec: Any) -> Obj:
    pod = pod_on(name, where, **spec)
    pod["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Node", "name": where, "uid": UID, "controller": True}
    ]
    return pod


def projected(**source: Any) -> Obj:
    return {"name": "v", "projected": {"sources": [source]}}


def owned(**changed: Any) -> Obj:
    """Return a mirror pod whose owner reference differs from what it should be."""
    pod = mirror("new", "n1")
    pod["metadata"]["ownerReferences"][0] |= changed
    return pod


OWNER = 'pods "new" is forbidden: node "n1" can only create pods with'
MIRRORED = {"kubernetes.io/config.mirror": "x"}
REFERS = 'pods "new" is forbidden: node "n1" can not create pods that reference'
MERGE = {"patch_type": "application/merge-patch+json"}
SLICE = "can only {} ResourceSlice with the same NodeName as the requesting node"
WRITES = {
    "its own slice": Write("create", SLICES, slice_("new", "n1")),
    "a slice of another node": Write(
        "create",
        SLICES,
        slice_("new", "n2"),
        refused=f'resourceslices.resource.k8s.io "new" is forbidden: {SLICE.format("create")}',
    ),
    "a slice in its own pool": Write("create", SLICES, in_pool("rack-7")),
    "a slice in a pool named like another node": Write(
        "create",
        SLICES,
        in_pool("n2"),
        refused='resourceslices.resource.k8s.io "new" is forbidden: can not create ResourceSlice in'
        ' pool "n2", which is named like another node',
    ),
    "a slice of every node": Write(
        "create",
        SLICES,
        {
            "metadata": {"name": "new"},
            "spec": {
                "driver": "gpu.example.com",
                "allNodes": True,
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            },
        },
        refused=f'resourceslices.resource.k8s.io "new" is forbidden: {SLICE.format("create")}',
    ),
    "a device into another's slice": Write(
        "patch",
        SLICES,
        {"spec": {"devices": [{"name": "mine"}]}},
        name="s2",
        options=MERGE,
        refused='resourceslices.resource.k8s.io "s2" is forbidden: User "system:node:n1" cannot'
        ' patch resource "resourceslices" in API group "resource.k8s.io" at the cluster scope:'
        f" node: {NOT_RELATED}",
    ),
    "deleting its slice": Write("delete", SLICES, name="s1"),
    "registering itself": Write("create", "nodes", _named("n3")),
    "registering another": Write(
        "create",
        "nodes",
        _named("n4"),
        refused='nodes "n4" is forbidden: node "n3" is not allowed to modify node "n4"',
    ),
    "registering with a role": Write(
        "create",
        "nodes",
        _named("n3", labels={"node-role.kubernetes.io/infra": "", "example.com/rack": "4"}),
        refused='nodes "n3" is forbidden: node "n3" is not allowed to set the following labels:'
        " node-role.kubernetes.io/infra",
    ),
    "registering with usual labels": Write(
        "create", "nodes", _named("n3", labels={"kubernetes.io/hostname": "n3"})
    ),
    "removing its taints": Write(
        "patch",
        "nodes",
        {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
        name="n1",
        options=MERGE,
        refused='nodes "n1" is forbidden: node "n1" is not allowed to modify taints',
    ),
    "fencing itself off": Write(
        "patch",
        "nodes",
        {"metadata": {"labels": {"x.node-restriction.kubernetes.io/y": "1"}}},
        name="n1",
        options=MERGE,
        refused='nodes "n1" is forbidden: is not allowed to modify labels:'
        " x.node-restriction.kubernetes.io/y",
    ),
    "its status": Write(
        "patch", "nodes/status", {"status": {"capacity": {"cpu": "4"}}}, name="n1", options=MERGE
    ),
    "the status of another": Write(
        "patch",
        "nodes/status",
        {"status": {"capacity": {"cpu": "4"}}},
        name="n2",
        options=MERGE,
        refused='nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"',
    ),
    "the status of its pod": Write(
        "patch", "pods/status", {"status": {"phase": "Running"}}, D, "mine", options=MERGE
    ),
    "the status of another's pod": Write(
        "patch",
        "pods/status",
        {"status": {"phase": "Failed"}},
        D,
        "theirs",
        options=MERGE,
        refused='pods "theirs" is forbidden: node "n1" can only update pod status for pods with'
        " spec.nodeName set to itself",
    ),
    "labels through the status": Write(
        "patch",
        "pods/status",
        {"metadata": {"labels": {"app": "x"}}},
        D,
        "mine",
        options=MERGE,
        refused='pods "mine" is forbidden: node "n1" cannot update labels through pod status',
    ),
    "deleting its pod": Write("delete", "pods", None, D, "mine"),
    "deleting another's pod": Write(
        "delete",
        "pods",
        None,
        D,
        "theirs",
        refused='pods "theirs" is forbidden: node "n1" can only delete pods with spec.nodeName set'
        " to itself",
    ),
    "evicting its pod": Write("create", "pods/eviction", _named("mine"), D, "mine"),
    "evicting another's pod": Write(
        "create",
        "pods/eviction",
        _named("theirs"),
        D,
        "theirs",
        refused='pods "theirs" is forbidden: node "n1" can only evict pods with spec.nodeName set'
        " to itself",
    ),
    "a pod of its own making": Write(
        "create",
        "pods",
        pod_on("new", "n1"),
        D,
        refused='pods "new" is forbidden: pod does not have "kubernetes.io/config.mirror"'
        ' annotation, node "n1" can only create mirror pods',
    ),
    "a mirror on another node": Write(
        "create",
        "pods",
        mirror("new", "n2"),
        D,
        refused='pods "new" is forbidden: node "n1" can only create pods with spec.nodeName set to'
        " itself",
    ),
    "a mirror that opens a secret": Write(
        "create",
        "pods",
        mirror("new", "n1", volumes=[{"name": "v", "secret": {"secretName": "s"}}]),
        D,
        refused='pods "new" is forbidden: node "n1" can not create pods that reference secrets',
    ),
    "a mirror": Write("create", "pods", mirror("new", "n1"), D),
    "a mirror of nobody": Write(
        "create",
        "pods",
        mirror("new", "n1") | {"metadata": {"name": "new", "annotations": MIRRORED}},
        D,
        refused=f"{OWNER} an owner reference set to itself",
    ),
    "a mirror of a replica set": Write(
        "create",
        "pods",
        owned(apiVersion="apps/v1", kind="ReplicaSet"),
        D,
        refused=f"{OWNER} an owner reference set to itself",
    ),
    "a mirror of another node": Write(
        "create",
        "pods",
        owned(name="n2"),
        D,
        refused=f"{OWNER} an owner reference set to itself",
    ),
    "a mirror that its owner does not control": Write(
        "create",
        "pods",
        owned(controller=False),
        D,
        refused=f"{OWNER} a controller owner reference set to itself",
    ),
    "a mirror that holds up its node": Write(
        "create",
        "pods",
        owned(blockOwnerDeletion=True),
        D,
        refused='pods "new" is forbidden: node "n1" must not set blockOwnerDeletion on an owner'
        " reference",
    ),
    "a mirror of an earlier node": Write(
        "create",
        "pods",
        owned(uid="0"),
        D,
        refused=f'pods "new" is forbidden: node n1 UID mismatch: expected 0 got {UID}',
    ),
    "a mirror with an account": Write(
        "create",
        "pods",
        mirror("new", "n1", serviceAccountName="default"),
        D,
        refused=f"{REFERS} serviceaccounts",
    ),
    "a mirror with a token": Write(
        "create",
        "pods",
        mirror("new", "n1", volumes=[projected(serviceAccountToken={"path": "t"})]),
        D,
        refused=f"{REFERS} serviceaccounts (via projected volumes)",
    ),
    "a mirror with a driver": Write(
        "create",
        "pods",
        mirror("new", "n1", volumes=[{"name": "v", "csi": {"driver": "d"}}]),
        D,
        refused=f"{REFERS} csidrivers (via CSI volumes)",
    ),
    "the made claims of its pod": Write(
        "patch",
        "pods/status",
        {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "x"}]}},
        D,
        "mine",
        options=MERGE,
        refused='pods "mine" is forbidden: node "n1" cannot update resource claim statues',
    ),
    "the extended claim of its pod": Write(
        "patch",
        "pods/status",
        {
            "status": {
                "extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": []}
            }
        },
        D,
        "mine",
        options=MERGE,
        refused='pods "mine" is forbidden: node "n1" cannot update extended resource claim status',
    ),
    "its lease": Write("create", LEASES, _named("n1"), "kube-node-lease"),
    "another's lease": Write(
        "create",
        LEASES,
        _named("n2"),
        "kube-node-lease",
        refused='leases.coordination.k8s.io "n2" is forbidden: can only access node lease with the'
        " same name as the requesting node",
    ),
}


@pytest.mark.parametrize(("name", "write"), WRITES.items(), ids=WRITES.keys())
async def test_what_a_node_writes(world: World, name: str, write: Write) -> None:
    await furnished(world)
    who = node("n3") if name.startswith("registering") else N1
    where = {"namespace": write.namespace, "name": write.name}
    uid = (await world.call(MASTER, "get", "nodes", name="n1"))["metadata"]["uid"]
    body = None if write.body is None else json.loads(json.dumps(write.body).replace(UID, uid))

    reported = await world.refused(who, write.verb, write.plural, body, **where, **write.options)

    assert reported.replace(uid, UID) == write.refused


async def test_a_node_gets_tokens_for_its_pods_only(world: World) -> None:
    await furnished(world)
    pods = {
        name: await world.call(MASTER, "get", "pods", namespace=D, name=name)
        for name in ("mine", "theirs")
    }

    async def refused(name: str, uid: str) -> str:
        bound = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
        body = {"spec": {"boundObjectRef": bound if name else {}}}
        return await world.refused(
            N1, "create", "serviceaccounts/token", body, namespace=D, name="default"
        )

    assert await refused("", "") == (
        'serviceaccounts "default" is forbidden: node requested token not bound to a pod'
    )
    assert await refused("theirs", pods["theirs"]["metadata"]["uid"]) == (
        'serviceaccounts "default" is forbidden: node requested token bound to a pod scheduled on a'
        " different node"
    )
    assert "forbidden" not in await refused("mine", pods["mine"]["metadata"]["uid"])


def test_the_parts_of_a_status_that_name_claims_are_known() -> None:
    """A new one is listed in node_pods.py, so that nodes cannot write it, and here."""
    tables = build_scheme().tables
    status = tables.get("io.k8s.api.core.v1", "PodStatus")

    naming = {
        field.name
        for field in status.fields.values()
        if "resourceClaimName" in names_below(field.type)
    }

    assert naming == {
        "extendedResourceClaimStatus",
        "nodeAllocatableResourceClaimStatuses",
        "resourceClaimStatuses",
    }


def names_below(kind: Type) -> set[str]:
    if isinstance(kind, ListOf | MapOf):
        return names_below(kind.item if isinstance(kind, ListOf) else kind.value)
    if not isinstance(kind, ObjectType):
        return set()
    below = (names_below(field.type) for field in kind.fields.values())
    return set(kind.fields).union(*below)
