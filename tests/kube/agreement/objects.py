"""The objects of a world, as its server takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube.agreement.worlds import KEY, TOLERATIONS, VALUE, Change, Workload, World

Obj = dict[str, Any]
DEVICES = "/apis/resource.k8s.io/v1"
RULES = f"{DEVICES}/devicetaintrules"
WORKLOAD = "agreement"
"""The label of pods that names their workload."""
_APPS, _BATCH = "/apis/apps/v1", "/apis/batch/v1"
_PATHS = {
    "Deployment": (_APPS, "deployments"),
    "StatefulSet": (_APPS, "statefulsets"),
    "Job": (_BATCH, "jobs"),
    "Pod": ("/api/v1", "pods"),
}


def cluster_objects(world: World, nodes: list[str]) -> Iterator[tuple[str, Obj]]:
    """Yield the path and body of what is needed before the workloads."""
    picks = {"cel": {"expression": f'device.driver == "{world.driver}"'}}
    yield f"{DEVICES}/deviceclasses", _named(world.driver, {"selectors": [picks]})
    for node, count in zip(nodes, world.pools, strict=False):
        devices = [{"name": f"gpu-{index}"} for index in range(count)]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": world.driver, "nodeName": node, "pool": pool, "devices": devices}
        yield f"{DEVICES}/resourceslices", _named(f"{world.name}-{node}", spec)


def workload_objects(world: World) -> Iterator[tuple[str, Obj]]:
    """Yield the path and body of all workloads, each after its claim."""
    for workload in world.workloads:
        claims = f"{DEVICES}/namespaces/{world.name}"
        request = {
            "deviceClassName": world.driver,
            "tolerations": list(TOLERATIONS[workload.tolerations]),
        }
        claim = {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}
        if workload.shared:
            yield f"{claims}/resourceclaims", _named(workload.name, claim)
        else:
            template = _named(workload.name, {"spec": claim})
            yield f"{claims}/resourceclaimtemplates", template
        group, plural = _PATHS[workload.kind]
        yield f"{group}/namespaces/{world.name}/{plural}", _workload(workload)


def rule(world: World, change: Change, nodes: list[str]) -> Obj:
    """Return the rule of a change."""
    selector = {"driver": world.driver}
    if change.pool is not None:
        selector["pool"] = nodes[change.pool]
    if change.device is not None:
        selector["device"] = f"gpu-{change.device}"
    taint = {"key": KEY, "value": VALUE, "effect": change.effect}
    made = _named(rule_name(world, change), {"deviceSelector": selector, "taint": taint})
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", **made}


def rule_name(world: World, change: Change) -> str:
    """Return the name of a change's rule."""
    return f"{world.name}-{change.rule}"


def _workload(workload: Workload) -> Obj:
    name = workload.name
    reference = "resourceClaimName" if workload.shared else "resourceClaimTemplateName"
    spec: Obj = {
        "containers": [{"name": "c", "image": "example.com/x:1"}],
        "resourceClaims": [{"name": "gpu", reference: name}],
    }
    labels = {WORKLOAD: name}
    if workload.kind == "Pod":
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}
    template = {"metadata": {"labels": labels}, "spec": spec}
    if workload.kind == "Job":
        spec["restartPolicy"] = "Never"
        count = {"parallelism": workload.replicas, "completions": workload.replicas}
        limit = {"backoffLimit": workload.backoff_limit}
        return _named(name, {**count, **limit, "template": template})
    body: Obj = {
        "replicas": workload.replicas,
        "selector": {"matchLabels": labels},
        "template": template,
    }
    if workload.kind == "StatefulSet":
        body["serviceName"] = name
    return _named(name, body)


def _named(name: str, spec: Obj) -> Obj:
    return {"metadata": {"name": name}, "spec": spec}
