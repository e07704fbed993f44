"""Small clusters for simulations, as the objects that a server would list."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import manifests
from manifests import DRIVER, claim_spec, gpus, stored
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
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", **more}
    return {**metadata, "namespace": namespace} if namespace else metadata


def node(name: str, cpu: str = "8", **spec: Any) -> Obj:
    return stored(
        manifests.node(name, cpu=cpu, memory="32Gi", pods="110", spec=spec, labels={"on": name})
    )


def slice_(node: str, devices: int = 1, *, first: Obj | None = None) -> Obj:
    listed = gpus(devices)
    listed[0] |= first or {}
    return stored(manifests.slice_(f"s-{node}", node, *listed))


def class_(name: str = CLASS, *expressions: str) -> Obj:
    return stored(manifests.device_class(name, *expressions))


def machines(*nodes: str, devices: int = 1) -> list[Obj]:
    return [class_(), *(obj for name in nodes for obj in (node(name), slice_(name, devices)))]


def request(*tolerations: Obj, count: int = 1) -> Obj:
    more: Obj = {"tolerations": list(tolerations)} if tolerations else {}
    return claim_spec(CLASS, allocationMode="ExactCount", count=count, **more)


def toleration(seconds: int | None = None, key: str = KEY) -> Obj:
    exists: Obj = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return exists if seconds is None else {**exists, "tolerationSeconds": seconds}


def template(name: str, *tolerations: Obj, count: int = 1) -> Obj:
    return stored(manifests.claim_template(name, request(*tolerations, count=count)), namespace="a")


def owner(text: str) -> Obj:
    kind, _, name = text.partition("/")
    versions = {"Job": "batch/v1", "Node": "v1", "Pod": "v1", "ReplicationController": "v1"}
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
    requested = list(tolerations)
    tolerated: Obj = {"tolerations": requested} if requested else {}
    results = [manifests.result(device, on, **tolerated) for device in devices]
    pod = {"resource": "pods", "name": name, "uid": f"uid-{name}"}
    metadata = meta(
        f"{name}-claim",
        "a",
        annotations={"resource.kubernetes.io/pod-claim-name": "gpu"},
        finalizers=["resource.kubernetes.io/delete-protection"],
        ownerReferences=[owner(f"Pod/{name}")],
    )
    spec = request(*requested, count=len(devices))
    status = {"reservedFor": [pod], "allocation": {"devices": {"results": results}}}
    return [
        _pod(name, on, f"{name}-claim", owned_by, **more),
        manifests.body("ResourceClaim", spec=spec, status=status, **metadata),
        template(f"{name}-template", *requested, count=len(devices)),
    ]


def waiting(name: str, *tolerations: Obj, count: int = 1, **more: Any) -> list[Obj]:
    """Return a pod without a node and its claim."""
    metadata = meta(f"{name}-claim", "a", ownerReferences=[owner(f"Pod/{name}")])
    spec = request(*tolerations, count=count)
    claim = manifests.body("ResourceClaim", spec=spec, **metadata)
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
    created = [{"name": "gpu", "resourceClaimName": claim}]
    status: Obj = {"phase": "Running" if on else "Pending", "resourceClaimStatuses": created}
    if on and ready:
        status["conditions"] = [{"type": "Ready", "status": "True"}]
    return manifests.pod(spec=spec, status=status, **metadata)


def rule(name: str = "rule", effect: str = "NoExecute", *, at: datetime = NOON, **more: Any) -> Obj:
    key, annotations = more.pop("key", KEY), more.pop("annotations", {})
    taint: Obj = {"timeAdded": format_time(at)}
    if "rate" in more:
        taint["evictionsPerSecond"] = more.pop("rate")
    selector = {"driver": DRIVER, **more}
    return stored(
        manifests.rule(
            name, effect, key=key, selector=selector, taint=taint, annotations=annotations
        )
    )


def put(body: Obj, kind: Kind[Any] = RULES) -> Put:
    return Put(kind, from_body(kind, body))


def snapshot(
    *objects: Obj,
    taken: datetime = NOON,
    gaps: Iterable[Gap] = (),
    plane: ControlPlane | None = None,
) -> Snapshot:
    kinds = [
        Objects(kind, [from_body(kind, obj) for obj in objects if obj["kind"] == kind.kind])
        for kind in PLAN_KINDS
    ]
    return Snapshot(kinds, taken=taken, gaps=tuple(gaps), control_plane=plane)


def planned(objects: Iterable[Obj], *changes: Any, options: SimulationOptions = QUICK) -> Any:
    simulation = Simulation(snapshot(*objects), options)
    simulation.run(changes)
    return build_plan(simulation)
