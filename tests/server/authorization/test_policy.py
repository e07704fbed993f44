"""The default roles: created, completed at each start, and enough for those who run here."""

import asyncio
import importlib
import pkgutil
from typing import Any

import pytest

from server.authorization.world import MASTER, RBAC, World, account, ask
from sully import controllers
from sully.machinery.errors import Forbidden
from sully.machinery.gates import Gates
from sully.server.api import Api
from sully.server.authorization.attributes import Attributes, Decision
from sully.server.authorization.enforce import refusal
from sully.server.authorization.policy.builders import AUTO_UPDATE
from sully.server.authorization.policy.components import CONTROLLERS, GATED
from sully.server.authorization.policy.reconcile import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    reconciled_binding,
    reconciled_role,
)
from sully.server.bootstrap import AUTHENTICATION, ensure_authentication, ensure_policy
from sully.server.requests import ResourceRef, User
from sully.testing.cluster import in_process
from sully.testing.patience import PATIENCE

Obj = dict[str, Any]


def _names(objects: tuple[Obj, ...]) -> set[str]:
    return {obj["metadata"]["name"] for obj in objects}


async def _all(world: World, plural: str) -> dict[str, Obj]:
    listed = await world.caller(MASTER).call("list", ResourceRef(RBAC, "v1", plural))
    return {item.obj["metadata"]["name"]: item.obj for item in listed.items}


async def test_a_new_cluster_has_them_all(world: World) -> None:
    roles, bindings = await _all(world, "clusterroles"), await _all(world, "clusterrolebindings")

    assert roles.keys() == _names(CLUSTER_ROLES)
    assert bindings.keys() == _names(CLUSTER_ROLE_BINDINGS)
    for obj in (*roles.values(), *bindings.values()):
        assert obj["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
        assert obj["metadata"]["annotations"] == {AUTO_UPDATE: "true"}


async def test_another_start_changes_nothing(world: World) -> None:
    before = world.store.revision

    await ensure_policy(world.caller(MASTER))

    assert world.store.revision == before


async def test_components_can_read_how_clients_are_authenticated(world: World) -> None:
    await ensure_authentication(world.caller(MASTER), "old")
    await ensure_authentication(world.caller(MASTER), "new")
    before = world.store.revision
    await ensure_authentication(world.caller(MASTER), "new")

    assert world.store.revision == before
    for name in ("kube-controller-manager", "kube-scheduler"):
        component = User(f"system:{name}")
        ref = ResourceRef("", "v1", "configmaps", "kube-system", AUTHENTICATION)
        read = await world.caller(component).call("get", ref)
        assert read.obj["data"] == {"client-ca-file": "new"}
    other = ResourceRef("", "v1", "configmaps", "kube-system", "other")
    with pytest.raises(Forbidden):
        await world.caller(User("system:kube-scheduler")).call("get", other)


async def test_every_binding_is_to_a_role_there_is() -> None:
    assert {binding["roleRef"]["name"] for binding in CLUSTER_ROLE_BINDINGS} <= _names(
        CLUSTER_ROLES
    )


async def _patch(world: World, plural: str, name: str, body: Obj) -> None:
    await world.caller(MASTER).call(
        "patch",
        ResourceRef(RBAC, "v1", plural, "", name),
        body=body,
        patch_type="application/merge-patch+json",
    )


EXTRA: Obj = {"apiGroups": ["x.dev"], "resources": ["things"], "verbs": ["get"]}


async def test_what_was_taken_comes_back_and_what_was_added_stays(world: World) -> None:
    await _patch(world, "clusterroles", "system:basic-user", {"rules": [EXTRA]})
    subjects = [{"apiGroup": RBAC, "kind": "User", "name": "x"}]
    await _patch(world, "clusterrolebindings", "system:discovery", {"subjects": subjects})

    await ensure_policy(world.caller(MASTER))

    role = (await _all(world, "clusterroles"))["system:basic-user"]
    assert role["rules"][0] == EXTRA
    who = account("anybody")
    assert world.may(who, "create", "authorization.k8s.io/selfsubjectaccessreviews")
    bound = (await _all(world, "clusterrolebindings"))["system:discovery"]["subjects"]
    assert [item["name"] for item in bound] == ["x", "system:authenticated"]


async def test_a_source_that_reports_it_is_left_alone(world: World) -> None:
    body = {"rules": [EXTRA], "metadata": {"annotations": {AUTO_UPDATE: "false"}}}
    await _patch(world, "clusterroles", "system:basic-user", body)

    await ensure_policy(world.caller(MASTER))

    assert (await _all(world, "clusterroles"))["system:basic-user"]["rules"] == [EXTRA]


def test_nothing_lacks_in_what_is_needed() -> None:
    assert [reconciled_role(role, role) for role in CLUSTER_ROLES] == [None] * len(CLUSTER_ROLES)
    assert {reconciled_binding(binding, binding) is None for binding in CLUSTER_ROLE_BINDINGS} == {
        True
    }


async def test_gathered_roles_contain_each_other(world: World) -> None:
    roles = await _all(world, "clusterroles")
    view, edit, admin = (roles[name]["rules"] for name in ("view", "edit", "admin"))

    assert all(rule in edit for rule in view)
    assert all(rule in admin for rule in edit)


# What no controller may, whatever else it has to do.
NEVER = (
    ask("create", "rbac.authorization.k8s.io/clusterrolebindings"),
    ask("create", "pods/exec", "default"),
    ask("impersonate", "users"),
    ask("create", "resource.k8s.io/devicetaintrules"),
    ask("get", "/metrics"),
)


# The first gives the agents of clusters rights; more than it has itself it cannot give. The second
# creates the rules of policies.
EXCEPTIONS = {
    "managed-cluster-controller": NEVER[:1],
    "device-maintenance-controller": (ask("create", "resource.k8s.io/devicetaintrules"),),
    "device-taint-policy-controller": (ask("create", "resource.k8s.io/devicetaintrules"),),
}


@pytest.mark.parametrize("name", CONTROLLERS)
async def test_controllers_are_not_masters(world: World, name: str) -> None:
    allowed = [asked for asked in NEVER if world.authorize(account(name), asked).allowed]

    assert allowed == list(EXCEPTIONS.get(name, ()))


@pytest.mark.parametrize("switch", [True, False], ids=["on", "off"])
async def test_only_with_its_gate_may_eviction_ask_budgets(switch: bool) -> None:
    gates = Gates({"SullyNoExecuteWithPodDisruptionBudget": switch})
    async with World.running(gates) as world:
        who = account("device-taint-eviction-controller")

        assert world.may(who, "create", "pods/eviction", "default", "p") is switch


async def test_nobody_escalates_but_who_gathers_roles(world: World) -> None:
    asked = [ask(verb, "rbac.authorization.k8s.io/clusterroles") for verb in ("bind", "escalate")]
    able = {
        controller
        for controller in CONTROLLERS
        for a in asked
        if world.authorize(account(controller), a).allowed
    }

    assert able == {"clusterrole-aggregation-controller"}


READERS = ("generic-garbage-collector", "namespace-controller")  # they empty every kind there is


@pytest.mark.parametrize("name", sorted(CONTROLLERS.keys() - set(READERS)))
async def test_controllers_do_not_read_secrets(world: World, name: str) -> None:
    assert not world.may(account(name), "get", "secrets", "default", "s")


async def test_the_controllers_of_a_running_plane_have_what_they_need() -> None:
    async with in_process() as plane, asyncio.timeout(PATIENCE):
        admin, refused = plane.direct(), _refusals(plane.api)
        body = {"metadata": {"name": "team"}}
        await admin.call("create", ResourceRef("", "v1", "namespaces"), body=body)
        await _until(admin, ResourceRef("", "v1", "serviceaccounts", "team", "default"))
        await _until(admin, ResourceRef("", "v1", "configmaps", "team", "kube-root-ca.crt"))

        await admin.call("delete", ResourceRef("", "v1", "namespaces", "", "team"))

        await _until(admin, ResourceRef("", "v1", "namespaces", "", "team"), there=False)
        assert refused == []


def _refusals(api: Api) -> list[str]:
    """Return a list that will hold whatever a user was refused from now on."""
    results: list[str] = []
    authorizer: Any = api.authorizer
    authorize = authorizer.authorize

    def listening(user: User, attributes: Attributes) -> Decision:
        decision: Decision = authorize(user, attributes)
        if not decision.allowed:
            results.append(str(refusal(user, attributes, decision)))
        return decision

    authorizer.authorize = listening
    return results


async def _until(admin: Any, ref: ResourceRef, *, there: bool = True) -> None:
    """Wait for an object to come, or to go, on its watch."""
    options = {"fieldSelector": f"metadata.name={ref.name}"}
    place = ResourceRef(ref.group, ref.version, ref.plural, ref.namespace)
    listed = await admin.call("list", place, options=options)
    if bool(listed.items) is there:
        return
    options["resourceVersion"] = listed.obj["metadata"]["resourceVersion"]
    async for batch in admin.watch(place, options=options):
        if any((kind != "DELETED") is there for kind, _ in batch):
            return


def _controllers() -> dict[str, type]:
    """Return every controller of the program by its name."""
    result: dict[str, type] = {}
    for module in pkgutil.walk_packages(controllers.__path__, f"{controllers.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and hasattr(value, "reconcile") and hasattr(value, "name"):
                result[value.name] = value
    return result


# Loops that are part of another controller and act under its name, or as the scheduler, or that
# write nothing.
SHARING = {
    "cluster-taint-policy-status",
    "simulated-cluster-agents",
    "managed-cluster-built-in-sets",
    "managed-cluster-cleanup",
    "managed-cluster-clock-sync",
    "managed-cluster-set-bindings",
    "simulated-kubelet",
    "simulated-leases",
    "device-selector-evaluation",
    "device-taint-deallocation",
    "device-taint-rule-status",
    "resource-claim-release",
    "taint-expiry-controller-managedclusters",
    "scheduler",
    "scheduler-binding",
    "stale-pod-disruption",
    "taint-history-retention",
}


def test_every_controller_has_a_role() -> None:
    assert len(_controllers()) > 5
    gated = {subject["name"] for _, bound in GATED.values() for subject in bound["subjects"]}
    assert _controllers().keys() - CONTROLLERS.keys() - gated <= SHARING
