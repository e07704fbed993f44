"""Decisions follow roles and bindings, in whatever order these come and go."""

from collections.abc import Awaitable, Callable
from itertools import permutations

import pytest

from server.authorization.world import (
    MASTER,
    RBAC,
    World,
    account,
    ask,
    group,
    person,
    rule,
    user,
)
from sully.server.authorization.attributes import Decision
from sully.server.requests import ResourceRef, User

ALICE = person("alice", "team")
READ = rule("get list", "pods")


async def test_everywhere(world: World) -> None:
    await world.role("pods", READ)
    await world.bind("b", "ClusterRole/pods", [user("alice")])

    assert world.authorize(ALICE, ask("get", "pods", "default")) == Decision(
        True, 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "pods" to User "alice"'
    )
    assert world.may(ALICE, "list", "pods")


async def test_in_one_namespace(world: World) -> None:
    await world.role("pods", READ, namespace="default")
    await world.bind("b", "Role/pods", [group("team")], namespace="default")

    assert world.authorize(ALICE, ask("get", "pods", "default")).reason == (
        'RBAC: allowed by RoleBinding "b/default" of Role "pods" to Group "team"'
    )
    assert not world.may(ALICE, "get", "pods", "kube-system")
    assert not world.may(ALICE, "list", "pods")


async def test_a_role_of_another_namespace_is_another_role(world: World) -> None:
    await world.role("pods", READ, namespace="kube-system")
    await world.bind("b", "Role/pods", [user("alice")], namespace="default")

    assert not world.may(ALICE, "get", "pods", "default")


async def test_a_repeated_question_has_the_answer_of_the_newest_roles(world: World) -> None:
    await world.role("pods", READ)
    await world.bind("b", "ClusterRole/pods", [user("alice")])
    answers = [world.may(ALICE, "get", "pods", "default", name) for name in ("a", "b")]
    await world.call(MASTER, "delete", f"{RBAC}/clusterrolebindings", name="b")
    answers.append(world.may(ALICE, "get", "pods", "default", "a"))
    await world.bind("b", "ClusterRole/pods", [user("alice")])
    answers.append(world.may(ALICE, "get", "pods", "default", "a"))
    await world.call(MASTER, "delete", f"{RBAC}/clusterroles", name="pods")
    answers.append(world.may(ALICE, "get", "pods", "default", "a"))

    assert answers == [True, True, False, True, False]


async def test_a_role_for_some_names_is_asked_for_each_name(world: World) -> None:
    await world.role("some", rule("get", "pods", names="a"))
    await world.role("pods", READ)
    await world.bind("1", "ClusterRole/some", [user("alice")])
    alone = [world.may(ALICE, "get", "pods", "default", name) for name in ("a", "b", "a")]
    await world.bind("2", "ClusterRole/pods", [user("alice")])
    reasons = [world.authorize(ALICE, ask("get", "pods", "", name)).reason for name in "bab"]

    assert alone == [True, False, True]
    assert ["some" in reason for reason in reasons] == [False, True, False]


async def test_paths_are_given_everywhere_only(world: World) -> None:
    await world.role("metrics", {"nonResourceURLs": ["/metrics"], "verbs": ["get"]})
    await world.bind("in", "ClusterRole/metrics", [user("alice")], namespace="default")
    before = world.may(ALICE, "get", "/metrics")
    await world.bind("all", "ClusterRole/metrics", [user("alice")])

    assert [before, world.may(ALICE, "get", "/metrics")] == [False, True]


ACCOUNTS: dict[str, tuple[dict[str, str], User, bool]] = {
    "of the same namespace": ({}, account("robot", "default"), True),
    "named with its namespace": ({"namespace": "kube-system"}, account("robot"), True),
    "of another namespace": ({}, account("robot"), False),
    "a user who looks like one": ({}, person("robot"), False),
}


@pytest.mark.parametrize(("more", "who", "want"), ACCOUNTS.values(), ids=ACCOUNTS.keys())
async def test_service_accounts(world: World, more: dict[str, str], who: User, want: bool) -> None:
    await world.role("pods", READ)
    subject = {"kind": "ServiceAccount", "name": "robot", **more}
    await world.bind("b", "ClusterRole/pods", [subject], namespace="default")

    assert world.may(who, "get", "pods", "default") is want


async def test_a_group_is_not_a_user(world: World) -> None:
    await world.role("pods", READ)
    await world.bind("b", "ClusterRole/pods", [user("team"), group("alice")])

    assert not world.may(ALICE, "get", "pods")


async def test_a_role_that_is_not_there_is_named(world: World) -> None:
    await world.bind("b", "ClusterRole/gone", [user("alice")])
    await world.bind("c", "Role/away", [user("alice")], namespace="default")

    decision = world.authorize(ALICE, ask("get", "pods", "default"))

    assert decision == Decision(
        False,
        'rbac: RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found,'
        ' role.rbac.authorization.k8s.io "away" not found]',
    )


Step = Callable[[World], Awaitable[object]]


async def make_role(world: World) -> None:
    await world.role("pods", READ)


async def bind(world: World) -> None:
    await world.bind("b", "ClusterRole/pods", [user("alice")])


async def bind_others(world: World) -> None:
    await world.bind("c", "ClusterRole/pods", [user("bob")])


@pytest.mark.parametrize("steps", list(permutations((make_role, bind, bind_others))))
async def test_the_order_of_writes_does_not_matter(world: World, steps: tuple[Step, ...]) -> None:
    for step in steps:
        await step(world)
        world.authorize(ALICE, ask("get", "pods"))

    assert world.may(ALICE, "get", "pods")


async def change_subjects(world: World) -> None:
    body = {"subjects": [user("bob")]}
    await _patch(world, "clusterrolebindings", "b", body)


async def change_rules(world: World) -> None:
    await _patch(world, "clusterroles", "pods", {"rules": [rule("watch", "pods")]})


async def drop_binding(world: World) -> None:
    await world.call(MASTER, "delete", f"{RBAC}/clusterrolebindings", name="b")


async def drop_role(world: World) -> None:
    await world.call(MASTER, "delete", f"{RBAC}/clusterroles", name="pods")


async def _patch(world: World, plural: str, name: str, body: object) -> None:
    await world.caller(MASTER).call(
        "patch",
        ResourceRef(RBAC, "v1", plural, "", name),
        body=body,
        patch_type="application/merge-patch+json",
    )


@pytest.mark.parametrize("step", [change_subjects, change_rules, drop_binding, drop_role])
async def test_what_is_taken_away_is_gone_immediately(world: World, step: Step) -> None:
    await make_role(world)
    await bind(world)
    before = world.may(ALICE, "get", "pods")

    await step(world)

    assert [before, world.may(ALICE, "get", "pods")] == [True, False]


async def test_decisions_survive_a_compacted_history(world: World) -> None:
    await make_role(world)
    await bind(world)
    assert world.may(ALICE, "get", "pods")
    await drop_role(world)
    await world.role("pods", rule("delete", "pods"))
    await world.store.compact(world.store.revision)

    # Nobody asked in between, so the events are gone; the next look lists again.
    await world.api.authorizer.catch_up()

    assert [world.may(ALICE, verb, "pods") for verb in ("get", "delete")] == [False, True]


async def test_before_the_start_only_masters_are_let_in() -> None:
    world = World()

    assert world.may(MASTER, "delete", "pods")
    assert not world.may(ALICE, "get", "/healthz")
