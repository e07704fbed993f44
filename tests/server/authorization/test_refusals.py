"""Refusals on the wire, in the words clients know."""

from dataclasses import dataclass

import pytest

from serving import Http

pytestmark = pytest.mark.asyncio(loop_scope="session")

CLUSTER = "at the cluster scope"
IN = 'in the namespace "default"'


@dataclass(frozen=True)
class Case:
    method: str
    path: str
    message: str
    details: dict[str, str]


def cannot(verb: str, resource: str, group: str, where: str) -> str:
    return f'User "bob" cannot {verb} resource "{resource}" in API group "{group}" {where}'


CASES = {
    "a list": Case(
        "GET",
        "/api/v1/namespaces/default/pods",
        f"pods is forbidden: {cannot('list', 'pods', '', IN)}",
        {"kind": "pods"},
    ),
    "a list of the cluster": Case(
        "GET",
        "/api/v1/pods",
        f"pods is forbidden: {cannot('list', 'pods', '', CLUSTER)}",
        {"kind": "pods"},
    ),
    "a watch": Case(
        "GET",
        "/api/v1/nodes?watch=true",
        f"nodes is forbidden: {cannot('watch', 'nodes', '', CLUSTER)}",
        {"kind": "nodes"},
    ),
    "one object": Case(
        "GET",
        "/apis/resource.k8s.io/v1/devicetaintrules/r",
        'devicetaintrules.resource.k8s.io "r" is forbidden: '
        + cannot("get", "devicetaintrules", "resource.k8s.io", CLUSTER),
        {"name": "r", "group": "resource.k8s.io", "kind": "devicetaintrules"},
    ),
    "a subresource": Case(
        "PATCH",
        "/apis/apps/v1/namespaces/default/deployments/d/scale",
        'deployments.apps "d" is forbidden: ' + cannot("patch", "deployments/scale", "apps", IN),
        {"name": "d", "group": "apps", "kind": "deployments"},
    ),
    "a namespace": Case(
        "DELETE",
        "/api/v1/namespaces/default",
        f'namespaces "default" is forbidden: {cannot("delete", "namespaces", "", IN)}',
        {"name": "default", "kind": "namespaces"},
    ),
    "all together": Case(
        "DELETE",
        "/api/v1/namespaces/default/configmaps",
        f"configmaps is forbidden: {cannot('deletecollection', 'configmaps', '', IN)}",
        {"kind": "configmaps"},
    ),
    "a list of one": Case(
        "GET",
        "/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Ds",
        f'secrets "s" is forbidden: {cannot("list", "secrets", "", IN)}',
        {"name": "s", "kind": "secrets"},
    ),
    "a resource that is not served": Case(
        "GET",
        "/apis/apps/v1/namespaces/default/statefulwidgets",
        "statefulwidgets.apps is forbidden: " + cannot("list", "statefulwidgets", "apps", IN),
        {"group": "apps", "kind": "statefulwidgets"},
    ),
    "a group that is not served": Case(
        "GET",
        "/apis/example.com/v1/things",
        "things.example.com is forbidden: " + cannot("list", "things", "example.com", CLUSTER),
        {"group": "example.com", "kind": "things"},
    ),
    "a path": Case("GET", "/metrics", 'forbidden: User "bob" cannot get path "/metrics"', {}),
    "a method on a path": Case(
        "POST", "/apis", 'forbidden: User "bob" cannot post path "/apis"', {}
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_refusal(case: Case, http: Http) -> None:
    answer = await http.call(case.method, case.path, headers={"impersonate-user": "bob"})

    assert answer.code == 403
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": case.message,
        "reason": "Forbidden",
        "details": case.details,
        "code": 403,
    }


async def test_who_may_learns_that_it_is_not_there(http: Http) -> None:
    answer = await http.get("/apis/apps/v1/namespaces/default/statefulwidgets")

    assert answer.code == 404
