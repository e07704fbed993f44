"""Names for shells to complete: what a server has, asked for quickly or not at all.

A shell waits while this runs, so it makes one plain request with the standard library and gives up
early; whatever goes wrong, there are just no names. completion.py says when to ask.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from sully.client.kubeconfig.access import Access
    from sully.client.kubeconfig.credentials import Credential

WAIT_SECONDS = 0.4
MOST = 500
"""Objects that are asked for: nobody chooses among more by looking."""
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
    "managedclusters": (_CLUSTER_GROUP, ("v1",)),
    "placements": (_CLUSTER_GROUP, ("v1beta1",)),
}
"""Where each is, with the newest version first."""
_NAMESPACED = ("pods", "resourceclaims", "placements")
FLAGS = {
    "-n": "namespaces",
    "--namespace": "namespaces",
    "--node": "nodes",
    "--class": "deviceclasses",
    "--cluster": "managedclusters",
    "--context": CONTEXTS,
}
"""Flags whose values are names."""
SUBJECTS = {
    "device": DEVICES,
    "cluster": "managedclusters",
    "rule": "devicetaintrules",
    "patch": "resourceslicepatches",
    "pod": "pods",
    "claim": "resourceclaims",
    "placement": "placements",
}
"""What words such as `device` in a command are about."""


def names(what: str, typed: str, flags: Mapping[str, str]) -> list[str]:
    """Return names that begin with what was typed; `flags` has those that say which server."""
    try:
        found = _contexts(flags) if what == CONTEXTS else _asked(what, typed, flags)
        return sorted({each for each in found if each.startswith(typed)})
    except Exception:  # noqa: BLE001 - a shell must never see anything but names
        return []


def _contexts(flags: Mapping[str, str]) -> Iterable[str]:
    from sully.client.kubeconfig.kubeconfig import load_kubeconfig, usual_files

    named = flags.get("--kubeconfig")
    return load_kubeconfig([Path(named)] if named else usual_files(os.environ)).contexts


def _asked(what: str, typed: str, flags: Mapping[str, str]) -> Iterable[str]:
    from sully.client.kubeconfig.kubeconfig import find_access

    access = find_access(flags.get("--kubeconfig", ""), flags.get("--context", ""))
    namespace = flags.get("--namespace") or flags.get("-n") or access.namespace or "default"
    if what == DEVICES:
        driver, slash, _ = typed.partition("/")
        selector = f"&fieldSelector={quote(f'spec.driver={driver}')}" if slash else ""
        return _next_parts(_devices(_items(access, "resourceslices", "", selector)), typed)
    if what == DEVICE_KEYS:
        return (each["spec"]["taint"]["key"] for each in _items(access, "devicetaintrules", ""))
    if what == CLUSTER_KEYS:
        clusters = _items(access, "managedclusters", "")
        return (taint["key"] for each in clusters for taint in each["spec"].get("taints") or ())
    return (each["metadata"]["name"] for each in _items(access, what, namespace))


def _devices(slices: Iterable[Any]) -> Iterator[str]:
    for each in slices:
        spec = each["spec"]
        for device in spec.get("devices") or ():
            yield f"{spec['driver']}/{spec['pool']['name']}/{device['name']}"


def _next_parts(devices: Iterable[str], typed: str) -> Iterator[str]:
    """Yield devices up to the next slash, as shells do it with folders."""
    for each in devices:
        if each.startswith(typed):
            end = each.find("/", len(typed))
            yield each[: end + 1] if end >= 0 else each


def _items(access: "Access", what: str, namespace: str, more: str = "") -> list[Any]:
    group, versions = _KINDS[what]
    where = f"/namespaces/{quote(namespace)}" if what in _NAMESPACED else ""
    connection = _connected(access)
    try:
        for version in versions:
            base = f"/apis/{group}/{version}" if group else f"/api/{version}"
            found = _answer(connection, access, f"{base}{where}/{what}?limit={MOST}{more}")
            if found is not None:
                return list(found["items"])
    finally:
        connection.close()
    return []


def _connected(access: "Access") -> "HTTPConnection":
    from http.client import HTTPConnection, HTTPSConnection

    from sully.client.kubeconfig.access import tls_context

    address = urlsplit(access.server)
    host, port = address.hostname or "", address.port
    if address.scheme != "https":
        return HTTPConnection(host, port, timeout=WAIT_SECONDS)
    context = tls_context(access, _credential(access))
    return HTTPSConnection(host, port, timeout=WAIT_SECONDS, context=context)


def _answer(connection: "HTTPConnection", access: "Access", path: str) -> Any | None:
    """Return an answer, or None if the server does not have that."""
    authorization = _credential(access).authorization
    headers = {"Authorization": authorization} if authorization else {}
    connection.request("GET", urlsplit(access.server).path.rstrip("/") + path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    return json.loads(body) if response.status == 200 else None


def _credential(access: "Access") -> "Credential":
    """Return a credential that is at hand: one that a program hands out would take too long."""
    import asyncio

    from sully.client.kubeconfig.credentials import FileCredentials, FixedCredentials

    if not isinstance(access.credentials, (FixedCredentials, FileCredentials)):
        raise LookupError("no credential is at hand")
    return asyncio.run(access.credentials.current())
