"""A fleet of nodes with devices, pods that request one each, and rules that evict most of them."""

from typing import Any

from sully.client.transport import Kind

Obj = dict[str, Any]

DRIVER = "gpu.example.com"
CLASS = "gpu"
NAMESPACE = "work"
PER_NODE = 8
SPARED = 5
"""Every fifth node keeps its pods."""

NODES: Kind[Obj] = Kind("", "v1", "nodes", "Node", dict, namespaced=False)
NAMESPACES: Kind[Obj] = Kind("", "v1", "namespaces", "Namespace", dict, namespaced=False)
PODS: Kind[Obj] = Kind("", "v1", "pods", "Pod", dict)
CLAIMS: Kind[Obj] = Kind("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", dict)
CLASSES: Kind[Obj] = Kind(
    "resource.k8s.io", "v1", "deviceclasses", "DeviceClass", dict, namespaced=False
)
SLICES: Kind[Obj] = Kind(
    "resource.k8s.io", "v1", "resourceslices", "ResourceSlice", dict, namespaced=False
)
TEMPLATES: Kind[Obj] = Kind(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", dict
)
TAINT_RULES: Kind[Obj] = Kind(
    "resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule", dict, namespaced=False
)
RECORDS: Kind[Obj] = Kind("sully.dev", "v1alpha1", "evictionrecords", "EvictionRecord", dict)
LEASES: Kind[Obj] = Kind("coordination.k8s.io", "v1", "leases", "Lease", dict)


def node_name(number: int) -> str:
    """Name a node; its pool has the same name."""
    return f"node-{number:04}"


def spared(pool: str) -> bool:
    """Report whether no rule taints a pool."""
    return int(pool.rpartition("-")[2]) % SPARED == 0


def node(number: int) -> Obj:
    """Return a node with enough resources for all pods."""
    resources = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return {
        "metadata": {"name": node_name(number)},
        "status": {"allocatable": resources, "capacity": resources},
    }


def slice_of(number: int) -> Obj:
    """Return the devices of a node."""
    name = node_name(number)
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{index}"} for index in range(PER_NODE)]
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
    return {"metadata": {"name": name}, "spec": spec}


def device_class() -> Obj:
    """Return the class of all devices."""
    expression = f'device.driver == "{DRIVER}"'
    selectors = [{"cel": {"expression": expression}}]
    return {"metadata": {"name": CLASS}, "spec": {"selectors": selectors}}


def template() -> Obj:
    """Return what every pod claims: one device."""
    request = {"name": "gpu", "exactly": {"deviceClassName": CLASS}}
    return {
        "metadata": {"namespace": NAMESPACE, "name": "one"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def pod(number: int) -> Obj:
    """Return a pod with a claim for a device."""
    container = {"name": "c", "image": "i:1", "resources": {"claims": [{"name": "gpu"}]}}
    claim = {"name": "gpu", "resourceClaimTemplateName": "one"}
    return {
        "metadata": {"namespace": NAMESPACE, "name": f"pod-{number:05}"},
        "spec": {"containers": [container], "resourceClaims": [claim]},
    }


def rule(pool: str) -> Obj:
    """Return the rule that evicts the pods of a pool; it has the name of the pool."""
    taint = {"key": "example.com/broken", "value": "yes", "effect": "NoExecute"}
    selector = {"driver": DRIVER, "pool": pool}
    return {
        "metadata": {"name": pool},
        "spec": {"deviceSelector": selector, "taint": taint},
    }
