"""Questions about rights: may I, may they, what may I."""

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from serving import Http, fresh

Obj = dict[str, Any]
BASE = "/apis/authorization.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS: Obj = {"verb": "get", "resource": "pods", "namespace": "default"}

pytestmark = pytest.mark.asyncio(loop_scope="session")
MANAGED = re.compile(r'"managedFields":\[.*\]}(?=:)')


@dataclass(frozen=True)
class Case:
    plural: str
    spec: Obj
    status: Obj | None = None
    causes: list[tuple[str, str]] = field(default_factory=list)
    metadata: Obj = field(default_factory=dict)


SELF, SUBJECT = "selfsubjectaccessreviews", "subjectaccessreviews"
LOCAL = "namespaces/default/localsubjectaccessreviews"
ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
FIELDS = "spec.resourceAttributes.fieldSelector.requirements"
CASES = {
    "may I": Case(SELF, {"resourceAttributes": PODS}, {"allowed": True}),
    "may I see a path": Case(
        SELF, {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}, {"allowed": True}
    ),
    "may she": Case(SUBJECT, {"user": "x", "resourceAttributes": PODS}, {"allowed": False}),
    "may a group": Case(
        SUBJECT, {"groups": ["system:masters"], "resourceAttributes": PODS}, {"allowed": True}
    ),
    "why": Case(
        SUBJECT,
        {
            "user": "x",
            "groups": ["system:authenticated"],
            "nonResourceAttributes": {"verb": "get", "path": "/apis"},
        },
        {
            "allowed": True,
            "reason": 'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole'
            ' "system:discovery" to Group "system:authenticated"',
        },
    ),
    "a node by its selector": Case(
        SUBJECT,
        {
            "user": "system:node:n",
            "groups": ["system:nodes"],
            "resourceAttributes": {
                "verb": "list",
                "resource": "pods",
                "fieldSelector": {
                    "requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n"]}]
                },
            },
        },
        {"allowed": True},
    ),
    "a node by its selector as text": Case(
        SUBJECT,
        {
            "user": "system:node:n",
            "groups": ["system:nodes"],
            "resourceAttributes": {
                "verb": "list",
                "resource": "pods",
                "fieldSelector": {"rawSelector": "spec.nodeName=n"},
            },
        },
        {"allowed": True},
    ),
    "here": Case(LOCAL, {"user": "x", "resourceAttributes": PODS}, {"allowed": False}),
    "nothing": Case(SELF, {}, causes=[("spec", f"Invalid value: null: {ONE_OF}")]),
    "both": Case(
        SELF,
        {"resourceAttributes": PODS, "nonResourceAttributes": {"verb": "get", "path": "/"}},
        causes=[("spec", f'Invalid value: {{"Path":"/","Verb":"get"}}: {ONE_OF}')],
    ),
    "nobody": Case(
        SUBJECT,
        {"resourceAttributes": PODS},
        causes=[
            ("spec.user", 'Invalid value: "": at least one of user or group must be specified')
        ],
    ),
    "elsewhere": Case(
        LOCAL,
        {"user": "x", "resourceAttributes": {**PODS, "namespace": "other"}},
        causes=[
            (
                "spec.resourceAttributes.namespace",
                'Invalid value: "other": must match metadata.namespace',
            )
        ],
    ),
    "a path, here": Case(
        LOCAL,
        {"user": "x", "nonResourceAttributes": {"verb": "get", "path": "/x"}},
        causes=[
            (
                "spec.nonResourceAttributes",
                'Invalid value: {"Path":"/x","Verb":"get"}: disallowed on this kind of request',
            )
        ],
    ),
    "a question has no name": Case(
        SELF,
        {"resourceAttributes": PODS},
        metadata={"name": "q"},
        causes=[("metadata", 'Invalid value: {"name":"q","managedFields":[…]}: must be empty')],
    ),
    "two selectors": Case(
        SELF,
        {
            "resourceAttributes": {
                **PODS,
                "fieldSelector": {
                    "rawSelector": "a=b",
                    "requirements": [{"key": "a", "operator": "Exists"}],
                },
            }
        },
        causes=[
            (
                "spec.resourceAttributes.fieldSelector.rawSelector",
                'Invalid value: "a=b": may not specified at the same time as requirements',
            )
        ],
    ),
    "a selector that cannot be parsed": Case(
        SELF,
        {"resourceAttributes": {**PODS, "labelSelector": {"rawSelector": "a in"}}},
        {
            "allowed": True,
            "evaluationError": ("spec.resourceAttributes.labelSelector ignored due to parse error"),
        },
    ),
    "an empty selector": Case(
        SELF,
        {"resourceAttributes": {**PODS, "labelSelector": {}}},
        causes=[
            (
                "spec.resourceAttributes.labelSelector.requirements",
                "Required value: when spec.resourceAttributes.labelSelector is specified,"
                " requirements or rawSelector is required",
            )
        ],
    ),
    "requirements on fields without key and values": Case(
        SELF,
        {
            "resourceAttributes": {
                **PODS,
                "fieldSelector": {
                    "requirements": [
                        {"key": "", "operator": "In"},
                        {"key": "a", "operator": "Exists", "values": ["b"]},
                        {"key": "a", "operator": "OfTomorrow"},
                    ]
                },
            }
        },
        causes=[
            (f"{FIELDS}[0].key", "Required value: must be specified"),
            (
                f"{FIELDS}[0].values",
                "Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ),
            (
                f"{FIELDS}[1].values",
                "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_access(case: Case, http: Http) -> None:
    answer = await http.post(
        f"{BASE}/{case.plural}", {"spec": case.spec, "metadata": case.metadata}
    )

    if case.status is not None:
        assert answer.ok(201)["status"] == case.status
        return
    assert answer.code == 422
    causes = answer.json["details"]["causes"]
    # Who wrote the review, and when, is shown too.
    texts = [MANAGED.sub('"managedFields":[…]}', cause["message"]) for cause in causes]
    assert [*zip([cause["field"] for cause in causes], texts, strict=True)] == case.causes


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_reviews_are_only_asked(http: Http, method: str) -> None:
    answer = await http.call(method, f"{BASE}/{SELF}")

    assert answer.code == 405


async def test_nothing_of_a_review_is_kept(http: Http) -> None:
    before = (await http.get("/api/v1/namespaces")).ok()["metadata"]["resourceVersion"]
    (await http.post(f"{BASE}/{SELF}", {"spec": {"resourceAttributes": PODS}})).ok(201)

    after = (await http.get("/api/v1/namespaces")).ok()["metadata"]["resourceVersion"]

    assert after == before


async def test_what_may_i(http: Http, namespace_path: str) -> None:
    namespace, name = namespace_path.rpartition("/")[2], fresh("alice")
    subject = {"kind": "User", "name": name}
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get"]},
    ]
    body: Obj = {"metadata": {"name": "r"}, "rules": rules}
    (await http.post(f"{RBAC}/namespaces/{namespace}/roles", body)).ok(201)
    body = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [subject],
    }
    (await http.post(f"{RBAC}/namespaces/{namespace}/rolebindings", body)).ok(201)

    async def status(where: str) -> Obj:
        answer = await http.call(
            "POST",
            f"{BASE}/selfsubjectrulesreviews",
            {"spec": {"namespace": where}},
            headers={"impersonate-user": name},
        )
        result: Obj = answer.ok(201)["status"]
        return result

    here, elsewhere = await status(namespace), await status("default")

    assert [rule for rule in here["resourceRules"] if rule not in elsewhere["resourceRules"]] == [
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}
    ]
    assert not here["incomplete"]
    assert {
        "verbs": ["get"],
        "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"],
    } in here["nonResourceRules"]


async def test_what_may_i_sends_nothing_back(http: Http) -> None:
    body = {"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {"namespace": "default"}}

    answer = (await http.post(f"{BASE}/selfsubjectrulesreviews", body)).ok(201)

    assert (answer["kind"], answer["metadata"], answer["spec"]) == (
        "SelfSubjectRulesReview",
        {},
        {},
    )


async def test_what_may_a_node_is_not_decided_by_rules(http: Http) -> None:
    headers = {"impersonate-user": "system:node:n", "impersonate-group": "system:nodes"}
    body = {"spec": {"namespace": "default"}}

    answer = await http.call("POST", f"{BASE}/selfsubjectrulesreviews", body, headers=headers)

    status = answer.ok(201)["status"]
    assert status["incomplete"]
    assert status["evaluationError"] == "node authorizer does not support user rule resolution"


async def test_what_may_i_needs_a_namespace(http: Http) -> None:
    answer = await http.post(f"{BASE}/selfsubjectrulesreviews", {"spec": {}})

    assert (answer.code, answer.message) == (400, "no namespace on request")
