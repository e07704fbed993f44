"""The answers to clients, byte for byte: each request here is answered with exactly this Status.

Texts on the wire are API: scripts and controllers match on them. A change here is a change for
users, and needs a fragment in `changes/` that reports it.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from manifests import TWO, pod, rule, secret
from serving import APPLY, JSON, JSON_PATCH, MERGE, Asgi, Obj, local

pytestmark = pytest.mark.asyncio(loop_scope="session")
SECRETS = "/api/v1/namespaces/default/secrets"
PODS = "/api/v1/namespaces/default/pods"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com', regex used for"
    r" validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@dataclass(frozen=True)
class Case:
    method: str
    path: str
    code: int
    reason: str
    message: str
    details: Obj | None = None
    body: Any = None
    media: str = JSON
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


def cause(reason: str, message: str, field_: str) -> Obj:
    return {"reason": reason, "message": message, "field": field_}


CASES = {
    "a namespace everything else needs": Case(
        "DELETE",
        "/api/v1/namespaces/kube-system",
        403,
        "Forbidden",
        'namespaces "kube-system" is forbidden: this namespace may not be deleted',
        {"name": "kube-system", "kind": "namespaces"},
    ),
    "no such object": Case(
        "GET",
        f"{SECRETS}/x",
        404,
        "NotFound",
        'secrets "x" not found',
        {"name": "x", "kind": "secrets"},
    ),
    "no such object of a group": Case(
        "GET",
        f"{RULES}/x",
        404,
        "NotFound",
        'devicetaintrules.resource.k8s.io "x" not found',
        {"name": "x", "group": "resource.k8s.io", "kind": "devicetaintrules"},
    ),
    "no such resource": Case(
        "GET",
        "/api/v1/things",
        404,
        "NotFound",
        "the server could not find the requested resource",
        {},
    ),
    "no logs of a pod that does not exist": Case(
        "GET",
        f"{PODS}/x/log",
        404,
        "NotFound",
        'pods "x" not found',
        {"name": "x", "kind": "pods"},
    ),
    "no logs where no containers run": Case(
        "GET",
        f"{PODS}/p/log",
        404,
        "NotFound",
        "pods/log is not served: no containers run here, so there is nothing to reach",
        {},
    ),
    "no such version": Case(
        "GET",
        "/apis/resource.k8s.io/v9/devicetaintrules",
        404,
        "NotFound",
        "the server could not find the requested resource",
        {},
    ),
    "no such verb": Case(
        "POST",
        f"{SECRETS}/a",
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        {},
        body={},
    ),
    "a name that cannot be": Case(
        "GET",
        f"{SECRETS}/..",
        400,
        "BadRequest",
        "Name parameter invalid: \"..\": may not be '..'",
    ),
    "taken": Case(
        "POST",
        SECRETS,
        409,
        "AlreadyExists",
        'secrets "a" already exists',
        {"name": "a", "kind": "secrets"},
        body=secret("a"),
    ),
    "no name": Case(
        "POST",
        SECRETS,
        422,
        "Invalid",
        'Secret "" is invalid: metadata.name: Required value: name or generateName is required',
        {
            "kind": "Secret",
            "causes": [
                cause(
                    "FieldValueRequired",
                    "Required value: name or generateName is required",
                    "metadata.name",
                )
            ],
        },
        body=secret(),
    ),
    "a bad name": Case(
        "POST",
        SECRETS,
        422,
        "Invalid",
        f'Secret "A" is invalid: metadata.name: Invalid value: "A": {SUBDOMAIN}',
        {
            "name": "A",
            "kind": "Secret",
            "causes": [
                cause("FieldValueInvalid", f'Invalid value: "A": {SUBDOMAIN}', "metadata.name")
            ],
        },
        body=secret("A"),
    ),
    "several problems": Case(
        "POST",
        RULES,
        422,
        "Invalid",
        'DeviceTaintRule.resource.k8s.io "r" is invalid: spec.taint.effect: Unsupported value:'
        ' "No":'
        ' supported values: "NoExecute", "NoSchedule", "None"',
        {
            "name": "r",
            "group": "resource.k8s.io",
            "kind": "DeviceTaintRule",
            "causes": [
                cause(
                    "FieldValueNotSupported",
                    'Unsupported value: "No": supported values: "NoExecute", "NoSchedule", "None"',
                    "spec.taint.effect",
                )
            ],
        },
        body=rule("r", "No"),
    ),
    "a namespace that is not there": Case(
        "POST",
        "/api/v1/namespaces/nowhere/secrets",
        404,
        "NotFound",
        'namespaces "nowhere" not found',
        {"name": "nowhere", "kind": "namespaces"},
        body=secret("n"),
    ),
    "another namespace": Case(
        "POST",
        SECRETS,
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
        body=secret("n", namespace="other"),
    ),
    "a version on create": Case(
        "POST",
        SECRETS,
        400,
        "BadRequest",
        "resourceVersion should not be set on objects to be created",
        body=secret("n", resourceVersion="1"),
    ),
    "a wrong type": Case(
        "POST",
        SECRETS,
        400,
        "BadRequest",
        'Secret in version "v1" cannot be handled as a Secret: json: cannot unmarshal number'
        " into Go"
        " struct field ObjectMeta.metadata.name of type string",
        body={"metadata": {"name": 5}},
    ),
    "no JSON": Case(
        "POST",
        SECRETS,
        400,
        "BadRequest",
        "the object provided is unrecognized (must be of type Secret): couldn't get version/kind;"
        " json parse error: unexpected end of JSON input ({)",
        body=b"{",
    ),
    "an unknown field, strictly": Case(
        "POST",
        SECRETS,
        400,
        "BadRequest",
        'Secret in version "v1" cannot be handled as a Secret: strict decoding error: unknown field'
        ' "colour"',
        body=secret("n") | {"colour": 1},
        query={"fieldValidation": "Strict"},
    ),
    "an old version": Case(
        "PUT",
        f"{SECRETS}/a",
        409,
        "Conflict",
        'Operation cannot be fulfilled on secrets "a": the object has been modified; please apply'
        " your changes to the latest version and try again",
        {"name": "a", "kind": "secrets"},
        body=secret("a", TWO, resourceVersion="1"),
    ),
    "another name": Case(
        "PUT",
        f"{SECRETS}/a",
        400,
        "BadRequest",
        "the name of the object (b) does not match the name on the URL (a)",
        body=secret("b"),
    ),
    "a patch that does not fit": Case(
        "PATCH",
        f"{SECRETS}/a",
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
        {},
        body=[{"op": "remove", "path": "/spec"}],
        media=JSON_PATCH,
    ),
    "a patch of a type that is unknown": Case(
        "PATCH",
        f"{SECRETS}/a",
        415,
        "UnsupportedMediaType",
        "415: Unsupported Media Type",
        {},
        body={},
    ),
    "apply without a manager": Case(
        "PATCH",
        f"{SECRETS}/a",
        422,
        "Invalid",
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for'
        " apply"
        " patch",
        {
            "group": "meta.k8s.io",
            "kind": "PatchOptions",
            "causes": [
                cause(
                    "FieldValueRequired",
                    "Required value: is required for apply patch",
                    "fieldManager",
                )
            ],
        },
        body=secret("a"),
        media=APPLY,
    ),
    "apply against a user": Case(
        "PATCH",
        f"{SECRETS}/a",
        409,
        "Conflict",
        'Apply failed with 1 conflict: conflict with "tests" using v1: .data.k',
        {
            "causes": [cause("FieldManagerConflict", 'conflict with "tests" using v1', ".data.k")],
        },
        body=secret("a", TWO),
        media=APPLY,
        query={"fieldManager": "m"},
    ),
    "a force that is none": Case(
        "PATCH",
        f"{SECRETS}/a",
        422,
        "Invalid",
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for'
        " non-apply"
        " patch",
        {
            "group": "meta.k8s.io",
            "kind": "PatchOptions",
            "causes": [
                cause(
                    "FieldValueForbidden",
                    "Forbidden: may not be specified for non-apply patch",
                    "force",
                )
            ],
        },
        body={},
        media=MERGE,
        query={"force": "true"},
    ),
    "another version": Case(
        "DELETE",
        f"{SECRETS}/a",
        409,
        "Conflict",
        'Operation cannot be fulfilled on Secret "a": the ResourceVersion in the precondition (1)'
        " does not match the ResourceVersion in record (<version>). The object might have been"
        " modified",
        {"name": "a", "kind": "Secret"},
        body={"preconditions": {"resourceVersion": "1"}},
    ),
    "an unknown policy": Case(
        "DELETE",
        f"{SECRETS}/a",
        422,
        "Invalid",
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Never":'
        ' supported values: "Foreground", "Background", "Orphan", "nil"',
        {
            "group": "meta.k8s.io",
            "kind": "DeleteOptions",
            "causes": [
                cause(
                    "FieldValueNotSupported",
                    'Unsupported value: "Never": supported values: "Foreground", "Background",'
                    ' "Orphan", "nil"',
                    "propagationPolicy",
                )
            ],
        },
        query={"propagationPolicy": "Never"},
    ),
    "a bad label selector": Case(
        "GET",
        SECRETS,
        400,
        "BadRequest",
        "unable to parse requirement: found '', expected: ',', ')' or identifier",
        query={"labelSelector": "a in ("},
    ),
    "a field nobody selects by": Case(
        "GET",
        RULES,
        400,
        "BadRequest",
        '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
        query={"fieldSelector": "spec.x=1"},
    ),
    "a match without a version": Case(
        "GET",
        SECRETS,
        422,
        "Invalid",
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden:'
        " resourceVersionMatch"
        " is forbidden unless resourceVersion is provided",
        {
            "group": "meta.k8s.io",
            "kind": "ListOptions",
            "causes": [
                cause(
                    "FieldValueForbidden",
                    "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is"
                    " provided",
                    "resourceVersionMatch",
                )
            ],
        },
        query={"resourceVersionMatch": "Exact"},
    ),
    "the future": Case(
        "GET",
        SECRETS,
        504,
        "Timeout",
        "Timeout: Too large resource version: 100000, current: <revision>",
        {
            "causes": [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ],
            "retryAfterSeconds": 1,
        },
        query={"resourceVersion": "100000"},
    ),
    "a form nobody can give": Case(
        "GET",
        SECRETS,
        406,
        "NotAcceptable",
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml,"
        " application/vnd.kubernetes.protobuf, application/json;stream=watch,"
        " application/vnd.kubernetes.protobuf;stream=watch",
        details={},
        headers={"accept": "image/png"},
    ),
    "the wrong pod": Case(
        "POST",
        f"{PODS}/p/eviction",
        400,
        "BadRequest",
        "name in URL does not match name in Eviction object",
        body={"metadata": {"name": "q"}},
    ),
    "a pod without containers": Case(
        "POST",
        PODS,
        422,
        "Invalid",
        'Pod "n" is invalid: spec.containers: Required value',
        {
            "name": "n",
            "kind": "Pod",
            "causes": [cause("FieldValueRequired", "Required value", "spec.containers")],
        },
        body=pod("n") | {"spec": {"containers": []}},
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server() -> AsyncIterator[Asgi]:
    async with local(pods=True) as made:
        (await made.post(SECRETS, secret("a"))).ok(201)
        (await made.post(PODS, pod("p"))).ok(201)
        yield made


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_statuses(server: Asgi, case: Case) -> None:
    answer = await server.call(
        case.method, case.path, case.body, case.media, headers=case.headers, **case.query
    )

    # How many writes came before is not what these texts are about.
    version = (await server.get(f"{SECRETS}/a")).ok()["metadata"]["resourceVersion"]
    message = case.message.replace("<version>", version)
    message = message.replace("<revision>", str(server.store.revision))
    want = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": case.reason,
        **({} if case.details is None else {"details": case.details}),
        "code": case.code,
    }
    assert answer.json == want
    # Clients print fields in this order.
    assert list(answer.json) == list(want)
    assert (answer.code, answer.header("content-type")) == (case.code, "application/json")
