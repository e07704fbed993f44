"""The objects of a world, as its server takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import manifests
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
    expression = f'device.driver == "{world.driver}"'
    yield f"{DEVICES}/deviceclasses", manifests.device_class(world.driver, expression)
    for node, count in zip(nodes, world.pools, strict=False):
        name, devices = f"{world.name}-{node}", manifests.gpus(count)
        body = manifests.slice_(name, node, *devices, driver=world.driver)
        yield f"{DEVICES}/resourceslices", body


def workload_objects(world: World) -> Iterator[tuple[str, Obj]]:
    """Yield the path and body of all workloads, each after its claim."""
    for workload in world.workloads:
        claims = f"{DEVICES}/namespaces/{world.name}"
        tolerations = list(TOLERATIONS[workload.tolerations])
        spec = manifests.claim_spec(world.driver, "gpu", tolerations=tolerations)
        if workload.shared:
            yield f"{claims}/resourceclaims", manifests.body("ResourceClaim", workload.name, spec)
        else:
            template = manifests.claim_template(workload.name, spec)
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
    return manifests.rule(
        rule_name(world, change),
        change.effect,
        key=KEY,
        selector=selector,
        taint={"value": VALUE},
    )


def rule_name(world: World, change: Change) -> str:
    """Return the name of a change's rule."""
    return f"{world.name}-{change.rule}"


def _workload(workload: Workload) -> Obj:
    name, labels = workload.name, {WORKLOAD: workload.name}
    claim, template = (name, "") if workload.shared else ("", name)
    spec = manifests.pod_spec(claim, template=template)
    spec |= pod_fields(workload.constraint, name, labels)
    if workload.kind == "Pod":
        return manifests.pod(name, spec, labels=labels)
    pods = manifests.pod_template(labels, spec)
    if workload.kind == "Job":
        pods["spec"]["restartPolicy"] = "Never"
        count = {"parallelism": workload.replicas, "completions": workload.replicas}
        return manifests.body("Job", name, {**count, **_failures(workload), "template": pods})
    more: Obj = {} if workload.kind == "DaemonSet" else {"replicas": workload.replicas}
    if workload.kind == "StatefulSet":
        more["serviceName"] = name
        if workload.shape == PARALLEL:
            more["podManagementPolicy"] = "Parallel"
    return manifests.workload(workload.kind, name, pods, **more)


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
