"""Roles and bindings on the wire: defaults, validation, columns."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from serving import Http, fresh

Obj = dict[str, Any]
BASE = "/apis/rbac.authorization.k8s.io/v1"
PODS: Obj = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
VIEW: Obj = {"kind": "ClusterRole", "name": "view"}

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(frozen=True)
class Case:
    plural: str
    body: Obj
    causes: list[tuple[str, str]] = field(default_factory=list)


def roles(*rules: Obj, **more: Any) -> Obj:
    return {"rules": list(rules), **more}


def binding(subject: Obj | None = None, **ref: str) -> Obj:
    return {"roleRef": {**VIEW, **ref}, "subjects": [] if subject is None else [subject]}


SUPPORTED = 'supported values: "rbac.authorization.k8s.io"'
CASES = {
    "no verbs": Case(
        "roles",
        roles({**PODS, "verbs": []}),
        [("rules[0].verbs", "Required value")],
    ),
    "neither a group nor verbs": Case(
        "roles",
        roles({**PODS, "apiGroups": [], "verbs": []}),
        [
            (
                "rules[0].apiGroups",
                "Required value: resource rules must supply at least one api group",
            ),
            ("rules[0].verbs", "Required value"),
        ],
    ),
    "nothing but a verb": Case(
        "roles",
        roles({"verbs": ["get"]}),
        [
            (
                "rules[0].apiGroups",
                "Required value: resource rules must supply at least one api group",
            ),
            (
                "rules[0].resources",
                "Required value: resource rules must supply at least one resource",
            ),
        ],
    ),
    "paths in a namespace": Case(
        "roles",
        roles({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}),
        [
            (
                "rules[0].nonResourceURLs",
                'Invalid value: ["/metrics"]: namespaced rules cannot apply to non-resource URLs',
            )
        ],
    ),
    "paths and resources": Case(
        "clusterroles",
        roles({**PODS, "nonResourceURLs": ["/metrics"]}),
        [
            (
                "rules[0].nonResourceURLs",
                'Invalid value: ["/metrics"]: rules cannot apply to both regular resources and'
                " non-resource URLs",
            )
        ],
    ),
    "gathering from nobody": Case(
        "clusterroles",
        roles(aggregationRule={}),
        [
            (
                "aggregationRule.clusterRoleSelectors",
                "Required value: at least one clusterRoleSelector required if aggregationRule is"
                " non-nil",
            )
        ],
    ),
    "a role of the cluster must be a cluster role": Case(
        "clusterrolebindings",
        binding(kind="Role"),
        [("roleRef.kind", 'Unsupported value: "Role": supported values: "ClusterRole"')],
    ),
    "a role of another kind": Case(
        "rolebindings",
        binding(kind="Rule"),
        [("roleRef.kind", 'Unsupported value: "Rule": supported values: "Role", "ClusterRole"')],
    ),
    "a role of another group": Case(
        "rolebindings",
        binding(apiGroup="x"),
        [("roleRef.apiGroup", f'Unsupported value: "x": {SUPPORTED}')],
    ),
    "no role": Case("rolebindings", binding(name=""), [("roleRef.name", "Required value")]),
    "a role nobody can name": Case(
        "rolebindings",
        binding(name="a/b"),
        [("roleRef.name", "Invalid value: \"a/b\": may not contain '/'")],
    ),
    "a subject of another kind": Case(
        "rolebindings",
        binding({"kind": "Robot", "name": "r"}),
        [
            (
                "subjects[0].kind",
                'Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
            )
        ],
    ),
    "a nameless subject": Case(
        "rolebindings",
        binding({"kind": "User", "name": ""}),
        [("subjects[0].name", "Required value")],
    ),
    "a nameless subject of another kind": Case(
        "rolebindings",
        binding({"kind": "Robot", "name": ""}),
        [
            (
                "subjects[0].kind",
                'Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
            ),
            ("subjects[0].name", "Required value"),
        ],
    ),
    "a user of another group": Case(
        "rolebindings",
        binding({"kind": "User", "name": "u", "apiGroup": "x"}),
        [("subjects[0].apiGroup", f'Unsupported value: "x": {SUPPORTED}')],
    ),
    "an account with a group": Case(
        "rolebindings",
        binding({"kind": "ServiceAccount", "name": "s", "apiGroup": "x"}),
        [("subjects[0].apiGroup", 'Unsupported value: "x": supported values: ""')],
    ),
    "an account without a namespace, everywhere": Case(
        "clusterrolebindings",
        binding({"kind": "ServiceAccount", "name": "s"}),
        [("subjects[0].namespace", "Required value")],
    ),
    "an account without a namespace, in one": Case(
        "rolebindings", binding({"kind": "ServiceAccount", "name": "s"})
    ),
    "a name with colons": Case("clusterroles", {"metadata": {"name": "system:x:y"}, **roles(PODS)}),
}


def place(plural: str, namespace_path: str) -> str:
    namespace = (
        "" if plural.startswith("cluster") else f"/namespaces/{namespace_path.rpartition('/')[2]}"
    )
    return f"{BASE}{namespace}/{plural}"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_validation(case: Case, http: Http, namespace_path: str) -> None:
    body = {"metadata": {"name": fresh("rbac")}, **case.body}

    answer = await http.post(place(case.plural, namespace_path), body, dryRun="All")

    if not case.causes:
        answer.ok(201)
        return
    assert answer.code == 422
    causes = answer.json["details"]["causes"]
    assert [(cause["field"], cause["message"]) for cause in causes] == case.causes


async def test_groups_are_filled_in(http: Http, namespace_path: str) -> None:
    subjects = [
        {"kind": "User", "name": "u"},
        {"kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "name": "s"},
    ]
    body = {"metadata": {"name": "b"}, "roleRef": VIEW, "subjects": subjects}

    made = (await http.post(place("rolebindings", namespace_path), body)).ok(201)

    group = "rbac.authorization.k8s.io"
    assert made["roleRef"] == {"apiGroup": group, **VIEW}
    assert [subject.get("apiGroup", "") for subject in made["subjects"]] == [group, group, ""]


async def test_another_role_is_another_binding(http: Http, namespace_path: str) -> None:
    body = {"metadata": {"name": "b"}, "roleRef": VIEW}
    (await http.post(place("rolebindings", namespace_path), body)).ok(201)

    answer = await http.patch(
        f"{place('rolebindings', namespace_path)}/b", {"roleRef": {"name": "edit"}}
    )

    assert answer.code == 422
    assert answer.json["details"]["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "message": 'Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole"'
            ',"Name":"edit"}: field is immutable',
            "field": "roleRef",
        }
    ]


async def test_a_role_without_rules_shows_none(http: Http, namespace_path: str) -> None:
    made = (await http.post(place("roles", namespace_path), {"metadata": {"name": "empty"}})).ok(
        201
    )

    assert made["rules"] is None


async def test_columns(http: Http, namespace_path: str) -> None:
    subjects = [
        {"kind": "User", "name": "u"},
        {"kind": "User", "name": "v"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
    ]
    body = {"metadata": {"name": "b"}, "roleRef": VIEW, "subjects": subjects}
    (await http.post(place("rolebindings", namespace_path), body)).ok(201)
    as_table = "application/json;as=Table;v=v1;g=meta.k8s.io"

    table = (await http.get(place("rolebindings", namespace_path), as_table)).ok()
    names = [column["name"] for column in table["columnDefinitions"]]
    cells = table["rows"][0]["cells"]

    assert names == ["Name", "Role", "Age", "Users", "Groups", "ServiceAccounts"]
    assert [cells[0], cells[1], *cells[3:]] == ["b", "ClusterRole/view", "u, v", "", "n/s"]


async def test_roles_show_when_they_were_made(http: Http) -> None:
    as_table = "application/json;as=Table;v=v1;g=meta.k8s.io"

    table = (await http.get(f"{BASE}/clusterroles/view", as_table)).ok()

    made = (await http.get(f"{BASE}/clusterroles/view")).ok()["metadata"]["creationTimestamp"]
    assert table["rows"][0]["cells"] == ["view", made]
    assert [definition["type"] for definition in table["columnDefinitions"]] == ["string", "date"]
