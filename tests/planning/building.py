"""Small clusters for simulations, as the objects that a server would list."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import manifests
from manifests import DRIVER, claim_spec, gpus
from sully.client.objects import from_body
from sully.client.transport import Kind
from sully.domain.capabilities.control_plane import ControlPlane
from sully.machinery.formats.timestamps import format_time
from sully.planning.dryrun.changes import Put
from sully.planning.plan_builder import build_plan
from sully.planning.simulation.cluster_copy import PLAN_KINDS, SimulationOptions
from sully.planning.simulation.simulator import Simulation
from sully.testing.clock import NOON
from sully.views.kinds import RULES
from sully.views.snapshot.snapshot import Gap, Objects, Snapshot

Obj = dict[str, Any]
KEY, CLASS = "example.com/broken", "gpu"
QUICK = SimulationOptions(stop_seconds=1)


def meta(name: str, namespace: str = "", **more: Any) -> Obj:
    found = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", **more}
    return {**found, "namespace": namespace} if namespace else found


def node(name: str, cpu: str = "8", **spec: Any) -> Obj:
    allocatable = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": meta(name, labels={"on": name}),
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


def slice_(node: str, devices: int = 1, *, first: Obj | None = None) -> Obj:
    listed = gpus(devices)
    listed[0] |= first or {}
    return manifests.slice_(f"s-{node}", node, *listed) | {"metadata": meta(f"s-{node}")}


def class_(name: str = CLASS, *expressions: str) -> Obj:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {"kind": "DeviceClass", "metadata": meta(name), "spec": {"selectors": selectors}}


def machines(*nodes: str, devices: int = 1) -> list[Obj]:
    return [class_(), *(each for name in nodes for each in (node(name), slice_(name, devices)))]


def request(*tolerations: Obj, count: int = 1) -> Obj:
    more: Obj = {"tolerations": list(tolerations)} if tolerations else {}
    return claim_spec(CLASS, allocationMode="ExactCount", count=count, **more)


def toleration(seconds: int | None = None, key: str = KEY) -> Obj:
    found: Obj = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return found if seconds is None else {**found, "tolerationSeconds": seconds}


def template(name: str, *tolerations: Obj, count: int = 1) -> Obj:
    return {
        "kind": "ResourceClaimTemplate",
        "metadata": meta(name, "a"),
        "spec": {"spec": request(*tolerations, count=count)},
    }


def owner(text: str) -> Obj:
    kind, _, name = text.partition("/")
    versions = {"Job": "batch/v1", "Node": "v1", "ReplicationController": "v1"}
    return {
        "apiVersion": versions.get(kind, "apps/v1"),
        "kind": kind,
        "name": name,
        "uid": f"uid-{name}",
        "controller": True,
    }


def running(
    name: str,
    on: str,
    *devices: str,
    owned_by: str = "",
    tolerations: Iterable[Obj] = (),
    **more: Any,
) -> list[Obj]:
    """Return a pod on a node with a claim from a template of its own, and that template."""
    held = list(tolerations)
    results = [
        {"request": "r", "driver": DRIVER, "pool": on, "device": each}
        | ({"tolerations": held} if held else {})
        for each in devices
    ]
    pod = {"resource": "pods", "name": name, "uid": f"uid-{name}"}
    claim = {
        "kind": "ResourceClaim",
        "metadata": meta(
            f"{name}-claim",
            "a",
            annotations={"resource.kubernetes.io/pod-claim-name": "gpu"},
            finalizers=["resource.kubernetes.io/delete-protection"],
            ownerReferences=[
                {"apiVersion": "v1", "kind": "Pod", "controller": True}
                | {"name": name, "uid": f"uid-{name}"}
            ],
        ),
        "spec": request(*held, count=len(devices)),
        "status": {"reservedFor": [pod], "allocation": {"devices": {"results": results}}},
    }
    return [
        _pod(name, on, f"{name}-claim", owned_by, **more),
        claim,
        template(f"{name}-template", *held, count=len(devices)),
    ]


def waiting(name: str, *tolerations: Obj, count: int = 1, **more: Any) -> list[Obj]:
    """Return a pod without a node and its claim."""
    claim = {
        "kind": "ResourceClaim",
        "metadata": meta(
            f"{name}-claim",
            "a",
            ownerReferences=[
                {"apiVersion": "v1", "kind": "Pod", "controller": True}
                | {"name": name, "uid": f"uid-{name}"}
            ],
        ),
        "spec": request(*tolerations, count=count),
    }
    return [_pod(name, "", f"{name}-claim", "", **more), claim]


def _pod(name: str, on: str, claim: str, owned_by: str, *, ready: bool = True, **more: Any) -> Obj:
    metadata = meta(name, "a", labels=more.pop("labels", {}))
    if owned_by:
        metadata["ownerReferences"] = [owner(owned_by)]
    spec: Obj = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": more.pop("cpu", "1")}}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": f"{name}-template"}],
        "schedulerName": "default-scheduler",
        **more,
    }
    if on:
        spec["nodeName"] = on
    made = [{"name": "gpu", "resourceClaimName": claim}]
    status: Obj = {"phase": "Running" if on else "Pending", "resourceClaimStatuses": made}
    if on and ready:
        status["conditions"] = [{"type": "Ready", "status": "True"}]
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def rule(name: str = "rule", effect: str = "NoExecute", *, at: datetime = NOON, **more: Any) -> Obj:
    key, annotations = more.pop("key", KEY), more.pop("annotations", {})
    taint: Obj = {"timeAdded": format_time(at)}
    if "rate" in more:
        taint["evictionsPerSecond"] = more.pop("rate")
    selector = {"driver": DRIVER, **more}
    body = manifests.rule(name, effect, key=key, selector=selector, taint=taint)
    return body | {"metadata": meta(name, annotations=annotations)}


def put(body: Obj, kind: Kind[Any] = RULES) -> Put:
    return Put(kind, from_body(kind, body))


def snapshot(
    *objects: Obj,
    taken: datetime = NOON,
    gaps: Iterable[Gap] = (),
    plane: ControlPlane | None = None,
) -> Snapshot:
    found = [
        Objects(kind, [from_body(kind, each) for each in objects if each["kind"] == kind.kind])
        for kind in PLAN_KINDS
    ]
    return Snapshot(found, taken=taken, gaps=tuple(gaps), control_plane=plane)


def planned(objects: Iterable[Obj], *changes: Any, options: SimulationOptions = QUICK) -> Any:
    simulation = Simulation(snapshot(*objects), options)
    simulation.run(changes)
    return build_plan(simulation)
