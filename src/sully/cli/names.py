"""Completion of names of objects on the server, if it answers quickly.

A shell waits while this runs, so it makes one plain request with the standard library and gives up
early; if that fails, there are just no names. Responses are read as JSON, because importing the
types of objects would take longer than the request. With a slow server users can wait longer, by
`SULLY_COMPLETION_SECONDS`. The functions `complete_...` are for `shell_complete=` of flags and
arguments.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from sully.client.kubeconfig.access import Access
    from sully.client.kubeconfig.credentials import Credential

Complete = Callable[[click.Context, click.Parameter, str], list[str]]
TIMEOUT_SECONDS = 0.4
TIMEOUT_VARIABLE = "SULLY_COMPLETION_SECONDS"
MAX_OBJECTS = 500
"""The maximum number of objects to list."""
CONTEXTS, DEVICES = "contexts", "devices"
DEVICE_KEYS, CLUSTER_KEYS = "keys of device taints", "keys of cluster taints"
_DEVICE_GROUP = "resource.k8s.io"
_CLUSTER_GROUP = "cluster.open-cluster-management.io"
_KINDS: Mapping[str, tuple[str, Sequence[str]]] = {
    "namespaces": ("", ("v1",)),
    "nodes": ("", ("v1",)),
    "pods": ("", ("v1",)),
    "resourceslices": (_DEVICE_GROUP, ("v1", "v1beta2", "v1beta1")),
    "deviceclasses": (_DEVICE_GROUP, ("v1", "v1beta2", "v1beta1")),
    "resourceclaims": (_DEVICE_GROUP, ("v1", "v1beta2", "v1beta1")),
    "devicetaintrules": (_DEVICE_GROUP, ("v1", "v1beta2", "v1alpha3")),
    "resourceslicepatches": (_DEVICE_GROUP, ("v1alpha3",)),
    "deployments": ("apps", ("v1",)),
    "replicasets": ("apps", ("v1",)),
    "statefulsets": ("apps", ("v1",)),
    "daemonsets": ("apps", ("v1",)),
    "jobs": ("batch", ("v1",)),
    "devicetaintpolicies": ("sully.dev", ("v1alpha1",)),
    "devicemaintenances": ("sully.dev", ("v1alpha1",)),
    "managedclusters": (_CLUSTER_GROUP, ("v1",)),
    "placements": (_CLUSTER_GROUP, ("v1beta1",)),
}
"""Where each is, with the newest version first."""
_NAMESPACED = (
    *("pods", "resourceclaims", "placements"),
    *("deployments", "replicasets", "statefulsets", "daemonsets", "jobs"),
)
SUBJECTS = {
    "device": DEVICES,
    "node": "nodes",
    "class": "deviceclasses",
    "cluster": "managedclusters",
    "rule": "devicetaintrules",
    "patch": "resourceslicepatches",
    "pod": "pods",
    "claim": "resourceclaims",
    "placement": "placements",
    "deployment": "deployments",
    "replicaset": "replicasets",
    "statefulset": "statefulsets",
    "daemonset": "daemonsets",
    "job": "jobs",
    "policy": "devicetaintpolicies",
    "maintenance": "devicemaintenances",
}
"""The resource that each KIND of a command stands for."""


def completer(what: str) -> Complete:
    """Return what completes the names of a resource."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        return names(what, incomplete, ctx.params)

    return complete


complete_namespaces = completer("namespaces")
complete_nodes = completer("nodes")
complete_classes = completer("deviceclasses")
complete_clusters = completer("managedclusters")
complete_contexts = completer(CONTEXTS)
complete_devices = completer(DEVICES)


def kind_completer(kinds: Iterable[str]) -> Complete:
    """Return what completes KIND, or KIND/NAME in one argument."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        kind, slash, typed = incomplete.partition("/")
        if not slash:
            return [kind for kind in kinds if kind.startswith(incomplete)]
        return [f"{kind}/{name}" for name in _of_kind(kind, typed, ctx.params)]

    return complete


def complete_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    kind = ctx.params.get("kind") or ctx.params.get("subject") or ""
    return _of_kind(kind, incomplete, ctx.params) if "/" not in kind else []


def _of_kind(kind: str, typed: str, flags: Mapping[str, Any]) -> list[str]:
    from sully.cli.selection.selectors import named

    what = SUBJECTS.get(named(kind)[0], "")
    return names(what, typed, flags) if what else []


def names(what: str, typed: str, flags: Mapping[str, Any]) -> list[str]:
    """Return names that begin with what was typed; `flags` has those that name the server."""
    try:
        candidates = _contexts(flags) if what == CONTEXTS else _list_names(what, typed, flags)
        return sorted({name for name in candidates if name.startswith(typed)})
    except Exception:  # noqa: BLE001 - a shell must never see anything but names
        return []


def _contexts(flags: Mapping[str, Any]) -> Iterable[str]:
    from sully.client.kubeconfig.kubeconfig import load_kubeconfig, usual_files

    named = flags.get("kubeconfig")
    return load_kubeconfig([Path(named)] if named else usual_files(os.environ)).contexts


def _list_names(what: str, typed: str, flags: Mapping[str, Any]) -> Iterable[str]:
    from urllib.parse import quote

    from sully.client.kubeconfig.kubeconfig import find_access

    access = find_access(flags.get("kubeconfig") or "", flags.get("context") or "")
    namespace = flags.get("namespace") or access.namespace or "default"
    if what == DEVICES:
        driver, slash, _ = typed.partition("/")
        selector = f"&fieldSelector={quote(f'spec.driver={driver}')}" if slash else ""
        return _next_parts(_devices(_items(access, "resourceslices", "", selector)), typed)
    if what == DEVICE_KEYS:
        return (rule["spec"]["taint"]["key"] for rule in _items(access, "devicetaintrules", ""))
    if what == CLUSTER_KEYS:
        clusters = _items(access, "managedclusters", "")
        return (
            taint["key"] for cluster in clusters for taint in cluster["spec"].get("taints") or ()
        )
    return (obj["metadata"]["name"] for obj in _items(access, what, namespace))


def _devices(slices: Iterable[Any]) -> Iterator[str]:
    for slice_ in slices:
        spec = slice_["spec"]
        for device in spec.get("devices") or ():
            yield f"{spec['driver']}/{spec['pool']['name']}/{device['name']}"


def _next_parts(devices: Iterable[str], typed: str) -> Iterator[str]:
    """Yield devices up to the next slash, as shells complete folders."""
    for device in devices:
        if device.startswith(typed):
            end = device.find("/", len(typed))
            yield device[: end + 1] if end >= 0 else device


def _items(access: "Access", what: str, namespace: str, more: str = "") -> list[Any]:
    from urllib.parse import quote

    group, versions = _KINDS[what]
    where = f"/namespaces/{quote(namespace)}" if what in _NAMESPACED else ""
    connection = _connected(access)
    try:
        for version in versions:
            base = f"/apis/{group}/{version}" if group else f"/api/{version}"
            body = _get(connection, access, f"{base}{where}/{what}?limit={MAX_OBJECTS}{more}")
            if body is not None:
                return list(body["items"])
    finally:
        connection.close()
    return []


def _connected(access: "Access") -> "HTTPConnection":
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.parse import urlsplit

    from sully.client.kubeconfig.access import tls_context

    address = urlsplit(access.server)
    host, port = address.hostname or "", address.port
    timeout = float(os.environ.get(TIMEOUT_VARIABLE) or TIMEOUT_SECONDS)
    if address.scheme != "https":
        return HTTPConnection(host, port, timeout=timeout)
    context = tls_context(access, _credential(access))
    return HTTPSConnection(host, port, timeout=timeout, context=context)


def _get(connection: "HTTPConnection", access: "Access", path: str) -> Any | None:
    """Return the body of a response, or None unless it is 200."""
    import json
    from urllib.parse import urlsplit

    authorization = _credential(access).authorization
    headers = {"Authorization": authorization} if authorization else {}
    connection.request("GET", urlsplit(access.server).path.rstrip("/") + path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    return json.loads(body) if response.status == 200 else None


def _credential(access: "Access") -> "Credential":
    """Return a credential without running an exec plugin, which would take too long."""
    import asyncio

    from sully.client.kubeconfig.credentials import FileCredentials, FixedCredentials

    if not isinstance(access.credentials, (FixedCredentials, FileCredentials)):
        raise LookupError("no static credential")
    return asyncio.run(access.credentials.current())
