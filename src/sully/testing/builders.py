"""Objects for tests: valid as they are, with arguments for what a test is about.

>>> broken = slice_("node-7", device("gpu-0", taint("NoExecute")), pool="node-7")
>>> broken.spec.devices[0].taints[0].effect
'NoExecute'
>>> manifest(rule("maintenance", select(pool="node-7")))["kind"]
'DeviceTaintRule'
>>> manifest(cluster("eu-1"))["apiVersion"]
'cluster.open-cluster-management.io/v1'

They return the types that informers and decisions use; `manifest` converts them to what `kubectl
apply` or a `Transport` takes. An object `x` has the uid `uid-x`, and times count from `NOON`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from sully.api.cluster.types import (
    SET_LABEL,
    LabelSelector,
    ManagedCluster,
    ManagedClusterClaim,
    ManagedClusterSelector,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    ManagedClusterSetBindingSpec,
    ManagedClusterSetSpec,
    ManagedClusterSpec,
    ManagedClusterStatus,
    Taint,
)
from sully.api.resource.types import (
    CELDeviceSelector,
    Counter,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceClassSpec,
    DeviceCounterConsumption,
    DevicePatch,
    DeviceRequest,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    DeviceToleration,
    NullableDeviceAttribute,
    NullValue,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
    ResourceSlicePatch,
    ResourceSlicePatchSpec,
    ResourceSliceSpec,
    SliceTaint,
)
from sully.api.sully.types import (
    ClusterTaintPolicy,
    ClusterTaintPolicyCondition,
    ClusterTaintPolicyRule,
    ClusterTaintPolicySpec,
    ClusterTaintPolicyTaint,
)
from sully.client.objects import to_body
from sully.client.transport import Kind
from sully.domain.claims.pods import Pod
from sully.domain.devices.pools import DeviceId
from sully.domain.scheduling.objects import Node
from sully.domain.workloads.workloads import Budget, BudgetSpec, BudgetStatus
from sully.machinery.meta import Condition, ObjectMeta, TrackedMeta
from sully.testing.clock import NOON
from sully.views import fleet_kinds, kinds

DRIVER = "gpu.example.com"
KEY = "example.com/broken"
NAMESPACE, SET = "apps", "fleet"
GPU = DeviceId(DRIVER, "pool-1", "gpu-0")
PodT = TypeVar("PodT")


def meta(name: str, *, uid: str = "", version: str = "1", **more: Any) -> ObjectMeta:
    return ObjectMeta(name=name, uid=uid or f"uid-{name}", resource_version=version, **more)


def tracked_meta(name: str, *, uid: str = "", version: str = "1", **more: Any) -> TrackedMeta:
    """Return the metadata of a rule, a patch or a cluster."""
    return TrackedMeta(name=name, uid=uid or f"uid-{name}", resource_version=version, **more)


def taint(
    effect: str = "NoExecute",
    *,
    key: str = KEY,
    value: str = "",
    after: float = 0,
    time: datetime | None = NOON,
    **more: Any,
) -> DeviceTaint:
    """Return a taint that was added at noon, or so many seconds later."""
    added = time + timedelta(seconds=after) if time is not None else None
    return DeviceTaint(key=key, value=value, effect=effect, time_added=added, **more)


def exists(
    *, key: str = KEY, effect: str = "NoExecute", seconds: int | None = None
) -> DeviceToleration:
    return DeviceToleration(key=key, operator="Exists", effect=effect, toleration_seconds=seconds)


def equal(
    value: str = "", *, key: str = KEY, effect: str = "NoExecute", seconds: int | None = None
) -> DeviceToleration:
    return DeviceToleration(
        key=key, operator="Equal", value=value, effect=effect, toleration_seconds=seconds
    )


def cel(*expressions: str) -> tuple[DeviceSelector, ...]:
    return tuple(DeviceSelector(cel=CELDeviceSelector(expression=text)) for text in expressions)


def select(**criteria: Any) -> DeviceTaintSelector:
    return DeviceTaintSelector(**criteria)


def rule(
    name: str = "rule",
    selector: DeviceTaintSelector | None = None,
    with_taint: DeviceTaint | None = None,
    **more: Any,
) -> DeviceTaintRule:
    return DeviceTaintRule(
        metadata=tracked_meta(name, **{"generation": 1} | more),
        spec=DeviceTaintRuleSpec(device_selector=selector, taint=with_taint or taint()),
    )


def text(value: str) -> DeviceAttribute:
    return DeviceAttribute(string_value=value)


def device(name: str = "gpu-0", *taints: DeviceTaint, **attributes: DeviceAttribute) -> Device:
    return Device(name=name, taints=taints, attributes=attributes)


def partition(
    name: str,
    amounts: Mapping[str, str],
    *taints: DeviceTaint,
    of: str = "card",
    groups: tuple[str, ...] = (),
) -> Device:
    """Return a device that consumes these amounts of a counter set."""
    counters = {counter: Counter(value=amount) for counter, amount in amounts.items()}
    consumed = DeviceCounterConsumption(
        counter_set=of, counters=counters, compatibility_groups=groups
    )
    return Device(name=name, taints=taints, consumes_counters=(consumed,))


def devices(count: int) -> tuple[Device, ...]:
    """Return devices `gpu-0`, `gpu-1` and so on."""
    return tuple(device(f"gpu-{index}") for index in range(count))


def slice_(
    name: str = "slice-1",
    *devices: Device,
    pool: str = "pool-1",
    generation: int = 1,
    count: int = 1,
    driver: str = DRIVER,
    node: str | None = "node-1",
    device_taints: tuple[tuple[str, DeviceTaint], ...] = (),
    version: str = "1",
    **spec: Any,
) -> ResourceSlice:
    """Return a slice of devices, or of taints: `device_taints` are pairs of device and taint."""
    return ResourceSlice(
        metadata=meta(name, version=version),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool, generation=generation, resource_slice_count=count),
            devices=devices,
            taints=tuple(SliceTaint(device=name, taint=entry) for name, entry in device_taints),
            **({"node_name": node} if node else {"all_nodes": True}) | spec,
        ),
    )


NULL = NullableDeviceAttribute(null=NullValue())


def patch(
    name: str = "patch",
    *,
    filter_: DeviceTaintSelector | None = None,
    priority: int | None = None,
    after: float = 0,
    attributes: dict[str, NullableDeviceAttribute] | None = None,
    capacity: dict[str, str] | None = None,
    taints: tuple[DeviceTaint, ...] = (),
) -> ResourceSlicePatch:
    """Return a patch that was created at noon, or so many seconds later."""
    amounts = {key: DeviceCapacity(value=value) for key, value in (capacity or {}).items()}
    return ResourceSlicePatch(
        metadata=tracked_meta(name, creation_timestamp=NOON + timedelta(seconds=after)),
        spec=ResourceSlicePatchSpec(
            devices=DevicePatch(
                filter=filter_,
                priority=priority,
                attributes=attributes or {},
                capacity=amounts,
                taints=taints,
            )
        ),
    )


def set_to(value: str) -> NullableDeviceAttribute:
    return NullableDeviceAttribute(string_value=value)


def class_(name: str = "gpu", *expressions: str, **spec: Any) -> DeviceClass:
    return DeviceClass(
        metadata=meta(name), spec=DeviceClassSpec(selectors=cel(*expressions), **spec)
    )


def claim(
    name: str = "claim",
    *devices: DeviceId | tuple[DeviceId, tuple[DeviceToleration, ...]],
    pods: tuple[str, ...] = ("pod",),
    namespace: str = "default",
    owner: str = "",
    uid: str = "",
    annotations: dict[str, str] | None = None,
    version: str = "1",
    consumers: tuple[dict[str, str], ...] = (),
    requests: tuple[DeviceRequest, ...] = (),
) -> ResourceClaim:
    """Return a claim with allocated devices, reserved for pods; the uid of pod `p` is `uid-p`."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": version,
        "annotations": annotations or {},
    }
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": owner, "controller": True}
        ]
    status: dict[str, Any] = {}
    if devices:
        status["allocation"] = {"devices": {"results": [_result(device) for device in devices]}}
    reserved = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
    status["reservedFor"] = [*reserved, *consumers]
    spec = {"devices": {"requests": msgspec.to_builtins(requests)} if requests else {}}
    body = {"metadata": metadata, "spec": spec, "status": status}
    return msgspec.convert(body, ResourceClaim)


def request(name: str = "r", class_name: str = "gpu", **exactly: Any) -> DeviceRequest:
    """Return a request for one device of a class; `exactly` has fields as a manifest has them."""
    spec = {"deviceClassName": class_name, "count": 1, **exactly}
    return msgspec.convert({"name": name, "exactly": spec}, DeviceRequest)


def _result(
    allocated: DeviceId | tuple[DeviceId, tuple[DeviceToleration, ...]],
) -> dict[str, Any]:
    id_, tolerations = allocated if isinstance(allocated[1], tuple) else (allocated, ())
    return {
        "request": "r",
        "driver": id_[0],
        "pool": id_[1],
        "device": id_[2],
        "tolerations": msgspec.to_builtins(tolerations),
    }


def pod(name: str = "pod", *claims: str, **more: Any) -> Pod:
    """Return a pod that references claims; `more` as for `pod_as`."""
    return pod_as(Pod, name, *claims, **more)


def pod_as(
    type_: type[PodT],
    name: str = "pod",
    *claims: str,
    namespace: str = "default",
    node: str = "node-1",
    templates: Mapping[str, str | None] | None = None,
    requests: Mapping[str, str] | None = None,
    uid: str = "",
    version: str = "1",
    owner: str = "",
    **more: Mapping[str, Any],
) -> PodT:
    """Return a pod as a type that has the fields a reader needs, for example the scheduler's.

    `templates` maps claims from templates, by their names in the pod, to the created claims;
    `requests` are those of its container; `owner` is its controller, such as `Job/train`;
    `metadata`, `spec` and `status` are added as they are.
    """
    created = templates or {}
    container = {"name": "main", "resources": {"requests": requests or {}}}
    body: dict[str, dict[str, Any]] = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{name}",
            "resourceVersion": version,
            "ownerReferences": [owner_reference(owner)] if owner else [],
        },
        "spec": {
            "nodeName": node,
            "containers": [container],
            "resourceClaims": [
                *({"name": claim, "resourceClaimName": claim} for claim in claims),
                *({"name": claim, "resourceClaimTemplateName": "t"} for claim in created),
            ],
        },
        "status": {
            "resourceClaimStatuses": [
                {"name": claim, "resourceClaimName": name} for claim, name in created.items()
            ]
        },
    }
    return msgspec.convert({part: {**body[part], **more.get(part, {})} for part in body}, type_)


def owner_reference(owner: str, **more: Any) -> dict[str, Any]:
    """Return the reference to a controller, from kind and name: `Job/train` has `uid-train`."""
    kind, _, name = owner.partition("/")
    version = {"Job": "batch/v1", "Node": "v1", "Pod": "v1"}.get(kind, "apps/v1")
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}"}
    return {**reference, "controller": True, **more}


def node(name: str = "node-1", cpu: str = "4", **more: Mapping[str, Any]) -> Node:
    """Return a node with allocatable resources; `metadata` and `spec` are added as they are."""
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    body = {
        "metadata": {"name": name, **more.get("metadata", {})},
        "spec": more.get("spec", {}),
        "status": {"allocatable": allocatable},
    }
    return msgspec.convert(body, Node)


def budget(
    name: str = "pdb",
    *,
    status: BudgetStatus | None = None,
    namespace: str = "default",
    **spec: Any,
) -> Budget:
    return Budget(
        metadata=meta(name, namespace=namespace, generation=1),
        spec=BudgetSpec(**spec),
        status=status or BudgetStatus(),
    )


def cluster_taint(
    key: str = "k1", value: str = "v1", effect: str = "NoSelect", *, added: float | None = 0
) -> Taint:
    """Return a taint that was added so many seconds after noon; None: without a time."""
    when = NOON + timedelta(seconds=added) if added is not None else None
    return Taint(key=key, value=value, effect=effect, time_added=when)


def cluster(
    name: str,
    *taints: Taint,
    sets: str | None = SET,
    labels: Mapping[str, str] | None = None,
    claims: Mapping[str, str] | None = None,
    amounts: Mapping[str, str | int] | None = None,
    conditions: Mapping[str, str] | None = None,
    terminating: bool = False,
    **metadata: Any,
) -> ManagedCluster:
    """Return a cluster in a set; with `terminating`, one that is being deleted."""
    own = {SET_LABEL: sets} if sets is not None else {}
    return ManagedCluster(
        metadata=TrackedMeta(
            name=name,
            uid=f"uid-{name}",
            labels={**own, **(labels or {})},
            deletion_timestamp=NOON if terminating else None,
            **metadata,
        ),
        spec=ManagedClusterSpec(taints=taints),
        status=ManagedClusterStatus(
            capacity={**(amounts or {})},
            allocatable={**(amounts or {})},
            cluster_claims=tuple(
                ManagedClusterClaim(name=claim, value=value)
                for claim, value in (claims or {}).items()
            ),
            conditions=tuple(
                Condition(
                    type=kind, status=status, reason="R", message="", last_transition_time=NOON
                )
                for kind, status in (conditions or {}).items()
            ),
        ),
    )


def cluster_policy_rule(
    type_: str, status: str = "False", *, key: str = "down", **more: Any
) -> ClusterTaintPolicyRule:
    """Return a rule of a policy: the taint of clusters with a condition."""
    condition = ClusterTaintPolicyCondition(
        type=type_, status=status, or_statuses=more.pop("or_statuses", ())
    )
    taint = ClusterTaintPolicyTaint(key=key, effect="NoSelect")
    return ClusterTaintPolicyRule(condition=condition, taint=taint, **more)


def cluster_policy(
    *rules: ClusterTaintPolicyRule, selector: LabelSelector | None, **spec: Any
) -> ClusterTaintPolicy:
    spec = {"cluster_selector": selector, "rules": rules, **spec}
    return ClusterTaintPolicy(metadata=ObjectMeta(name="p"), spec=ClusterTaintPolicySpec(**spec))


def cluster_set(
    name: str = SET, selector: LabelSelector | None = None, kind: str = ""
) -> ManagedClusterSet:
    """Return a set by its label, or by a selector."""
    kind = kind or ("LabelSelector" if selector is not None else "ExclusiveClusterSetLabel")
    cluster_selector = ManagedClusterSelector(selector_type=kind, label_selector=selector)
    return ManagedClusterSet(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}"),
        spec=ManagedClusterSetSpec(cluster_selector=cluster_selector),
    )


def set_binding(name: str = SET, namespace: str = NAMESPACE) -> ManagedClusterSetBinding:
    """Return the binding that lets placements of a namespace select from a set."""
    return ManagedClusterSetBinding(
        metadata=ObjectMeta(namespace=namespace, name=name, uid=f"uid-{namespace}-{name}"),
        spec=ManagedClusterSetBindingSpec(cluster_set=name),
    )


_MANIFESTS: dict[type, Kind[Any]] = {
    kind.type: kind
    for kind in (
        *(
            kinds.SLICES,
            kinds.RULES,
            kinds.PATCHES,
            kinds.CLASSES,
            kinds.CLAIMS,
            kinds.CONSUMER_PODS,
        ),
        *(fleet_kinds.CLUSTERS, fleet_kinds.SETS, fleet_kinds.BINDINGS),
    )
}


def manifest(obj: msgspec.Struct) -> dict[str, Any]:
    """Return an object as it is written to an API server, without what the server sets."""
    body = to_body(_MANIFESTS[type(obj)], obj)
    for name in ("uid", "resourceVersion", "generation", "creationTimestamp"):
        body["metadata"].pop(name, None)
    if isinstance(obj, Pod):
        # Controllers read no containers, so this type has none; a server requires one.
        body["spec"] = {"containers": [{"name": "main", "image": "example.com/app:1"}]} | body[
            "spec"
        ]
    return body
