"""What every cluster has: namespaces, roles, priority classes, the Service of the API server."""

import asyncio
import ipaddress
from collections.abc import Callable, Iterable
from contextlib import suppress

from sully.api.core.pods.creation.priorities import SYSTEM_PRIORITIES
from sully.machinery.errors import AlreadyExists, Conflict, NotFound
from sully.machinery.gates import Gates
from sully.machinery.strategy import Obj
from sully.server.authorization.policy.builders import AUTO_UPDATE, LABELS, RBAC, READ, on, user
from sully.server.authorization.policy.components import GATED
from sully.server.authorization.policy.reconcile import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    reconciled_binding,
    reconciled_role,
)
from sully.server.inprocess import InProcess
from sully.server.requests import ResourceRef

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
AUTHENTICATION = "extension-apiserver-authentication"
_SYSTEM = "kube-system"
_READER = f"{AUTHENTICATION}-reader"


def _metadata(name: str) -> Obj:
    annotations = {AUTO_UPDATE: "true"}
    return {"name": name, "namespace": _SYSTEM, "labels": LABELS, "annotations": annotations}


AUTHENTICATION_READER: Obj = {
    "metadata": _metadata(_READER),
    "rules": [on("core", "configmaps", READ, AUTHENTICATION)],
}
AUTHENTICATION_READERS: Obj = {
    "metadata": _metadata(f"system::{_READER}"),
    "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": _READER},
    "subjects": [user("system:kube-controller-manager"), user("system:kube-scheduler")],
}


async def ensure_namespaces(api: InProcess) -> None:
    """Create the system namespaces."""
    for name in NAMESPACES:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await api.call("create", ResourceRef("", "v1", "namespaces"), body=body)
        except AlreadyExists:
            continue


_SERVICE: Obj = {
    "name": "kubernetes",
    "namespace": "default",
    "labels": {"component": "apiserver", "provider": "kubernetes"},
}
_CLUSTER_IP = "10.0.0.1"
_DESCRIPTIONS = {
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another"
        " node if necessary."
    ),
    "system-node-critical": (
        "Used for system critical pods that must not be moved from their current node."
    ),
}


async def ensure_priority_classes(api: InProcess) -> None:
    """Create the priority classes of the system."""
    for name, value in SYSTEM_PRIORITIES.items():
        expected = {
            "metadata": {"name": name},
            "value": value,
            "description": _DESCRIPTIONS[name],
        }
        group = "scheduling.k8s.io"
        await _ensure(api, "priorityclasses", expected, lambda *_: None, group=group)


async def ensure_service(api: InProcess, host: str, port: int, *, alone: bool) -> None:
    """Create the Service `default/kubernetes`, by which clients in pods find the API server.

    Its endpoints are known if the server listens on one address that others can reach, and is the
    only one of its store.
    """
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]
    service = {"metadata": _SERVICE, "spec": {"clusterIP": _CLUSTER_IP, "ports": ports}}
    await _ensure(api, "services", service, _with_ports, group="")
    if not alone or not _is_reachable(host):
        return
    labels = _SERVICE["labels"] | {"kubernetes.io/service-name": _SERVICE["name"]}
    endpoints = {
        "metadata": _SERVICE | {"labels": labels},
        "addressType": f"IPv{ipaddress.ip_address(host).version}",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    await _ensure(api, "endpointslices", endpoints, _with_endpoints, group="discovery.k8s.io")


def _is_reachable(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_link_local)


def _with_ports(existing: Obj, expected: Obj) -> Obj | None:
    ports = expected["spec"]["ports"]
    if existing["spec"].get("ports") == ports:
        return None
    return {**existing, "spec": {**existing["spec"], "ports": ports}}


def _with_endpoints(existing: Obj, expected: Obj) -> Obj | None:
    changed = {**existing, **{name: expected[name] for name in ("endpoints", "ports")}}
    return changed if changed != existing else None


async def ensure_policy(api: InProcess, gates: Gates | None = None) -> None:
    """Create the default roles and bindings; restore missing parts of existing ones."""
    enabled = gates or Gates()
    gated = [pair for gate, pair in GATED.items() if enabled[gate]]
    async with asyncio.TaskGroup() as tasks:
        for role in (*CLUSTER_ROLES, *(role for role, _ in gated)):
            tasks.create_task(_ensure(api, "clusterroles", role, reconciled_role))
        for binding in (*CLUSTER_ROLE_BINDINGS, *(binding for _, binding in gated)):
            tasks.create_task(_ensure(api, "clusterrolebindings", binding, reconciled_binding))


async def ensure_definitions(api: InProcess, expected: Iterable[Obj]) -> None:
    """Create the definitions of kinds that the server has without them, for clients to find."""
    async with asyncio.TaskGroup() as tasks:
        for definition in expected:
            ensure = _ensure(
                api,
                "customresourcedefinitions",
                definition,
                _with_versions,
                group="apiextensions.k8s.io",
            )
            tasks.create_task(ensure)


def _with_versions(existing: Obj, expected: Obj) -> Obj | None:
    versions = expected["spec"]["versions"]
    if existing["spec"]["versions"] == versions:
        return None
    return {**existing, "spec": {**existing["spec"], "versions": versions}}


async def ensure_authentication(api: InProcess, ca: str) -> None:
    """Publish the CA of client certificates, and allow the components of Kubernetes to read it.

    kube-scheduler and kube-controller-manager authenticate the clients of their own endpoints with
    it.
    """
    await _ensure(api, "roles", AUTHENTICATION_READER, reconciled_role)
    await _ensure(api, "rolebindings", AUTHENTICATION_READERS, reconciled_binding)
    metadata = {"name": AUTHENTICATION, "namespace": _SYSTEM}
    expected = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"client-ca-file": ca},
    }
    await _ensure(api, "configmaps", expected, _with_data, group="")


def _with_data(existing: Obj, expected: Obj) -> Obj | None:
    data = (existing.get("data") or {}) | expected["data"]
    return {**existing, "data": data} if data != existing.get("data") else None


async def _ensure(
    api: InProcess,
    plural: str,
    expected: Obj,
    reconciled: Callable[[Obj, Obj], Obj | None],
    *,
    group: str = RBAC,
) -> None:
    metadata = expected["metadata"]
    namespace = metadata.get("namespace", "")
    ref = ResourceRef(group, "v1", plural, namespace, metadata["name"])
    try:
        existing = (await api.call("get", ref)).obj
    except NotFound:
        # Another replica may have created it.
        with suppress(AlreadyExists):
            collection = ResourceRef(group, ref.version, plural, namespace)
            await api.call("create", collection, body=expected)
        return
    changed = reconciled(existing, expected)
    if changed is not None:
        with suppress(Conflict):
            await api.call("update", ref, body=changed)
