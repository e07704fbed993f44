"""Acting as another user: headers, permissions, and the resulting user."""

from __future__ import annotations

import pytest

from server.authentication.tables import Allow
from sully.machinery.errors import BadRequest, Forbidden
from sully.server.authentication.impersonation import RequestedUser, impersonate, requested_user
from sully.server.authorization.attributes import Attributes
from sully.server.requests import User

BOB = User("bob", ("system:authenticated",))
LIST = Attributes("list", "", "v1", "pods", namespace="default")


def headers(*pairs: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode()) for name, value in pairs]


READ = {
    "nothing": ((("Accept", "*/*"),), None),
    "a user": ((("Impersonate-User", "al"),), RequestedUser("al")),
    "groups in order": (
        (("Impersonate-User", "al"), ("Impersonate-Group", "b"), ("Impersonate-Group", "a")),
        RequestedUser("al", groups=["b", "a"]),
    ),
    "uid": ((("Impersonate-User", "al"), ("Impersonate-Uid", "u")), RequestedUser("al", "u")),
    "extra": (
        (
            ("Impersonate-User", "al"),
            ("Impersonate-Extra-Scopes", "view"),
            ("Impersonate-Extra-scopes", "edit"),
            ("Impersonate-Extra-example.com%2fteam", "x"),
        ),
        RequestedUser("al", extra={"scopes": ["view", "edit"], "example.com/team": ["x"]}),
    ),
    "the first user counts": (
        (("Impersonate-User", "al"), ("Impersonate-User", "eve")),
        RequestedUser("al"),
    ),
    "letters beyond": ((("Impersonate-User", "zoë"),), RequestedUser("zoë")),
    "an empty user": ((("Impersonate-User", ""),), None),
    "an unknown header": ((("Impersonate-Everything", "yes"),), None),
}


@pytest.mark.parametrize("name", READ)
def test_reading_the_headers(name: str) -> None:
    sent, result = READ[name]

    assert requested_user(headers(*sent)) == result


NAMELESS = {
    "group": (
        ("Impersonate-Group", "a"),
        'UID:"", Groups:[]string{"a"}, Extra:map[string][]string(nil)}',
    ),
    "uid": (
        ("Impersonate-Uid", "u"),
        'UID:"u", Groups:[]string(nil), Extra:map[string][]string(nil)}',
    ),
    "extra": (
        ("Impersonate-Extra-x", "y"),
        'UID:"", Groups:[]string(nil), Extra:map[string][]string{"x":[]string{"y"}}}',
    ),
}


@pytest.mark.parametrize("name", NAMELESS)
def test_without_a_user_nothing_else_can_be_asked(name: str) -> None:
    sent, shown = NAMELESS[name]

    with pytest.raises(BadRequest) as refused:
        requested_user(headers(sent))
    assert refused.value.message == (
        f'requested &user.DefaultInfo{{Name:"", {shown} without impersonating a user name'
    )


ALICE = ("impersonate", "users", "alice")
# name → (requested, what bob may, whom he becomes: groups and the narrow permission used)
BECOME: dict[str, tuple[RequestedUser, list[tuple[str, str, str]], tuple[tuple[str, ...], str]]] = {
    "a user": (RequestedUser("alice"), [ALICE], (("system:authenticated",), "")),
    "a user with groups": (
        RequestedUser("alice", groups=["dev"]),
        [ALICE, ("impersonate", "groups", "dev")],
        (("dev", "system:authenticated"), ""),
    ),
    "with the group for all": (
        RequestedUser("alice", groups=["system:authenticated"]),
        [ALICE, ("impersonate", "groups", "system:authenticated")],
        (("system:authenticated",), ""),
    ),
    "with the group for nobody": (
        RequestedUser("alice", groups=["system:unauthenticated"]),
        [ALICE, ("impersonate", "groups", "system:unauthenticated")],
        (("system:unauthenticated",), ""),
    ),
    "nobody": (
        RequestedUser("system:anonymous"),
        [("impersonate", "users", "system:anonymous")],
        (("system:unauthenticated",), ""),
    ),
    "a service account": (
        RequestedUser("system:serviceaccount:team:robot"),
        [("impersonate", "serviceaccounts", "robot")],
        (("system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"), ""),
    ),
    "a service account with other groups": (
        RequestedUser("system:serviceaccount:team:robot", groups=["dev"]),
        [("impersonate", "serviceaccounts", "robot"), ("impersonate", "groups", "dev")],
        (("dev", "system:authenticated"), ""),
    ),
    "what only looks like a service account": (
        RequestedUser("system:serviceaccount:team:no/name"),
        [("impersonate", "users", "system:serviceaccount:team:no/name")],
        (("system:authenticated",), ""),
    ),
    "a node, by the broad permission": (
        RequestedUser("system:node:n1"),
        [("impersonate", "users", "system:node:n1")],
        (("system:authenticated",), ""),
    ),
    "a node, by the narrow one": (
        RequestedUser("system:node:n1"),
        [
            ("impersonate-on:arbitrary-node:list", "pods", ""),
            ("impersonate:arbitrary-node", "nodes", "n1"),
        ],
        (("system:nodes", "system:authenticated"), "impersonate:arbitrary-node"),
    ),
    "a user, by the narrow permission": (
        RequestedUser("alice", groups=["dev"]),
        [
            ("impersonate-on:user-info:list", "pods", ""),
            ("impersonate:user-info", "users", "alice"),
            ("impersonate:user-info", "groups", "dev"),
        ],
        (("dev", "system:authenticated"), "impersonate:user-info"),
    ),
    "an account, by the narrow permission": (
        RequestedUser("system:serviceaccount:team:robot"),
        [
            ("impersonate-on:serviceaccount:list", "pods", ""),
            ("impersonate:serviceaccount", "serviceaccounts", "robot"),
        ],
        (
            ("system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"),
            "impersonate:serviceaccount",
        ),
    ),
}


@pytest.mark.parametrize("name", BECOME)
def test_becoming(name: str) -> None:
    requested, may, (groups, by) = BECOME[name]

    user, permission = impersonate(BOB, requested, LIST, Allow(*may))

    assert (user.name, user.groups, permission) == (requested.name, groups, by)


def test_uid_and_extra_are_taken_on() -> None:
    requested = RequestedUser("alice", "u-1", extra={"scopes": ["view", "edit"]})
    may = Allow(
        ALICE,
        ("impersonate", "uids", "u-1"),
        ("impersonate", "userextras/scopes", "view"),
        ("impersonate", "userextras/scopes", "edit"),
    )

    user, _ = impersonate(BOB, requested, LIST, may)

    assert (user.uid, user.extra) == ("u-1", {"scopes": ("view", "edit")})


ON_THE_NODE = User(
    "system:serviceaccount:team:agent",
    ("system:authenticated",),
    extra={"authentication.kubernetes.io/node-name": ("n1",)},
)
ASSOCIATED = (
    ("impersonate-on:associated-node:list", "pods", ""),
    ("impersonate:associated-node", "nodes", "*"),
)


def test_who_runs_on_a_node_may_become_that_node() -> None:
    user, by = impersonate(ON_THE_NODE, RequestedUser("system:node:n1"), LIST, Allow(*ASSOCIATED))

    assert (user.name, by) == ("system:node:n1", "impersonate:associated-node")
    assert user.groups == ("system:nodes", "system:authenticated")
    for other, requested in ((ON_THE_NODE, "system:node:n2"), (BOB, "system:node:n1")):
        with pytest.raises(Forbidden):
            impersonate(other, RequestedUser(requested), LIST, Allow(*ASSOCIATED))


def on(verb: str) -> str:
    return (
        f'pods is forbidden: User "bob" cannot {verb} resource "pods" in API group ""'
        ' in the namespace "default"'
    )


SCOPE = "at the cluster scope"
ON_USER = ("impersonate-on:user-info:list", "pods", "")
NARROW_ALICE = ("impersonate:user-info", "users", "alice")
GROUP = 'in API group "authentication.k8s.io"'
# name → (requested, what bob may, what he hears)
REFUSED: dict[str, tuple[RequestedUser, list[tuple[str, str, str]], str]] = {
    "a user": (RequestedUser("alice"), [], on("impersonate-on:user-info:list")),
    "a group on top": (
        RequestedUser("alice", groups=["system:masters"]),
        [ALICE],
        on("impersonate-on:user-info:list"),
    ),
    "a user, though the request is fine": (
        RequestedUser("alice"),
        [ON_USER],
        'users.authentication.k8s.io "alice" is forbidden: User "bob" cannot'
        f' impersonate:user-info resource "users" {GROUP} {SCOPE}',
    ),
    "masters, by the narrow permission": (
        RequestedUser("alice", groups=["system:masters"]),
        [ON_USER, NARROW_ALICE, ("impersonate:user-info", "groups", "system:masters")],
        'groups.authentication.k8s.io "system:masters" is forbidden: User "bob" cannot'
        f' impersonate:user-info resource "groups" {GROUP} {SCOPE}: impersonating the'
        " system:masters group is not allowed",
    ),
    "a key that is none, by the narrow permission": (
        RequestedUser("alice", extra={"scopes": ["view"]}),
        [ON_USER, NARROW_ALICE, ("impersonate:user-info", "userextras/scopes", "view")],
        'userextras.authentication.k8s.io "view" is forbidden: User "bob" cannot'
        f' impersonate:user-info resource "userextras/scopes" {GROUP} {SCOPE}: impersonating an'
        " invalid key in extra is not allowed",
    ),
    "a service account": (
        RequestedUser("system:serviceaccount:team:robot"),
        [("impersonate", "users", "system:serviceaccount:team:robot")],
        on("impersonate-on:serviceaccount:list"),
    ),
    "a service account with groups": (
        RequestedUser("system:serviceaccount:team:robot", groups=["dev"]),
        [],
        'serviceaccounts "robot" is forbidden: User "bob" cannot impersonate resource'
        ' "serviceaccounts" in API group "" in the namespace "team"',
    ),
    "a uid": (
        RequestedUser("alice", "u-1"),
        [ALICE, ON_USER, NARROW_ALICE],
        'uids.authentication.k8s.io "u-1" is forbidden: User "bob" cannot impersonate:user-info'
        f' resource "uids" {GROUP} {SCOPE}',
    ),
    "an extra value of a node": (
        RequestedUser("system:node:n1", extra={"scopes": ["view"]}),
        [("impersonate", "users", "system:node:n1"), ("impersonate", "userextras/other", "view")],
        'userextras.authentication.k8s.io "view" is forbidden: User "bob" cannot impersonate'
        f' resource "userextras/scopes" {GROUP} {SCOPE}',
    ),
    "another verb than the narrow permission is for": (
        RequestedUser("alice"),
        [("impersonate-on:user-info:get", "pods", ""), NARROW_ALICE],
        on("impersonate-on:user-info:list"),
    ),
    "a node as if it were a user": (
        RequestedUser("system:node:n1"),
        [ON_USER, ("impersonate:user-info", "users", "system:node:n1")],
        on("impersonate-on:arbitrary-node:list"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    requested, may, text = REFUSED[name]

    with pytest.raises(Forbidden) as refused:
        impersonate(BOB, requested, LIST, Allow(*may))
    assert refused.value.message == text


def test_all_of_what_is_asked() -> None:
    asked = Allow()
    with pytest.raises(Forbidden):
        impersonate(BOB, RequestedUser("alice"), LIST, asked)

    assert asked.asked == [
        Attributes("impersonate-on:user-info:list", "", "v1", "pods", namespace="default"),
        Attributes("impersonate", "", "v1", "users", name="alice"),
    ]
