"""The objects of a world, as its server takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube.agreement.constraints import pod_fields
from kube.agreement.worlds import (
    FAILED,
    IGNORED,
    INDEXED,
    KEY,
    PARALLEL,
    TOLERATIONS,
    VALUE,
    Change,
    Workload,
    World,
)

Obj = dict[str, Any]
DEVICES = "/apis/resource.k8s.io/v1"
RULES = f"{DEVICES}/devicetaintrules"
WORKLOAD = "agreement"
"""The label of pods that names their workload."""
_APPS, _BATCH = "/apis/apps/v1", "/apis/batch/v1"
_PATHS = {
    "Deployment": (_APPS, "deployments"),
    "StatefulSet": (_APPS, "statefulsets"),
    "DaemonSet": (_APPS, "daemonsets"),
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
    spec |= pod_fields(workload.constraint, name, labels)
    if workload.kind == "Pod":
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}
    template = {"metadata": {"labels": labels}, "spec": spec}
    if workload.kind == "Job":
        spec["restartPolicy"] = "Never"
        count = {"parallelism": workload.replicas, "completions": workload.replicas}
        return _named(name, {**count, **_failures(workload), "template": template})
    body: Obj = {"selector": {"matchLabels": labels}, "template": template}
    if workload.kind != "DaemonSet":
        body["replicas"] = workload.replicas
    if workload.kind == "StatefulSet":
        body["serviceName"] = name
        if workload.shape == PARALLEL:
            body["podManagementPolicy"] = "Parallel"
    return _named(name, body)


def _failures(job: Workload) -> Obj:
    """Return the fields of a Job that decide what failed pods mean."""
    limit: Obj = {"backoffLimit": job.backoff_limit}
    match job.shape:
        case shape if shape == FAILED:
            return limit | {"podReplacementPolicy": "Failed"}
        case shape if shape == IGNORED:
            disrupted = {"type": "DisruptionTarget", "status": "True"}
            rule = {"action": "Ignore", "onPodConditions": [disrupted]}
            return limit | {"podFailurePolicy": {"rules": [rule]}}
        case shape if shape == INDEXED:
            return {"completionMode": "Indexed", "backoffLimitPerIndex": job.backoff_limit}
        case _:
            return limit


def _named(name: str, spec: Obj) -> Obj:
    return {"metadata": {"name": name}, "spec": spec}
