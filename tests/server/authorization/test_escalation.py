"""Nobody gives away what they do not have."""

from typing import Any

import pytest

from server.authorization.world import MASTER, RBAC, World, person, rule, user
from sully.server.requests import User

Obj = dict[str, Any]
ALICE = person("alice", "team")
D = "default"
READ = rule("get", "pods")
WRITES_ROLES = rule("create update patch delete get", "roles rolebindings", RBAC)
WRITES_ALL = rule(
    "create update patch get", "clusterroles clusterrolebindings roles rolebindings", RBAC
)
HEAD = 'user "alice" (groups=["team" "system:authenticated"]) is attempting to grant RBAC'
LACKS = f"{HEAD} permissions not currently held:\n"


async def give(world: World, *rules: Obj, namespace: str = D) -> None:
    """Give Alice some rights, in a namespace or (with none) everywhere."""
    await world.role("hers", *rules)
    await world.bind("hers", "ClusterRole/hers", [user("alice")], namespace=namespace)


def role(name: str, *rules: Obj, **more: Any) -> Obj:
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def binding(name: str, kind: str, referred: str) -> Obj:
    ref = {"kind": kind, "name": referred}
    return {"metadata": {"name": name}, "roleRef": ref, "subjects": [user("bob")]}


async def test_a_role_with_more_than_its_writer_has(world: World) -> None:
    await give(world, WRITES_ROLES, READ)
    body = role("r", rule("get list", "pods secrets"), rule("get", "pods/log"))

    reported = await world.refused(ALICE, "create", f"{RBAC}/roles", body, namespace=D)

    assert reported == (
        f'roles.rbac.authorization.k8s.io "r" is forbidden: {LACKS}'
        '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}\n'
        '{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}'
    )


async def test_a_role_with_what_its_writer_has(world: World) -> None:
    await give(world, WRITES_ROLES, READ)

    assert not await world.refused(ALICE, "create", f"{RBAC}/roles", role("r", READ), namespace=D)


async def test_rights_count_in_their_namespace(world: World) -> None:
    await give(world, WRITES_ROLES, READ)
    await world.role("writer", WRITES_ROLES)
    await world.bind("w", "ClusterRole/writer", [user("alice")], namespace="kube-system")

    where = {"namespace": "kube-system"}
    reported = await world.refused(ALICE, "create", f"{RBAC}/roles", role("r", READ), **where)

    assert reported.endswith('{APIGroups:[""], Resources:["pods"], Verbs:["get"]}')


@pytest.mark.parametrize("verb", ["update", "patch", "apply"])
async def test_a_role_cannot_grow_beyond_its_writer(world: World, verb: str) -> None:
    await give(world, WRITES_ROLES, READ)
    await world.role("r", READ, namespace=D)
    body = role("r", READ, rule("delete", "pods"))
    more: Obj = {}
    if verb == "patch":
        more = {"patch_type": "application/merge-patch+json"}
    if verb == "apply":
        body |= {"apiVersion": f"{RBAC}/v1", "kind": "Role"}
        more = {"options": {"fieldManager": "x", "force": "true"}}

    reported = await world.refused(
        ALICE, verb, f"{RBAC}/roles", body, namespace=D, name="r", **more
    )

    assert reported.endswith('{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}')


async def test_who_may_escalate_may(world: World) -> None:
    await give(world, WRITES_ROLES, rule("escalate", "roles", RBAC))

    assert not await world.refused(ALICE, "create", f"{RBAC}/roles", role("r", READ), namespace=D)


async def test_who_may_escalate_one_role_may_that_one(world: World) -> None:
    await give(world, WRITES_ROLES, rule("escalate", "roles", RBAC, "known"))
    for name in ("known", "other"):
        await world.role(name, namespace=D)

    async def refused(name: str) -> bool:
        where = {"namespace": D, "name": name}
        return bool(
            await world.refused(ALICE, "update", f"{RBAC}/roles", role(name, READ), **where)
        )

    assert [await refused("known"), await refused("other")] == [False, True]


BINDINGS = {
    "a role she has": ("ClusterRole", "reads", ""),
    "a role she has not": (
        "ClusterRole",
        "view",
        'rolebindings.rbac.authorization.k8s.io "b" is forbidden: ',
    ),
    "everything": (
        "ClusterRole",
        "cluster-admin",
        'rolebindings.rbac.authorization.k8s.io "b" is forbidden: ',
    ),
    "a role that is not there": (
        "ClusterRole",
        "nothing",
        'rolebindings.rbac.authorization.k8s.io "nothing" not found',
    ),
    "a role of the namespace that is not there": (
        "Role",
        "nothing",
        'rolebindings.rbac.authorization.k8s.io "nothing" not found',
    ),
}


@pytest.mark.parametrize(("kind", "name", "want"), BINDINGS.values(), ids=BINDINGS.keys())
async def test_binding(world: World, kind: str, name: str, want: str) -> None:
    await give(world, WRITES_ROLES, READ)
    await world.role("reads", READ)
    body = binding("b", kind, name)

    reported = await world.refused(ALICE, "create", f"{RBAC}/rolebindings", body, namespace=D)

    assert reported.startswith(want)
    assert bool(reported) is bool(want)


async def test_who_may_bind_a_role_may(world: World) -> None:
    await give(world, WRITES_ROLES, rule("bind", "clusterroles", RBAC, "cluster-admin"))

    async def refused(name: str) -> bool:
        body = binding(f"b-{name}", "ClusterRole", name)
        return bool(await world.refused(ALICE, "create", f"{RBAC}/rolebindings", body, namespace=D))

    assert [await refused("cluster-admin"), await refused("view")] == [False, True]


async def test_everywhere_needs_the_rights_everywhere(world: World) -> None:
    await give(world, WRITES_ALL, namespace="")
    await world.role("reads", READ)
    await world.bind("local", "ClusterRole/reads", [user("alice")], namespace=D)
    body = binding("b", "ClusterRole", "reads")

    reported = await world.refused(ALICE, "create", f"{RBAC}/clusterrolebindings", body)

    assert reported == (
        f'clusterrolebindings.rbac.authorization.k8s.io "b" is forbidden: {LACKS}'
        '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'
    )


GATHERS = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}


async def test_only_cluster_admins_gather_rules(world: World) -> None:
    await give(world, WRITES_ALL, namespace="")
    body = role("sum", aggregationRule=GATHERS)
    reported = await world.refused(ALICE, "create", f"{RBAC}/clusterroles", body)
    await world.bind("root", "ClusterRole/cluster-admin", [user("alice")])

    assert reported == (
        'clusterroles.rbac.authorization.k8s.io "sum" is forbidden: must have cluster-admin'
        " privileges to use the aggregationRule"
    )
    assert not await world.refused(ALICE, "create", f"{RBAC}/clusterroles", body)


async def test_the_garbage_collector_may_let_a_role_go(world: World) -> None:
    await give(world, WRITES_ROLES)
    await world.role("r", READ, namespace=D, metadata={"finalizers": ["x.dev/hold"]})
    result = await world.call(MASTER, "get", f"{RBAC}/roles", namespace=D, name="r")
    changed = {**result, "metadata": {**result["metadata"], "finalizers": []}}
    where = {"namespace": D, "name": "r"}

    assert not await world.refused(ALICE, "update", f"{RBAC}/roles", changed, **where)


async def test_a_role_that_is_missing_is_reported_with_what_lacks(world: World) -> None:
    await give(world, WRITES_ROLES)
    await world.bind("gone", "ClusterRole/gone", [user("alice")])

    reported = await world.refused(ALICE, "create", f"{RBAC}/roles", role("r", READ), namespace=D)

    assert reported.endswith(
        '; resolution errors: [clusterrole.rbac.authorization.k8s.io "gone" not found]'
    )


async def test_masters_and_cluster_admins_may(world: World) -> None:
    await world.bind("root", "ClusterRole/cluster-admin", [user("alice")])
    body = role("r", rule("*", "*", "*"), {"nonResourceURLs": ["*"], "verbs": ["*"]})

    for name, who in (("a", ALICE), ("b", User("root", ("system:masters",)))):
        named = {**body, "metadata": {"name": name}}
        assert not await world.refused(who, "create", f"{RBAC}/clusterroles", named)


async def test_a_put_that_creates_needs_that_right_too(world: World) -> None:
    await give(world, rule("update get", "roles", RBAC), READ)
    where = {"namespace": D, "name": "r"}

    reported = await world.refused(ALICE, "update", f"{RBAC}/roles", role("r", READ), **where)

    assert reported == (
        'roles.rbac.authorization.k8s.io "r" is forbidden: User "alice" cannot create resource'
        ' "roles" in API group "rbac.authorization.k8s.io" in the namespace "default"'
    )
