"""The namespaces, roles and bindings that every cluster has."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from sully.machinery.errors import AlreadyExists, Conflict, NotFound
from sully.machinery.gates import Gates
from sully.machinery.strategy import Obj
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


async def ensure_namespaces(api: InProcess) -> None:
    """Create the system namespaces."""
    for name in NAMESPACES:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await api.call("create", ResourceRef("", "v1", "namespaces"), body=body)
        except AlreadyExists:
            continue


async def ensure_policy(api: InProcess, gates: Gates | None = None) -> None:
    """Create the default roles and bindings; restore missing parts of existing ones."""
    enabled = gates or Gates()
    gated = [pair for gate, pair in GATED.items() if enabled[gate]]
    async with asyncio.TaskGroup() as tasks:
        for role in (*CLUSTER_ROLES, *(role for role, _ in gated)):
            tasks.create_task(_ensure(api, "clusterroles", role, reconciled_role))
        for binding in (*CLUSTER_ROLE_BINDINGS, *(binding for _, binding in gated)):
            tasks.create_task(_ensure(api, "clusterrolebindings", binding, reconciled_binding))


async def _ensure(
    api: InProcess, plural: str, expected: Obj, reconciled: Callable[[Obj, Obj], Obj | None]
) -> None:
    ref = ResourceRef("rbac.authorization.k8s.io", "v1", plural, name=expected["metadata"]["name"])
    try:
        existing = (await api.call("get", ref)).obj
    except NotFound:
        # Another replica may have created it.
        with suppress(AlreadyExists):
            await api.call("create", ResourceRef(ref.group, ref.version, plural), body=expected)
        return
    changed = reconciled(existing, expected)
    if changed is not None:
        with suppress(Conflict):
            await api.call("update", ref, body=changed)
