"""Kubernetes API servers of several versions, as far as discovery shows.

1.37 was recorded, and trimmed to names; the others are made from it by what changed between the
versions: which versions of the device API are served, and which fields these have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from aiohttp import web

from client.foreign import Handler

Obj = dict[str, Any]
RECORDED = Path(__file__).parent / "client" / "recorded" / "kubernetes-1.37.json"
DEVICES = "resource.k8s.io"
KINDS = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
ROLE = (
    "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    "/system:controller:device-taint-eviction-controller"
)
OLD_SELECTOR = ("device", "deviceClassName", "driver", "pool", "selectors")


def recorded() -> dict[str, Any]:
    """Return the responses of a server of 1.37, by path; it has the role of its evictor."""
    rules = [{"resources": ["devicetaintrules"], "verbs": ["list"]}]
    return {**json.loads(RECORDED.read_text()), ROLE: {"metadata": {"name": "x"}, "rules": rules}}


def made(
    minor: int,
    *,
    devices: Iterable[str] = (),
    rules: str = "",
    status: bool = False,
    selector: Iterable[str] = ("device", "driver", "pool"),
    role: bool = False,
    taints: bool = True,
) -> dict[str, Any]:
    """Make a server of an older version."""
    reported = recorded()
    reported["/version"] = {"major": "1", "minor": f"{minor}+", "gitVersion": f"v1.{minor}.2-gke.5"}
    schemas = reported.pop(f"/openapi/v3/apis/{DEVICES}/v1")["components"]["schemas"]
    group = _group(reported, DEVICES)
    known = {resource["resource"]: resource for resource in group["versions"][0]["resources"]}
    served = {version: [deepcopy(known[kind]) for kind in KINDS] for version in devices}
    if rules:
        rule = deepcopy(known["devicetaintrules"])
        if not status:
            rule.pop("subresources")
        served.setdefault(rules, []).append(rule)
    group["versions"] = [
        {"version": version, "resources": resources} for version, resources in served.items()
    ]
    for version in served:
        fields = {name.replace(".v1.", f".{version}."): one for name, one in schemas.items()}
        chosen = f"io.k8s.api.resource.{version}.DeviceTaintSelector"
        fields[chosen] = {"properties": {name: {} for name in selector}}
        _reshape(fields, version, taints=taints)
        reported[f"/openapi/v3/apis/{DEVICES}/{version}"] = {"components": {"schemas": fields}}
    if not served:
        reported["/apis"]["items"].remove(group)
    if not role:
        del reported[ROLE]
    return reported


def _reshape(fields: dict[str, Any], version: str, *, taints: bool) -> None:
    """Give devices the shape of their version: in the first beta their content lies deeper."""
    prefix = f"io.k8s.api.resource.{version}"
    device = fields[f"{prefix}.Device"]["properties"]
    content: dict[str, Any] = {
        name: {} for name in device if name != "name" and (taints or name != "taints")
    }
    if version == "v1beta1":
        fields[f"{prefix}.BasicDevice"] = {"properties": content}
        content = {"basic": {}}
    fields[f"{prefix}.Device"] = {"properties": {"name": {}, **content}}


def with_kinds(
    reported: Mapping[str, Any], group: str, version: str, *plurals: str
) -> dict[str, Any]:
    """Return a server with custom resources."""
    more = deepcopy(dict(reported))
    resources = [
        {
            "resource": plural,
            "responseKind": {"kind": plural.title()},
            "scope": "Cluster",
            "verbs": ["get", "list", "watch"],
        }
        for plural in plurals
    ]
    entry = {"version": version, "resources": resources}
    more["/apis"]["items"].append({"metadata": {"name": group}, "versions": [entry]})
    return more


def without_group(reported: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a server that lacks a group."""
    less = deepcopy(dict(reported))
    less["/apis"]["items"].remove(_group(less, name))
    return less


def without_schemas(reported: Mapping[str, Any]) -> dict[str, Any]:
    """Return a server that does not publish its schemas."""
    return {path: answer for path, answer in reported.items() if not path.startswith("/openapi")}


def answering(reported: Mapping[str, Any], writes: list[str] | None = None) -> Handler:
    """Answer requests as such a server would; what is written goes into a list, if there is one."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if writes is not None and request.method != "GET":
            writes.append(f"{request.method} {request.path}")
            return web.json_response(await request.json())
        result = reported.get(request.path)
        if result is None:
            status = {"kind": "Status", "code": 404, "reason": "NotFound", "message": request.path}
            return web.json_response(status, status=404)
        return web.json_response(result)

    return answer


def _group(reported: Mapping[str, Any], name: str) -> Any:
    return next(item for item in reported["/apis"]["items"] if item["metadata"]["name"] == name)
