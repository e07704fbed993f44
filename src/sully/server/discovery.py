"""Discovery documents, generated from the scheme.

There are two forms. The older one is a tree of small documents (`/api`, `/apis`, `/apis/apps`,
`/apis/apps/v1`); the aggregated one has all of it in two responses (`/api` and `/apis` for clients
that accept `as=APIGroupDiscoveryList`) with an ETag, so that nothing is sent twice.
openapi/ describes what the kinds look like.
"""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from sully.machinery.scheme import Scheme
from sully.machinery.strategy import ResourceType

Obj = dict[str, Any]

# Clients that resolve a kind by its bare name take the first group that has it, so groups of
# Kubernetes are in its order; all others follow by name.
_GROUP_ORDER = {
    name: position
    for position, name in enumerate(
        (
            "apiregistration.k8s.io",
            "apps",
            "events.k8s.io",
            "authentication.k8s.io",
            "authorization.k8s.io",
            "autoscaling",
            "batch",
            "certificates.k8s.io",
            "networking.k8s.io",
            "policy",
            "rbac.authorization.k8s.io",
            "storage.k8s.io",
            "admissionregistration.k8s.io",
            "apiextensions.k8s.io",
            "scheduling.k8s.io",
            "coordination.k8s.io",
            "node.k8s.io",
            "discovery.k8s.io",
            "resource.k8s.io",
            "flowcontrol.apiserver.k8s.io",
            "storagemigration.k8s.io",
        )
    )
}


class Subresource(msgspec.Struct, frozen=True):
    """A subresource and its kind; group and version are empty where the parent's hold."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


_CHANGE = ("get", "patch", "update")
_PROXY = ("create", "delete", "get", "patch", "update")
# Subresources with another kind than the parent's, or other verbs than get, patch and update.
_SPECIAL: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "binding": ("", "", "Binding", ("create",)),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
    "scale": ("autoscaling", "v1", "Scale", _CHANGE),
    "finalize": ("", "", "", ("update",)),
    "log": ("", "", "", ("get",)),
    "exec": ("", "", "PodExecOptions", ("create", "get")),
    "attach": ("", "", "PodAttachOptions", ("create", "get")),
    "portforward": ("", "", "PodPortForwardOptions", ("create", "get")),
}


def subresources(resource: ResourceType, version: str) -> Iterator[Subresource]:
    """Yield the subresources of a resource in a version, by name."""
    names = {*resource.connect, *resource.parts}
    if resource.status is not None:
        names.add("status")
    if resource.scale:
        names.add("scale")
    served = resource.version(version)
    if served is not None and served.subresources is not None:
        names &= served.subresources
    # The status of a custom resource comes first.
    custom = resource.storage_version.custom is not None
    for name in sorted(names, reverse=custom):
        group, version, kind, verbs = _SPECIAL.get(name, ("", "", "", _CHANGE))
        yield Subresource(name, kind or resource.kind, verbs, group, version)


def _listed(resource: ResourceType, version: str) -> list[Subresource]:
    """Return what discovery lists below a resource, by name."""
    listed = list(subresources(resource, version))
    for name in resource.refused if resource.lists_refused else ():
        _, _, kind, verbs = _SPECIAL.get(name, ("", "", f"{resource.kind}ProxyOptions", _PROXY))
        listed.append(Subresource(name, kind or resource.kind, verbs))
    return sorted(listed, key=lambda sub: sub.name) if resource.lists_refused else listed


def served(scheme: Scheme, group: str, version: str) -> list[ResourceType]:
    """Return the resources of one group and version, by name."""
    resources = (
        r for r in scheme.resources() if r.group == group and r.version(version) is not None
    )
    return sorted(resources, key=lambda resource: resource.plural)


def named_groups(scheme: Scheme) -> list[tuple[str, list[str]]]:
    """Return the groups under /apis in order of preference, each with its versions."""
    groups = ((name, versions) for name, versions in scheme.groups().items() if name)
    return sorted(groups, key=lambda item: (_GROUP_ORDER.get(item[0], len(_GROUP_ORDER)), item[0]))


def api_versions(server_address: str) -> Obj:
    """Return `/api`: the versions of the core group and the address of the server."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}
        ],
    }


def api_group_list(scheme: Scheme) -> Obj:
    """Return `/apis`: every group with its versions."""
    groups = [_group(name, versions) for name, versions in named_groups(scheme)]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(scheme: Scheme, group: str) -> Obj | None:
    """Return `/apis/<group>`, or None for a group that is not served."""
    versions = scheme.groups().get(group)
    if not group or not versions:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1"} | _group(group, versions)


def _group(name: str, versions: list[str]) -> Obj:
    shown = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": shown, "preferredVersion": shown[0]}


def api_resource_list(scheme: Scheme, group: str, version: str) -> Obj | None:
    """Return `/api/v1` or `/apis/<group>/<version>`, or None for what is not served."""
    if not scheme.serves(group, version):
        return None
    rows = [row for resource in served(scheme, group, version) for row in _rows(resource, version)]
    if not group:
        # The core list has no apiVersion: it is older than the field.
        return {"kind": "APIResourceList", "groupVersion": version, "resources": rows}
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}",
        "resources": rows,
    }


def _rows(resource: ResourceType, version: str) -> Iterator[Obj]:
    row: Obj = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
    }
    row |= _names(resource)
    if "watch" in resource.verbs:
        row["storageVersionHash"] = storage_version_hash(resource)
    yield row
    for sub in _listed(resource, version):
        row = {
            "name": f"{resource.plural}/{sub.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
        }
        if sub.version:
            row |= {"group": sub.group, "version": sub.version}
        yield row | {"kind": sub.kind, "verbs": list(sub.verbs)}


def _names(resource: ResourceType) -> Obj:
    names: Obj = {}
    if resource.short_names:
        names["shortNames"] = list(resource.short_names)
    if resource.categories:
        names["categories"] = list(resource.categories)
    return names


# Tools that migrate stored objects compare the hash between servers, so where Kubernetes keeps a
# kind in another version than ours, its choice is announced. Nothing reads the store by it.
_ANNOUNCED = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "apiextensions.k8s.io/v1beta1",
    ("events.k8s.io", "Event"): "/v1",
    ("resource.k8s.io", "DeviceTaintRule"): "resource.k8s.io/v1beta2",
}


def storage_version_hash(resource: ResourceType) -> str:
    """Return the mark by which clients notice that objects are stored in another version."""
    usual = f"{resource.group}/{resource.storage_version.name}"
    stored = f"{_ANNOUNCED.get((resource.group, resource.kind), usual)}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()


def aggregated(scheme: Scheme, *, core: bool, form: str = "v2") -> Obj:
    """Return `/api` (core) or `/apis` as an APIGroupDiscoveryList of version v2 or v2beta1."""
    groups = [("", scheme.groups().get("", []))] if core else named_groups(scheme)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{form}",
        "metadata": {},
        "items": [_discovered_group(scheme, name, versions) for name, versions in groups],
    }


def _discovered_group(scheme: Scheme, name: str, versions: list[str]) -> Obj:
    return {
        "metadata": {"name": name} if name else {},
        "versions": [
            {
                "version": version,
                "resources": [
                    _discovered(resource, version) for resource in served(scheme, name, version)
                ],
                "freshness": "Current",
            }
            for version in versions
        ],
    }


def _discovered(resource: ResourceType, version: str) -> Obj:
    entry: Obj = {
        "resource": resource.plural,
        "responseKind": _response_kind(*_own_version(resource, version), resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
    }
    entry |= _names(resource)
    below = [
        {
            "subresource": sub.name,
            "responseKind": _response_kind(
                *((sub.group, sub.version) if sub.version else _own_version(resource, version)),
                sub.kind,
            ),
            "verbs": list(sub.verbs),
        }
        for sub in _listed(resource, version)
    ]
    return entry | ({"subresources": below} if below else {})


def _verbs(resource: ResourceType) -> list[str]:
    """Return the verbs of a resource: sorted, but for custom resources in Kubernetes' own order."""
    return (
        list(resource.verbs)
        if resource.storage_version.custom is not None
        else sorted(resource.verbs)
    )


def _own_version(resource: ResourceType, version: str) -> tuple[str, str]:
    """Return the group and version of a kind where it is shown: only of custom resources."""
    return (resource.group, version) if resource.storage_version.custom is not None else ("", "")


def _response_kind(group: str, version: str, kind: str) -> Obj:
    return {"group": group, "version": version, "kind": kind}


class Document(msgspec.Struct, frozen=True):
    """An encoded document with its ETag, quotes included."""

    body: bytes
    etag: str

    @property
    def hash(self) -> str:
        """Return the ETag without its quotes, as addresses carry it."""
        return self.etag.strip('"')


def document(content: Any) -> Document:
    """Encode a document that never changes while the server runs."""
    body = msgspec.json.encode(content)
    return Document(body, f'"{hashlib.sha512(body).hexdigest().upper()}"')


class AggregatedDiscovery:
    """The aggregated documents of one scheme, generated on the first request."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._documents: dict[tuple[bool, str], Document] = {}
        self._generation = scheme.generation

    def get(self, *, core: bool, form: str) -> Document:
        """Return `/api` (core) or `/apis` in form v2 or v2beta1."""
        if self._generation != self._scheme.generation:
            self._generation = self._scheme.generation
            self._documents.clear()
        cached = self._documents.get((core, form))
        if cached is None:
            cached = document(aggregated(self._scheme, core=core, form=form))
            self._documents[core, form] = cached
        return cached
