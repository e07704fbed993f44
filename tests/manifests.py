"""Small valid objects, for tests that are about something else."""

from typing import Any

Obj = dict[str, Any]
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
DRIVER = "gpu.example.com"
ONE, TWO = "MQ==", "Mg=="  # as secrets hold them


def secret(name: str = "", data: str = ONE, **metadata: Any) -> Obj:
    named = {"name": name} if name else {}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": named | metadata,
        "data": {"k": data},
    }


def pod(name: str, **metadata: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": pod_spec(),
    }


def node(name: str) -> Obj:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": resources, "allocatable": resources},
    }


def gpus(count: int, *taints: Obj) -> list[Obj]:
    """Return devices `gpu-0`, `gpu-1` and so on; taints are those of the first."""
    devices: list[Obj] = [{"name": f"gpu-{index}"} for index in range(count)]
    return [devices[0] | {"taints": list(taints)}, *devices[1:]] if taints else devices


def slice_(
    name: str, pool: str, *devices: Obj, generation: int = 1, count: int = 1, **spec: Any
) -> Obj:
    """Return a slice of the pool of a node; `nodeName` or `allNodes` say that of other nodes."""
    node = {} if "allNodes" in spec else {"nodeName": pool}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            "devices": list(devices) or gpus(1),
            **node,
            **spec,
        },
    }


def claim_spec(class_name: str = "gpu", name: str = "r", **exactly: Any) -> Obj:
    """Return the spec of a claim with one request."""
    request = {"name": name, "exactly": {"deviceClassName": class_name, **exactly}}
    return {"devices": {"requests": [request]}}


def claim(name: str, class_name: str = "gpu", **exactly: Any) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": claim_spec(class_name, **exactly),
    }


def pod_spec(claim: str = "", *, template: str = "", **spec: Any) -> Obj:
    """Return the spec of a pod, with a claim if one or its template is named."""
    if claim or template:
        source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
        spec["resourceClaims"] = [{"name": "gpu", **source}]
    return {"containers": [{"name": "c", "image": "i"}], **spec}


def rule(
    name: str,
    effect: str = "NoSchedule",
    *,
    key: str = "example.com/bad",
    selector: Obj | None = None,
    taint: Obj | None = None,
    **metadata: Any,
) -> Obj:
    """Return a rule, for all devices of the driver unless it has a selector."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name, **metadata},
        "spec": {
            "deviceSelector": {"driver": DRIVER} if selector is None else selector,
            "taint": {"key": key, "effect": effect, **(taint or {})},
        },
    }


def replica_set(name: str, replicas: int = 1, kind: str = "ReplicaSet", image: str = "i") -> Obj:
    labels = {"app": name}
    spec = {"containers": [{"name": "c", "image": image}]}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def deployment(name: str, replicas: int = 1, image: str = "i") -> Obj:
    return replica_set(name, replicas, "Deployment", image)


def config_map(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def lease(name: str, holder: str = "a") -> Obj:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 10},
    }


def budget(name: str, least: int, **labels: str) -> Obj:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": least, "selector": {"matchLabels": labels}},
    }


def group_path(room: str, group: str, plural: str) -> str:
    """Return a collection of another group in a room's namespace."""
    return f"/apis/{group}/namespaces/{room.rsplit('/', 1)[-1]}/{plural}"
