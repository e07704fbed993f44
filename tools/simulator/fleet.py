"""The objects of simulated histories: nodes, devices, claims, pods, workloads and rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sully.client.transport import Kind

Obj = dict[str, Any]

NAMESPACE = "work"
DRIVER = "gpu.example.com"
SHARED = "shared.example.com"
PARTS = "parts.example.com"
KEYS = ("example.com/broken", "example.com/hot")
SHARED_MEMORY = 8
"""Gi of a shared device."""
SLOTS = 4
"""The counter that the parts of a device share."""
PART_SLOTS = (1, 1, 2, 2, 3)

NODES: Kind[Obj] = Kind("", "v1", "nodes", "Node", dict, namespaced=False)
NAMESPACES: Kind[Obj] = Kind("", "v1", "namespaces", "Namespace", dict, namespaced=False)
ACCOUNTS: Kind[Obj] = Kind("", "v1", "serviceaccounts", "ServiceAccount", dict)
PODS: Kind[Obj] = Kind("", "v1", "pods", "Pod", dict)
REPLICA_SETS: Kind[Obj] = Kind("apps", "v1", "replicasets", "ReplicaSet", dict)
BUDGETS: Kind[Obj] = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", dict)
_RESOURCE = ("resource.k8s.io", "v1")
CLAIMS: Kind[Obj] = Kind(*_RESOURCE, "resourceclaims", "ResourceClaim", dict)
CLASSES: Kind[Obj] = Kind(*_RESOURCE, "deviceclasses", "DeviceClass", dict, namespaced=False)
SLICES: Kind[Obj] = Kind(*_RESOURCE, "resourceslices", "ResourceSlice", dict, namespaced=False)
TEMPLATES: Kind[Obj] = Kind(*_RESOURCE, "resourceclaimtemplates", "ResourceClaimTemplate", dict)
RULES: Kind[Obj] = Kind(*_RESOURCE, "devicetaintrules", "DeviceTaintRule", dict, namespaced=False)
POLICIES: Kind[Obj] = Kind(
    "sully.dev", "v1alpha1", "devicetaintpolicies", "DeviceTaintPolicy", dict, namespaced=False
)

Toleration = tuple[str, str, int | None]
"""Key (empty: every key), effect (empty: every effect) and seconds."""
TOLERATIONS: dict[str, tuple[Toleration, ...]] = {
    "plain": (),
    "tolerant": (("", "", None),),
    "patient": ((KEYS[0], "NoExecute", 120),),
    "hardy": ((KEYS[0], "NoExecute", None), (KEYS[1], "NoExecute", 300)),
    "scheduled": ((KEYS[1], "NoSchedule", None),),
}


def node_name(number: int) -> str:
    """Return the name of a node, which is also that of its pool."""
    return f"worker-{number:04}"


def node(number: int) -> Obj:
    """Return a node with room for every pod."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    labels = {"sully.dev/simulated": "true", "kubernetes.io/hostname": node_name(number)}
    return {
        "metadata": {"name": node_name(number), "labels": labels},
        "status": {"allocatable": room, "capacity": room},
    }


def gpu_slice(
    number: int, devices: int, tainted: Collection[int] = (), effect: str = "NoExecute"
) -> Obj:
    """Return the slice of a node; its driver taints some devices."""
    taint = {"key": KEYS[1], "value": "driver", "effect": effect}
    listed: list[Obj] = [{"name": f"gpu-{index}"} for index in range(devices)]
    for index in tainted:
        listed[index]["taints"] = [dict(taint)]
    return _slice(DRIVER, node_name(number), {"devices": listed})


def shared_slice(number: int) -> Obj:
    """Return the slice of a device that several claims use at the same time."""
    capacity = {"memory": {"value": f"{SHARED_MEMORY}Gi"}}
    device = {"name": "mem-0", "allowMultipleAllocations": True, "capacity": capacity}
    return _slice(SHARED, node_name(number), {"devices": [device]})


def part_slices(number: int) -> list[Obj]:
    """Return the slices of a device that can be divided in several ways."""
    counters = [{"name": "board", "counters": {"slots": {"value": str(SLOTS)}}}]
    devices = [
        {
            "name": f"part-{index}",
            "consumesCounters": [
                {"counterSet": "board", "counters": {"slots": {"value": str(slots)}}}
            ],
        }
        for index, slots in enumerate(PART_SLOTS)
    ]
    return [
        _slice(PARTS, node_name(number), {"sharedCounters": counters}, count=2, part="-counters"),
        _slice(PARTS, node_name(number), {"devices": devices}, count=2),
    ]


def _slice(driver: str, name: str, content: Obj, count: int = 1, part: str = "") -> Obj:
    pool = {"name": name, "generation": 1, "resourceSliceCount": count}
    return {
        "metadata": {"name": f"{name}-{driver}{part}"},
        "spec": {"driver": driver, "nodeName": name, "pool": pool, **content},
    }


def device_class(name: str, driver: str) -> Obj:
    """Return the class of all devices of a driver."""
    expression = f'device.driver == "{driver}"'
    return {
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def _tolerations(names: Iterable[Toleration]) -> list[Obj]:
    return [
        {"operator": "Exists"}
        | ({"key": key} if key else {})
        | ({"effect": effect} if effect else {})
        | ({"tolerationSeconds": seconds} if seconds is not None else {})
        for key, effect, seconds in names
    ]


def claim_spec(kind: str) -> Obj:
    """Return what a claim of a kind requests."""
    if kind == "shared":
        exactly: Obj = {
            "deviceClassName": "shared",
            "capacity": {"requests": {"memory": "3Gi"}},
        }
    elif kind == "part":
        exactly = {"deviceClassName": "parts"}
    elif kind == "pair":
        exactly = {"deviceClassName": "gpu", "count": 2, "allocationMode": "ExactCount"}
    else:
        exactly = {"deviceClassName": "gpu", "tolerations": _tolerations(TOLERATIONS[kind])}
    return {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}


CLAIM_KINDS = (*TOLERATIONS, "shared", "part", "pair")


def template(kind: str) -> Obj:
    """Return the template of claims of a kind."""
    return {
        "metadata": {"namespace": NAMESPACE, "name": kind},
        "spec": {"spec": claim_spec(kind)},
    }


def claim(name: str, kind: str) -> Obj:
    """Return a claim that pods may share."""
    return {"metadata": {"namespace": NAMESPACE, "name": name}, "spec": claim_spec(kind)}


def pod_spec(*, template: str = "", claim: str = "") -> Obj:
    """Return the spec of a pod with one claim."""
    source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
    container = {"name": "c", "image": "i:1", "resources": {"claims": [{"name": "device"}]}}
    return {
        "containers": [container],
        "resourceClaims": [{"name": "device", **source}],
        "terminationGracePeriodSeconds": 5,
    }


def pod(name: str, spec: Obj) -> Obj:
    """Return a pod without an owner."""
    return {"metadata": {"namespace": NAMESPACE, "name": name}, "spec": spec}


def replica_set(name: str, kind: str, replicas: int) -> Obj:
    """Return a workload whose pods are replaced."""
    labels = {"app": name}
    return {
        "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(template=kind)},
        },
    }


def budget(name: str, least: int) -> Obj:
    """Return the budget of a workload."""
    return {
        "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": name}}},
    }


def rule(name: str, *, selector: Obj, key: str, effect: str, rate: int = 0, paused: bool) -> Obj:
    """Return a rule."""
    taint: Obj = {"key": key, "value": name, "effect": effect}
    if rate:
        taint["evictionsPerSecond"] = rate
    annotations = {"sully.dev/paused": "true"} if paused else {}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"deviceSelector": selector, "taint": taint},
    }


def policy(name: str) -> Obj:
    """Return a policy that reacts to the taints of the driver in steps."""
    return {
        "metadata": {"name": name},
        "spec": {
            "mode": "Enforce",
            "selector": {"driver": DRIVER},
            "sources": [{"name": "driver", "driverTaint": {"key": KEYS[1]}}],
            "taint": {"key": "example.com/policy"},
            "steps": [{"effect": "NoSchedule"}, {"after": "2m", "effect": "NoExecute"}],
            "holdFor": "10s",
            "clearAfter": "1m",
            "limits": [{"scope": "Fleet", "maxUnavailable": 2}],
        },
    }
