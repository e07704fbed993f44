"""The status of a claim has two owners: who allocates, and who drives the devices."""

from dataclasses import dataclass
from typing import Any

import pytest

import manifests
from manifests import claim_spec
from server.authorization.world import MASTER, World, account, person, rule, user
from sully.machinery.gates import Gates
from sully.machinery.serialization.codec import copy
from sully.server.requests import User

Obj = dict[str, Any]
CLAIMS = "resource.k8s.io/resourceclaims"
RESOURCE = "resource.k8s.io"
NODE = "authentication.kubernetes.io/node-name"
D = "default"
STATUS = rule("update", "resourceclaims/status", RESOURCE)
SPEC = claim_spec("c")
RESULT: Obj = {"request": "r", "driver": "a.dev", "pool": "n1", "device": "d0"}
ON_N1: Obj = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    ]
}
ON_TWO: Obj = {"nodeSelectorTerms": ON_N1["nodeSelectorTerms"] * 2}
ALLOCATION: Obj = {"devices": {"results": [RESULT]}, "nodeSelector": ON_N1}
RESERVED: Obj = {"resource": "pods", "name": "p", "uid": "1"}
REPORT: Obj = {"driver": "a.dev", "pool": "n1", "device": "d0", "data": {"x": 1}}


ACCOUNT = "system:serviceaccount:drivers:a"


@dataclass(frozen=True)
class Case:
    rules: tuple[Obj, ...]
    before: Obj
    change: Obj
    lacks: str = ""  # subresource whose right is missing
    verbs: str = "[arbitrary-node:update]"
    node: str = ""
    who: str = ACCOUNT
    namespaced: bool = False  # whether the rights are for one namespace


BINDS = rule("update", "resourceclaims/binding", RESOURCE)
ANYWHERE = rule("arbitrary-node:update", "resourceclaims/driver", RESOURCE, "a.dev")
NEAR = rule("associated-node:update", "resourceclaims/driver", RESOURCE, "a.dev")
PATCHES = rule("patch", "resourceclaims/binding", RESOURCE)
OTHER = rule("arbitrary-node:update", "resourceclaims/driver", RESOURCE, "b.dev")
ALLOCATED: Obj = {"allocation": ALLOCATION}
CASES = {
    "allocating": Case((BINDS,), {}, ALLOCATED),
    "allocating with the status alone": Case((), {}, ALLOCATED, lacks="binding"),
    "reserving": Case((BINDS,), ALLOCATED, {"reservedFor": [RESERVED]}),
    "reserving with the status alone": Case(
        (), ALLOCATED, {"reservedFor": [RESERVED]}, lacks="binding"
    ),
    "reserving as a driver": Case(
        (ANYWHERE,), ALLOCATED, {"reservedFor": [RESERVED]}, lacks="binding"
    ),
    "reporting": Case((ANYWHERE,), ALLOCATED, {"devices": [REPORT]}),
    "reporting with the status alone": Case((), ALLOCATED, {"devices": [REPORT]}, lacks="driver"),
    "reporting as another driver": Case((OTHER,), ALLOCATED, {"devices": [REPORT]}, lacks="driver"),
    "reporting on its node": Case((NEAR,), ALLOCATED, {"devices": [REPORT]}, node="n1"),
    "reporting on another node": Case(
        (NEAR,),
        ALLOCATED,
        {"devices": [REPORT]},
        node="n2",
        lacks="driver",
    ),
    "reporting from nowhere": Case((NEAR,), ALLOCATED, {"devices": [REPORT]}, lacks="driver"),
    "reporting near the claim, without the right": Case(
        (),
        ALLOCATED,
        {"devices": [REPORT]},
        node="n1",
        lacks="driver",
        verbs="[associated-node:update arbitrary-node:update]",
    ),
    "reporting on its node as a person": Case(
        (NEAR,), ALLOCATED, {"devices": [REPORT]}, node="n1", who="driver", lacks="driver"
    ),
    "reporting on one of two nodes": Case(
        (NEAR,),
        {"allocation": ALLOCATION | {"nodeSelector": ON_TWO}},
        {"devices": [REPORT]},
        node="n1",
        lacks="driver",
    ),
    "allocating with a right in the namespace": Case(
        (BINDS,), {}, ALLOCATED, lacks="binding", namespaced=True
    ),
    "reporting with a right in the namespace": Case(
        (ANYWHERE,), ALLOCATED, {"devices": [REPORT]}, namespaced=True
    ),
    "allocating with the right to patch": Case((PATCHES,), {}, ALLOCATED, lacks="binding"),
    "freeing devices that a driver has reported on": Case(
        (BINDS,), {**ALLOCATED, "devices": [REPORT]}, {"allocation": None, "devices": []}
    ),
    "freeing devices with the status alone": Case(
        (), {**ALLOCATED, "devices": [REPORT]}, {"allocation": None}, lacks="binding"
    ),
    "changing nothing": Case((), ALLOCATED, {}),
}


async def _claim(world: World, status: Obj) -> Obj:
    body = manifests.body("ResourceClaim", "c", SPEC)
    made = await world.call(MASTER, "create", CLAIMS, body, namespace=D)
    changed = {**copy(made), "status": status}
    return await world.call(MASTER, "update", f"{CLAIMS}/status", changed, namespace=D, name="c")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_parts_of_a_status(world: World, case: Case) -> None:
    await world.role("status", STATUS)
    await world.bind("status", "ClusterRole/status", [user(case.who)])
    await world.role("r", *case.rules)
    await world.bind("b", "ClusterRole/r", [user(case.who)], D if case.namespaced else "")
    claim = copy(await _claim(world, case.before))
    claim["status"] |= case.change
    who = User(case.who, person("").groups, extra={NODE: (case.node,)} if case.node else {})

    reported = await world.refused(who, "update", f"{CLAIMS}/status", claim, namespace=D, name="c")

    assert reported == _expected(case)


def _expected(case: Case) -> str:
    if not case.lacks:
        return ""
    prefix = 'ResourceClaim.resource.k8s.io "c" is invalid: status.'
    cannot = f'is forbidden: User "{case.who}" cannot'
    if case.lacks == "binding":
        return (
            f"{prefix}allocation: Forbidden: changing status.allocation or status.reservedFor"
            ' requires resource="resourceclaims/binding", verb="update" permission:'
            f' resourceclaims.resource.k8s.io {cannot} update resource "resourceclaims/binding" in'
            ' API group "resource.k8s.io" at the cluster scope'
        )
    first = case.verbs.strip("[]").split()[0]
    return (
        f"{prefix}devices: Forbidden: changing status.devices requires"
        f' resource="resourceclaims/driver", verb="{case.verbs}" permission:'
        f' resourceclaims.resource.k8s.io "a.dev" {cannot} {first} resource'
        ' "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "default"'
    )


async def test_a_patch_needs_the_right_to_patch(world: World) -> None:
    status = rule("patch", "resourceclaims/status", RESOURCE)
    await world.role("r", status, BINDS)
    await world.bind("b", "ClusterRole/r", [user("scheduler")])
    await _claim(world, {})
    change = {"status": ALLOCATED}

    reported = await world.refused(
        person("scheduler"), "patch", f"{CLAIMS}/status", change, namespace=D, name="c"
    )

    assert 'cannot patch resource "resourceclaims/binding"' in reported
    await world.role("patches", PATCHES)
    await world.bind("c", "ClusterRole/patches", [user("scheduler")])
    assert not await world.refused(
        person("scheduler"), "patch", f"{CLAIMS}/status", change, namespace=D, name="c"
    )


async def test_with_the_gate_off_the_status_is_one() -> None:
    off = Gates({"DRAResourceClaimGranularStatusAuthorization": False})
    async with World.running(gates=off) as world:
        await _check_one(world)


async def _check_one(world: World) -> None:
    await world.role("r", STATUS)
    await world.bind("b", "ClusterRole/r", [user("driver")])
    claim = {**copy(await _claim(world, {})), "status": ALLOCATED}
    where = {"namespace": D, "name": "c"}
    assert not await world.refused(person("driver"), "update", f"{CLAIMS}/status", claim, **where)


NOTE = "sully.dev/allocated-attributes"
AUTHORS = {
    "the scheduler": (person("system:kube-scheduler"), "new"),
    "the claim controller": (account("resource-claim-controller"), "new"),
    "an admin of the cluster": (MASTER, "new"),
    "an editor of the namespace": (person("editor"), "old"),
}


@pytest.mark.parametrize(("who", "want"), AUTHORS.values(), ids=AUTHORS.keys())
async def test_only_who_allocates_notes_what_devices_were(
    world: World, who: User, want: str
) -> None:
    await world.bind("edit", "ClusterRole/edit", [{"kind": "User", "name": "editor"}], "default")
    claims = "resource.k8s.io/resourceclaims"
    body = {
        "metadata": {"name": "noted", "annotations": {NOTE: "old"}},
        "spec": SPEC,
    }
    await world.call(MASTER, "create", claims, body, namespace="default")

    changed = await world.call(
        who,
        "patch",
        claims,
        {"metadata": {"annotations": {NOTE: "new"}}},
        namespace="default",
        name="noted",
        patch_type="application/merge-patch+json",
    )

    assert changed["metadata"]["annotations"] == {NOTE: want}


PROTECTION = "resource.kubernetes.io/delete-protection"
NOTHING: tuple[list[str], Obj] = ([], {})
PROTECTED: tuple[list[str], Obj] = ([PROTECTION], {NOTE: "new"})
GRANULAR = "DRAResourceClaimGranularStatusAuthorization"


@dataclass(frozen=True)
class Protected:
    who: User
    want: tuple[list[str], Obj]
    status: Obj
    finalizers: tuple[str, ...] = (PROTECTION, "other.io/not-taken")


PROTECTING = {
    "the scheduler": Protected(person("system:kube-scheduler"), PROTECTED, ALLOCATED),
    "nothing allocated": Protected(person("system:kube-scheduler"), NOTHING, {}),
    "no finalizer sent": Protected(
        person("system:kube-scheduler"), ([], {NOTE: "new"}), ALLOCATED, finalizers=()
    ),
    "who may not note": Protected(person("driver"), ([PROTECTION], {}), ALLOCATED),
}


@pytest.mark.parametrize("case", PROTECTING.values(), ids=PROTECTING.keys())
async def test_an_allocation_brings_along_what_protects_the_claim(case: Protected) -> None:
    async with World.running(gates=Gates({GRANULAR: False})) as world:
        await world.role("r", STATUS)
        await world.bind("b", "ClusterRole/r", [user("driver")])
        claim = {**copy(await _claim(world, {})), "status": case.status}
        claim["metadata"] |= {
            "finalizers": list(case.finalizers),
            "annotations": {NOTE: "new", "x.io/other": "not taken"},
        }

        where = {"namespace": D, "name": "c"}
        written = await world.call(case.who, "update", f"{CLAIMS}/status", claim, **where)

    metadata = written["metadata"]
    assert (metadata.get("finalizers", []), metadata.get("annotations", {})) == case.want
