"""Discovery documents, from a small scheme of known resources."""

from typing import Any

import msgspec
import pytest

from sully.api import build_scheme
from sully.machinery.compat import Compat
from sully.machinery.scheme import Scheme
from sully.machinery.strategy import ResourceType, Strategy, Version
from sully.server import discovery

ALL = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
PLAIN = Strategy()


def versions(*names: str) -> tuple[Version, ...]:
    return tuple(Version(name, "test") for name in names)


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    scheme = Scheme()
    pods = ResourceType(
        "",
        "Pod",
        "pods",
        "pod",
        namespaced=True,
        versions=versions("v1"),
        strategy=PLAIN,
        status=PLAIN,
        connect=("eviction", "binding", "log", "resize"),
        short_names=("po",),
        categories=("all",),
    )
    rules = ResourceType(
        "resource.k8s.io",
        "DeviceTaintRule",
        "devicetaintrules",
        "devicetaintrule",
        namespaced=False,
        versions=(*versions("v1", "v1beta2"), Version("v1alpha3", "test", enabled=False)),
        strategy=PLAIN,
        status=PLAIN,
    )
    sets = ResourceType(
        "apps",
        "ReplicaSet",
        "replicasets",
        "replicaset",
        namespaced=True,
        versions=versions("v1"),
        strategy=PLAIN,
        scale=True,
    )
    reviews = ResourceType(
        "authorization.k8s.io",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        "selfsubjectaccessreview",
        namespaced=False,
        versions=versions("v1"),
        strategy=PLAIN,
        verbs=("create",),
    )
    ours = ResourceType(
        "zoo.example.com",
        "Animal",
        "animals",
        "animal",
        namespaced=True,
        versions=versions("v1"),
        strategy=PLAIN,
    )
    # Out of order on purpose: the documents have an order of their own.
    for resource in (ours, rules, reviews, sets, pods):
        scheme.add(resource)
    return scheme


def row(name: str, kind: str, verbs: list[str], **more: Any) -> dict[str, Any]:
    return {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": verbs} | {
        **more
    }


def test_the_core_versions_come_with_an_address() -> None:
    assert discovery.api_versions("192.0.2.1:6443") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": "192.0.2.1:6443"}
        ],
    }


def test_groups_come_in_the_known_order_and_then_by_name(scheme: Scheme) -> None:
    result = discovery.api_group_list(scheme)

    assert (result["kind"], result["apiVersion"]) == ("APIGroupList", "v1")
    assert [group["name"] for group in result["groups"]] == [
        "apps",
        "authorization.k8s.io",
        "resource.k8s.io",
        "zoo.example.com",
    ]


def test_a_group_prefers_its_stable_version(scheme: Scheme) -> None:
    v1 = {"groupVersion": "resource.k8s.io/v1", "version": "v1"}
    v1beta2 = {"groupVersion": "resource.k8s.io/v1beta2", "version": "v1beta2"}

    assert discovery.api_group(scheme, "resource.k8s.io") == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "resource.k8s.io",
        "versions": [v1, v1beta2],
        "preferredVersion": v1,
    }


@pytest.mark.parametrize("group", ["", "none.example.com"])
def test_what_is_not_a_group_has_no_document(scheme: Scheme, group: str) -> None:
    assert discovery.api_group(scheme, group) is None


def test_the_core_list_has_subresources_and_no_api_version(scheme: Scheme) -> None:
    assert discovery.api_resource_list(scheme, "", "v1") == {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {
                "name": "pods",
                "singularName": "pod",
                "namespaced": True,
                "kind": "Pod",
                "verbs": ALL,
                "shortNames": ["po"],
                "categories": ["all"],
                # As recorded from Kubernetes.
                "storageVersionHash": "xPOwRZ+Yhw8=",
            },
            row("pods/binding", "Binding", ["create"]),
            row("pods/eviction", "Eviction", ["create"], group="policy", version="v1"),
            row("pods/log", "Pod", ["get"]),
            row("pods/resize", "Pod", ["get", "patch", "update"]),
            row("pods/status", "Pod", ["get", "patch", "update"]),
        ],
    }


def test_the_storage_hash_is_the_one_kubernetes_announces(scheme: Scheme) -> None:
    for version in ("v1", "v1beta2"):
        result = discovery.api_resource_list(scheme, "resource.k8s.io", version)

        assert result is not None
        assert result["groupVersion"] == f"resource.k8s.io/{version}"
        assert result["resources"][0]["storageVersionHash"] == "i+85+TcIKpA="


def test_a_scale_has_the_kind_of_its_own_group(scheme: Scheme) -> None:
    result = discovery.api_resource_list(scheme, "apps", "v1")

    assert result is not None
    assert result["apiVersion"] == "v1"
    assert result["resources"][1] == row(
        "replicasets/scale",
        "Scale",
        ["get", "patch", "update"],
        group="autoscaling",
        version="v1",
    )


def test_what_is_never_stored_has_no_storage_hash(scheme: Scheme) -> None:
    result = discovery.api_resource_list(scheme, "authorization.k8s.io", "v1")

    assert result is not None
    assert result["resources"] == [
        {
            "name": "selfsubjectaccessreviews",
            "singularName": "selfsubjectaccessreview",
            "namespaced": False,
            "kind": "SelfSubjectAccessReview",
            "verbs": ["create"],
        }
    ]


@pytest.mark.parametrize(
    ("group", "version"), [("resource.k8s.io", "v1alpha3"), ("none.example.com", "v1")]
)
def test_what_is_not_served_has_no_list(scheme: Scheme, group: str, version: str) -> None:
    assert discovery.api_resource_list(scheme, group, version) is None


@pytest.mark.parametrize("form", ["v2", "v2beta1"])
def test_the_aggregated_core_reports_everything_about_pods(scheme: Scheme, form: str) -> None:
    def kind(name: str, group: str = "", version: str = "") -> dict[str, str]:
        return {"group": group, "version": version, "kind": name}

    def sub(name: str, verbs: list[str], response: dict[str, str]) -> dict[str, Any]:
        return {"subresource": name, "responseKind": response, "verbs": verbs}

    change = ["get", "patch", "update"]
    assert discovery.aggregated(scheme, core=True, form=form) == {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{form}",
        "metadata": {},
        "items": [
            {
                "metadata": {},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "pods",
                                "responseKind": kind("Pod"),
                                "scope": "Namespaced",
                                "singularResource": "pod",
                                "verbs": ALL,
                                "shortNames": ["po"],
                                "categories": ["all"],
                                "subresources": [
                                    sub("binding", ["create"], kind("Binding")),
                                    sub("eviction", ["create"], kind("Eviction", "policy", "v1")),
                                    sub("log", ["get"], kind("Pod")),
                                    sub("resize", change, kind("Pod")),
                                    sub("status", change, kind("Pod")),
                                ],
                            }
                        ],
                        "freshness": "Current",
                    }
                ],
            }
        ],
    }


def test_the_aggregated_groups_agree_with_the_older_documents(scheme: Scheme) -> None:
    result = discovery.aggregated(scheme, core=False)

    assert [item["metadata"]["name"] for item in result["items"]] == [
        group["name"] for group in discovery.api_group_list(scheme)["groups"]
    ]
    for item in result["items"]:
        for version in item["versions"]:
            older = discovery.api_resource_list(
                scheme, item["metadata"]["name"], version["version"]
            )
            assert older is not None
            names = [row["name"] for row in older["resources"] if "/" not in row["name"]]
            assert [one["resource"] for one in version["resources"]] == names


def test_an_aggregated_document_is_made_once_and_has_an_etag(scheme: Scheme) -> None:
    documents = discovery.AggregatedDiscovery(scheme)

    groups = documents.get(core=False, form="v2")

    assert documents.get(core=False, form="v2") is groups
    assert msgspec.json.decode(groups.body) == discovery.aggregated(scheme, core=False)
    assert groups.etag.startswith('"')
    assert len(groups.etag) == 130
    assert groups.etag != documents.get(core=True, form="v2").etag
    assert groups.etag != documents.get(core=False, form="v2beta1").etag


@pytest.mark.parametrize("compat", [Compat.SULLY, Compat.KUBERNETES])
def test_refused_subresources_are_listed_as_kubernetes_lists_them(compat: Compat) -> None:
    result = discovery.api_resource_list(build_scheme(compat), "", "v1")

    assert result is not None
    rows = {row["name"]: (row["kind"], row["verbs"]) for row in result["resources"]}
    names = {name for name in rows if name.startswith("pods/")}
    served = {"binding", "ephemeralcontainers", "eviction", "resize", "status"}
    refused = {"attach", "exec", "log", "portforward", "proxy"}
    if compat is Compat.SULLY:
        assert names == {f"pods/{name}" for name in served}
    else:
        assert names == {f"pods/{name}" for name in served | refused}
        assert rows["pods/log"] == ("Pod", ["get"])
        assert rows["nodes/proxy"][0] == "NodeProxyOptions"
