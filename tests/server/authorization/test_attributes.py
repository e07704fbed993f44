"""What a request asks for, as rules see it."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from embedded import SCHEME
from sully.server.authorization.attributes import Attributes, on_path, on_target
from sully.server.http.verbs import verb_of
from sully.server.requests import parse_path


@dataclass(frozen=True)
class Case:
    method: str
    url: str
    want: Attributes
    fields: dict[str, str] = field(default_factory=dict)


RESOURCE = ("resource.k8s.io", "v1", "resourceslices")
CASES = {
    "a list of the cluster": Case("GET", "/api/v1/pods", Attributes("list", "", "v1", "pods")),
    "a list": Case(
        "GET", "/api/v1/namespaces/n/pods", Attributes("list", "", "v1", "pods", "", "n")
    ),
    "one object": Case(
        "GET", "/api/v1/namespaces/n/pods/p", Attributes("get", "", "v1", "pods", "", "n", "p")
    ),
    "a watch": Case("GET", "/api/v1/pods?watch=1", Attributes("watch", "", "v1", "pods")),
    "no watch": Case("GET", "/api/v1/pods?watch=false", Attributes("list", "", "v1", "pods")),
    "an old watch": Case("GET", "/api/v1/watch/pods", Attributes("watch", "", "v1", "pods")),
    "all together": Case(
        "DELETE", "/api/v1/pods", Attributes("deletecollection", "", "v1", "pods")
    ),
    "a namespace lies in itself": Case(
        "DELETE", "/api/v1/namespaces/n", Attributes("delete", "", "v1", "namespaces", "", "n", "n")
    ),
    "the status of a namespace": Case(
        "PUT",
        "/api/v1/namespaces/n/status",
        Attributes("update", "", "v1", "namespaces", "status", "n", "n"),
    ),
    "a subresource": Case(
        "PATCH",
        "/apis/apps/v1/namespaces/n/deployments/d/scale",
        Attributes("patch", "apps", "v1", "deployments", "scale", "n", "d"),
    ),
    "a list of one, by name": Case(
        "GET",
        "/api/v1/namespaces/n/pods?fieldSelector=metadata.name%3Dp",
        Attributes("list", "", "v1", "pods", "", "n", "p"),
        {"metadata.name": "p"},
    ),
    "a list by another field": Case(
        "GET",
        "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn1",
        Attributes("list", *RESOURCE),
        {"spec.nodeName": "n1"},
    ),
    "a list without a field": Case(
        "GET",
        "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName!%3Dn1",
        Attributes("list", *RESOURCE),
    ),
    "a selector nobody can read": Case(
        "GET", "/api/v1/pods?fieldSelector=x", Attributes("list", "", "v1", "pods")
    ),
    "a selector of one object is none": Case(
        "GET",
        "/api/v1/namespaces/n/pods/p?fieldSelector=metadata.name%3Dq",
        Attributes("get", "", "v1", "pods", "", "n", "p"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_served_and_unserved_paths_ask_the_same(case: Case) -> None:
    split = urlsplit(case.url)
    query = dict(parse_qsl(split.query))
    want = Attributes(
        case.want.verb,
        case.want.group,
        case.want.version,
        case.want.resource,
        case.want.subresource,
        case.want.namespace,
        case.want.name,
        fields=case.fields,
    )

    target = parse_path(SCHEME, split.path)
    assert target is not None
    exchange: Any = _Seen(case.method, query)
    verb = verb_of(exchange, target)
    served = on_target(verb, target, query)

    assert served == want
    assert on_path(case.method, split.path, query) == want


@dataclass(frozen=True)
class _Seen:
    method: str
    query: dict[str, str]


PATHS = {
    "/metrics": Attributes("get", path="/metrics"),
    "/api": Attributes("get", path="/api"),
    "/api/v1": Attributes("get", path="/api/v1"),
    "/apis/apps": Attributes("get", path="/apis/apps"),
    "/apis/apps/v1": Attributes("get", path="/apis/apps/v1"),
    "/apis/example.com/v1/things": Attributes("list", "example.com", "v1", "things"),
    "/apis/example.com/v1/namespaces/n/things/t/part": Attributes(
        "get", "example.com", "v1", "things", "part", "n", "t"
    ),
}


@pytest.mark.parametrize(("path", "want"), PATHS.items())
def test_paths_that_lead_nowhere(path: str, want: Attributes) -> None:
    assert on_path("GET", path) == want
