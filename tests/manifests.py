"""Manifests for tests: small valid objects as clients write them, as dictionaries.

`body` writes an object of any kind; the others hide what a test is not about. Objects as informers
and decisions have them are in `sully.testing.builders`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

Obj = dict[str, Any]
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
DRIVER = "gpu.example.com"
ONE, TWO = "MQ==", "Mg=="  # as secrets hold them
CLUSTER_GROUP = "cluster.open-cluster-management.io"

_KINDS = {
    "v1": (
        *("ConfigMap", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim"),
        *("Pod", "ResourceQuota", "Secret"),
    ),
    "admissionregistration.k8s.io/v1": (
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    ),
    "apps/v1": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "autoscaling/v1": ("Scale",),
    "batch/v1": ("Job",),
    "coordination.k8s.io/v1": ("Lease",),
    "policy/v1": ("PodDisruptionBudget",),
    "scheduling.k8s.io/v1": ("PriorityClass",),
    "storage.k8s.io/v1": ("StorageClass",),
    "resource.k8s.io/v1": (
        *("DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate"),
        "ResourceSlice",
    ),
    "resource.k8s.io/v1alpha3": ("ResourcePoolStatusRequest", "ResourceSlicePatch"),
    f"{CLUSTER_GROUP}/v1": ("ManagedCluster",),
    f"{CLUSTER_GROUP}/v1beta1": ("Placement", "PlacementDecision"),
    f"{CLUSTER_GROUP}/v1beta2": ("ManagedClusterSet", "ManagedClusterSetBinding"),
    "sully.dev/v1alpha1": (
        *("ClusterTaintPolicy", "DeviceHealth", "DeviceMaintenance", "DeviceTaintPolicy"),
        *("EvictionRecord", "TaintRecord"),
    ),
}
_API_VERSIONS = {kind: version for version, kinds in _KINDS.items() for kind in kinds}


def body(
    kind: str,
    name: str,
    spec: Any = None,
    status: Any = None,
    **metadata: Any,
) -> Obj:
    """Return an object of a kind, in the version that tests use."""
    parts = {"spec": spec, "status": status}
    return {
        "apiVersion": _API_VERSIONS[kind],
        "kind": kind,
        "metadata": {"name": name, **metadata},
        **{part: value for part, value in parts.items() if value is not None},
    }


def stored(obj: Obj, **metadata: Any) -> Obj:
    """Return an object as a server has it, with a uid and a version."""
    own = obj["metadata"]
    added = {"uid": f"uid-{own['name']}", "resourceVersion": "1"}
    return obj | {"metadata": {**added, **own, **metadata}}


# -- pods and nodes -------------------------------------------------------------------------------


def pod(
    name: str,
    spec: Any = None,
    status: Any = None,
    **metadata: Any,
) -> Obj:
    return body("Pod", name, pod_spec() if spec is None else spec, status, **metadata)


def pod_spec(
    claim: str = "", *, template: str = "", resources: Obj | None = None, **spec: Any
) -> Obj:
    """Return the spec of a pod, with a claim if one or its template is named."""
    if claim or template:
        source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
        spec["resourceClaims"] = [{"name": "gpu", **source}]
    container = {"name": "c", "image": "i", **({"resources": resources} if resources else {})}
    return {"containers": [container], **spec}


def claim_references(*claims: str, templates: Iterable[str] = ()) -> list[Obj]:
    """Return the references of a pod to claims and templates, under their names."""
    return [
        *({"name": claim, "resourceClaimName": claim} for claim in claims),
        *({"name": name, "resourceClaimTemplateName": name} for name in templates),
    ]


def pod_template(
    labels: Mapping[str, str], spec: Mapping[str, Any] | None = None, **metadata: Any
) -> Obj:
    """Return the template of the pods of a workload."""
    return {
        "metadata": {"labels": dict(labels), **metadata},
        "spec": pod_spec() if spec is None else dict(spec),
    }


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "10",
    spec: Obj | None = None,
    **metadata: Any,
) -> Obj:
    """Return a node with so much allocatable."""
    resources = {"cpu": cpu, "memory": memory, "pods": pods}
    status = {"capacity": resources, "allocatable": resources}
    return body("Node", name, spec, status, **metadata)


def namespace(name: str, **labels: str) -> Obj:
    return body("Namespace", name, labels={"kubernetes.io/metadata.name": name, **labels})


# -- devices and claims ---------------------------------------------------------------------------


def gpus(count: int, *taints: Obj) -> list[Obj]:
    """Return devices `gpu-0`, `gpu-1` and so on; taints are those of the first."""
    devices: list[Obj] = [{"name": f"gpu-{index}"} for index in range(count)]
    return [devices[0] | {"taints": list(taints)}, *devices[1:]] if taints else devices


def slice_(
    name: str, pool: str, *devices: Obj, generation: int = 1, count: int = 1, **spec: Any
) -> Obj:
    """Return a slice of the pool of a node; `nodeName` or `allNodes` select other nodes."""
    selected = any(field in spec for field in ("allNodes", "perDeviceNodeSelection"))
    # A slice with counters or taints has no devices.
    empty = any(field in spec for field in ("sharedCounters", "taints"))
    return body(
        "ResourceSlice",
        name,
        {
            "driver": DRIVER,
            "pool": resource_pool(pool, generation, count),
            **({} if empty else {"devices": list(devices) or gpus(1)}),
            **({} if selected else {"nodeName": pool}),
            **spec,
        },
    )


def resource_pool(name: str, generation: int = 1, count: int = 1) -> Obj:
    """Return the pool of a slice: its generation, and the number of its slices."""
    return {"name": name, "generation": generation, "resourceSliceCount": count}


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> Obj:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return body("DeviceClass", name, {"selectors": selectors, **spec})


def request(class_name: str = "gpu", name: str = "r", **exactly: Any) -> Obj:
    """Return a request of a claim."""
    return {"name": name, "exactly": {"deviceClassName": class_name, **exactly}}


def claim_spec(class_name: str = "gpu", name: str = "r", **exactly: Any) -> Obj:
    """Return the spec of a claim with one request."""
    return {"devices": {"requests": [request(class_name, name, **exactly)]}}


def claim(name: str, class_name: str = "gpu", **exactly: Any) -> Obj:
    return body("ResourceClaim", name, claim_spec(class_name, **exactly))


def claim_template(name: str, spec: Obj | None = None, **metadata: Any) -> Obj:
    """Return a template of claims with this spec."""
    return body(
        "ResourceClaimTemplate", name, {"spec": claim_spec() if spec is None else spec}, **metadata
    )


def result(device: str, pool: str, *, request: str = "r", **more: Any) -> Obj:
    """Return a device that is allocated for a request."""
    return {"request": request, "driver": DRIVER, "pool": pool, "device": device, **more}


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
    return body(
        "DeviceTaintRule",
        name,
        {
            "deviceSelector": {"driver": DRIVER} if selector is None else selector,
            "taint": {"key": key, "effect": effect, **(taint or {})},
        },
        **metadata,
    )


def patch(name: str, devices: Obj, **metadata: Any) -> Obj:
    """Return a patch: the filter of devices, and what they get."""
    return body("ResourceSlicePatch", name, {"devices": devices}, **metadata)


def device_health(node: str, *devices: Obj, name: str = "", **spec: Any) -> Obj:
    """Return the report of a node about its devices; `spec` has at least `renewTime`."""
    owner = {"nodeName": node, "reporter": "nvml", "leaseDurationSeconds": 30}
    return body("DeviceHealth", name or node, {**owner, "devices": list(devices), **spec})


# -- workloads ------------------------------------------------------------------------------------


def replica_set(name: str, replicas: int = 1, kind: str = "ReplicaSet", image: str = "i") -> Obj:
    spec = {"containers": [{"name": "c", "image": image}]}
    return workload(kind, name, pod_template({"app": name}, spec), replicas=replicas)


def deployment(name: str, replicas: int = 1, image: str = "i") -> Obj:
    return replica_set(name, replicas, "Deployment", image)


def workload(kind: str, name: str, template: Obj, **spec: Any) -> Obj:
    """Return a workload that selects the pods of its template by all their labels."""
    selector = {"matchLabels": template["metadata"]["labels"]}
    return body(kind, name, {"selector": selector, "template": template, **spec})


def budget(name: str, least: int, **labels: str) -> Obj:
    selector = {"matchLabels": labels}
    return body("PodDisruptionBudget", name, {"minAvailable": least, "selector": selector})


# -- clusters -------------------------------------------------------------------------------------


def cluster(
    name: str,
    *taints: Obj,
    accepted: bool | None = None,
    spec: Obj | None = None,
    **metadata: Any,
) -> Obj:
    """Return a cluster of a hub; `accepted` sets `hubAcceptsClient`."""
    fields = dict(spec or {})
    if accepted is not None:
        fields["hubAcceptsClient"] = accepted
    if taints:
        fields["taints"] = list(taints)
    return body("ManagedCluster", name, fields, **metadata)


def cluster_set(name: str, **selector: Any) -> Obj:
    """Return a cluster set, of the clusters that name it unless it has a selector."""
    return body("ManagedClusterSet", name, {"clusterSelector": selector} if selector else {})


def cluster_policy(name: str, *rules: Obj, **spec: Any) -> Obj:
    """Return a policy for all clusters unless it has a selector."""
    return body("ClusterTaintPolicy", name, {"clusterSelector": {}, "rules": list(rules), **spec})


def set_binding(name: str, namespace: str = "default") -> Obj:
    """Return the binding of a cluster set to a namespace; both have one name."""
    return body("ManagedClusterSetBinding", name, {"clusterSet": name}, namespace=namespace)


def placement(name: str, spec: Any, namespace: str = "default") -> Obj:
    return body("Placement", name, spec, namespace=namespace)


# -- others ---------------------------------------------------------------------------------------


def secret(name: str = "", data: str = ONE, **metadata: Any) -> Obj:
    named = {"name": name} if name else {}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": named | metadata,
        "data": {"k": data},
    }


def config_map(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> Obj:
    made = body("ConfigMap", name, **metadata)
    return made if data is None else made | {"data": dict(data)}


def lease(name: str, holder: str = "a") -> Obj:
    return body("Lease", name, {"holderIdentity": holder, "leaseDurationSeconds": 10})


def group_path(namespace: str, group: str, plural: str) -> str:
    """Return a collection of another group in the namespace of a path."""
    return f"/apis/{group}/namespaces/{namespace.rsplit('/', 1)[-1]}/{plural}"
