"""Discovers what schedules and evicts on a server, and which of its feature gates are off.

Feature gates are published as metrics, which not everyone may read. Otherwise roles show some that
are off: a Kubernetes API server creates the role of its eviction controller only with device
taints, and lets it read rules only with rules. It never removes what it once created, so a role
that exists proves nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sully.client.discovery.capabilities import EVICTOR_ROLE, OUR_EVICTOR_ROLE, ROLES, has_role
from sully.client.options import ListOptions
from sully.client.transport import Key, Kind
from sully.domain.capabilities.control_plane import RULES_GATE, TAINTS_GATE, ControlPlane
from sully.domain.capabilities.duties import evictor
from sully.domain.capabilities.evictors import kubernetes_evicts
from sully.domain.capabilities.installation import (
    ControllersDeployment,
    Installation,
    read_arguments,
)
from sully.domain.capabilities.offers import DEVICES, OURS, RULES, Offer
from sully.machinery.errors import ApiError, Forbidden, NotAcceptable, NotFound

if TYPE_CHECKING:
    from sully.client.http.transport import HttpTransport

_FAMILY = "kubernetes_feature_enabled"
# Kubernetes filters by name since 1.37. Before, the page has megabytes.
_METRICS = f"/metrics?name[]={_FAMILY}"
_FEATURE = re.compile(rf'^{_FAMILY}{{name="(\w+)"[^}}]*}} (\S+)$', re.MULTILINE)
_DEPLOYMENTS: Kind[ControllersDeployment] = Kind(
    "apps", "v1", "deployments", "Deployment", ControllersDeployment
)
_OURS = "app.kubernetes.io/name=sully,app.kubernetes.io/component=controllers"
"""The labels of what `sully install` creates."""
_BOOTSTRAP_ROLE = Key("", "system:kube-scheduler")
"""Exists wherever an API server creates roles."""


async def components(transport: HttpTransport, server: Offer) -> ControlPlane:
    """Find out what schedules and evicts; on a server that is not Sully's, its own scheduler."""
    if server.own:
        # With --compat reference its controllers act as those of Kubernetes, without our kinds.
        plane = (
            ControlPlane.SULLY if await _serves_own_kinds(transport) else ControlPlane.KUBERNETES
        )
        return replace(plane, version=server.version)
    # Before Kubernetes evicted, controllers of Sully need no role to do it.
    ours = bool(server.own_kinds) and evictor(server).sully
    evicts = ours or await has_role(transport, OUR_EVICTOR_ROLE)
    return ControlPlane(
        scheduler="Kubernetes",
        evictor="Sully" if evicts else "Kubernetes",
        second_evictor=await _second_evictor(transport, server) if evicts else "",
        version=server.version,
    )


async def _second_evictor(transport: HttpTransport, server: Offer) -> str:
    """Return evidence that Kubernetes evicts, too; empty: none, or the user may not list rules."""
    if not server.rules:
        return ""
    kind: Kind[dict[str, Any]] = Kind(
        DEVICES, server.rules, RULES, "DeviceTaintRule", dict, namespaced=False
    )
    try:
        return kubernetes_evicts((await transport.list(kind)).items)
    except (Forbidden, NotFound):
        return ""


async def with_gates(transport: HttpTransport, plane: ControlPlane) -> ControlPlane:
    """Add the feature gates of the API server, as far as they can be known."""
    if published := await _published_gates(transport):
        return replace(plane, gates=published, gates_from="metrics")
    if inferred := await _inferred_gates(transport):
        return replace(plane, gates=inferred, gates_from="roles")
    return plane


async def installation(transport: HttpTransport, server: Offer) -> Installation | None:
    """Return what `sully install` installed; None if it did not, or the user may not know."""
    if server.own:
        return None
    deployment = await installed_deployment(transport)
    if deployment is not None:
        return read_arguments(deployment.arguments)
    # The controllers may run elsewhere, with the permissions that were installed.
    if await has_role(transport, OUR_EVICTOR_ROLE):
        return Installation(evictor="sully")
    return None


async def installed_deployment(transport: HttpTransport) -> ControllersDeployment | None:
    """Return the Deployment of the installed controllers; None if there is none to be seen."""
    try:
        page = await transport.list(_DEPLOYMENTS, "", ListOptions(label_selector=_OURS))
    except (Forbidden, NotFound):
        return None
    return next(iter(page.items), None)


async def _serves_own_kinds(transport: HttpTransport) -> bool:
    try:
        await transport.document(f"/apis/{OURS}")
    except NotFound:
        return False
    except ApiError:
        return True
    return True


async def _published_gates(transport: HttpTransport) -> dict[str, bool]:
    try:
        metrics = await transport.text(_METRICS)
    except (Forbidden, NotFound, NotAcceptable):
        return {}
    return gates_in(metrics)


def gates_in(metrics: str) -> dict[str, bool]:
    """Read the feature gates from the metrics of a component."""
    start = metrics.find(f"{_FAMILY}{{")
    return {gate: _is_on(value) for gate, value in _FEATURE.findall(metrics, max(start, 0))}


def _is_on(value: str) -> bool:
    return value not in ("0", "0.0")


async def _inferred_gates(transport: HttpTransport) -> dict[str, bool]:
    """Return the feature gates that are off by the roles of the server."""
    try:
        role: Any = await transport.get(ROLES, EVICTOR_ROLE)
    except NotFound:
        exists = await has_role(transport, _BOOTSTRAP_ROLE)
        return {TAINTS_GATE: False, RULES_GATE: False} if exists else {}
    except Forbidden:
        return {}
    rules = role.get("rules") or ()
    reads = any(RULES in (rule.get("resources") or ()) for rule in rules)
    return {} if reads or not rules else {RULES_GATE: False}
