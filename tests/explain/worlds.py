"""Small clusters for questions: objects as manifests, with what a case is not about filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import manifests
from manifests import DRIVER
from sully.client.transport import Key, Kind
from sully.explain.explanation import Explanation
from sully.explain.questions import QUESTIONS
from sully.explain.reader import Reader
from sully.machinery.formats.timestamps import format_time
from sully.testing.clock import NOON
from sully.views.snapshot.kinds import EVERYTHING, EVICTION_EVENTS
from sully.views.snapshot.snapshot import Gap, Objects, Snapshot

Obj = dict[str, Any]

CLASS = "gpus"
NAMESPACE = "team"
KINDS: dict[str, Kind[Any]] = {each.kind: each for each in EVERYTHING}
KINDS["Event"] = EVICTION_EVENTS.read_as(dict[str, Any])


def at(seconds: float) -> str:
    """Return a time so many seconds after noon."""
    return format_time(NOON + timedelta(seconds=seconds))


def snapshot(
    objects: Iterable[Obj],
    *,
    after: float = 0,
    missing: Iterable[str] = (),
    hidden: Iterable[str] = (),
) -> Snapshot:
    """Return a snapshot of these objects, taken so many seconds after noon.

    Kinds that are missing the server does not have; those that are hidden may not be seen.
    """
    away = {*missing, *hidden}
    found: dict[str, list[Obj]] = {name: [] for name in KINDS if name not in away}
    for number, obj in enumerate(objects):
        metadata = {"uid": f"uid-{obj['metadata']['name']}", "resourceVersion": str(number + 1)}
        found[obj["kind"]].append(obj | {"metadata": metadata | obj["metadata"]})
    return Snapshot(
        [Objects(KINDS[name], items) for name, items in found.items()],
        taken=NOON + timedelta(seconds=after),
        gaps=[
            *(Gap(KINDS[name], "not served") for name in missing),
            *(Gap(KINDS[name], "not allowed") for name in hidden),
        ],
    )


def ask(
    kind: str,
    name: str,
    *objects: Obj,
    after: float = 0,
    missing: Iterable[str] = (),
    hidden: Iterable[str] = (),
) -> Explanation:
    """Ask a question about a cluster."""
    question = QUESTIONS[kind]
    key = Key(NAMESPACE if question.namespaced else "", name)
    taken = snapshot(objects, after=after, missing=missing, hidden=hidden)
    found = question.answer(Reader(taken), key)
    assert found is not None, f"nobody knows {kind} {name}"
    return found


# -- nodes, devices, classes ----------------------------------------------------------------------


def node(
    name: str = "n1", *, taints: Iterable[Obj] = (), cordoned: bool = False, **labels: str
) -> Obj:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": list(taints), "unschedulable": cordoned},
        "status": {"allocatable": {"pods": "10", "cpu": "4", "memory": "8Gi"}},
    }


def device(name: str, *taints: Obj, capacity: Mapping[str, str] | None = None, **more: Any) -> Obj:
    attributes = {key: {"string": value} for key, value in more.pop("attributes", {}).items()}
    amounts = {key: {"value": value} for key, value in (capacity or {}).items()}
    return {
        "name": name,
        "taints": list(taints),
        "attributes": attributes,
        "capacity": amounts,
    } | more


def slice_(*devices: Obj, on: str = "n1", name: str = "", **more: Any) -> Obj:
    placed = {} if on else {"allNodes": True}
    spec = {"devices": list(devices), **placed, **more}
    return manifests.slice_(name or f"slice-{on}", on or "shared", **spec)


def class_(name: str = CLASS, *expressions: str, **spec: Any) -> Obj:
    return {
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": each}} for each in expressions]} | spec,
    }


def taint(effect: str = "NoSchedule", key: str = "example.com/fw", **more: Any) -> Obj:
    return {"key": key, "effect": effect, "timeAdded": at(0)} | more


def rule(
    name: str,
    effect: str = "NoSchedule",
    *,
    select: Obj | None = None,
    annotations: Mapping[str, str] | None = None,
    by: str = "alice",
    key: str = "example.com/fw",
    **more: Any,
) -> Obj:
    """Return a rule for all devices unless it says otherwise; `select=NOTHING` has no selector."""
    spec: Obj = {"taint": taint(effect, key, **more), "deviceSelector": select or {}}
    if select is NOTHING:
        del spec["deviceSelector"]
    return {
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": name,
            "creationTimestamp": at(0),
            "annotations": {"sully.dev/created-by": by, **(annotations or {})},
        },
        "spec": spec,
    }


NOTHING: Obj = {"none": True}


def patch(name: str, *, select: Obj | None = None, priority: int = 0, **devices: Any) -> Obj:
    wanted = {"priority": priority, **devices} | ({"filter": select} if select is not None else {})
    return {
        "kind": "ResourceSlicePatch",
        "metadata": {
            "name": name,
            "creationTimestamp": at(0),
            "annotations": {"sully.dev/created-by": "bob"},
        },
        "spec": {"devices": wanted},
    }


# -- pods, claims ---------------------------------------------------------------------------------


def request(name: str = "gpu", *, count: int = 1, cls: str = CLASS, **more: Any) -> Obj:
    return {
        "name": name,
        "exactly": {"deviceClassName": cls, "allocationMode": "ExactCount", "count": count} | more,
    }


def claim(
    name: str = "c",
    *requests: Obj,
    holds: Iterable[str] = (),
    pods: Iterable[str] = (),
    tolerations: Iterable[Obj] = (),
    selector: Obj | None = None,
    constraints: Iterable[Obj] = (),
    admin: bool = False,
    **metadata: Any,
) -> Obj:
    """Return a claim; `holds` are devices as `pool/device`, `pods` those it is reserved for."""
    results = [
        {
            "request": "gpu",
            "driver": DRIVER,
            "pool": each.partition("/")[0],
            "device": each.partition("/")[2],
            "tolerations": list(tolerations),
            "adminAccess": admin,
        }
        for each in holds
    ]
    status: Obj = {
        "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
    }
    if results:
        status["allocation"] = {"devices": {"results": results}}
        if selector is not None:
            status["allocation"]["nodeSelector"] = selector
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": NAMESPACE, "creationTimestamp": at(0)} | metadata,
        "spec": {
            "devices": {
                "requests": list(requests) or [request()],
                "constraints": list(constraints),
            }
        },
        "status": status,
    }


def on_node(name: str) -> Obj:
    """Return the selector of an allocation that can be used on one node."""
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def pod(
    name: str = "p",
    *claims: str,
    on: str = "",
    templates: Iterable[str] = (),
    status: Obj | None = None,
    owner: str = "",
    deleted: float | None = None,
    **spec: Any,
) -> Obj:
    """Return a pod that names claims, and claims to be made from templates."""
    metadata: Obj = {"name": name, "namespace": NAMESPACE, "creationTimestamp": at(0)}
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "u"}
        metadata["ownerReferences"] = [reference | {"controller": True}]
    if deleted is not None:
        metadata["deletionTimestamp"] = at(deleted)
    named = [{"name": each, "resourceClaimName": each} for each in claims]
    named += [{"name": each, "resourceClaimTemplateName": each} for each in templates]
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"resourceClaims": named, "containers": [{"name": "c"}], "nodeName": on} | spec,
        "status": {"phase": "Running" if on else "Pending"} | (status or {}),
    }


def budget(name: str, *, allowed: int) -> Obj:
    """Return a budget that is about all pods of the namespace."""
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": {}},
        "status": {"disruptionsAllowed": allowed},
    }


def evicted(
    name: str,
    rule_name: str = "fw",
    *,
    after: float = 0,
    owner: str = "",
    device: str = "n1/gpu-0",
) -> Obj:
    """Return the record of a pod that left a device, as `pool/device`, because of a rule."""
    who: Obj = {"namespace": NAMESPACE, "name": name, "uid": f"uid-{name}", "node": "n1"}
    if owner:
        who["owner"] = {"kind": "ReplicaSet", "name": owner}
    cause = {
        "kind": "DeviceTaintRule",
        "name": rule_name,
        "uid": f"uid-{rule_name}",
        "key": "example.com/fw",
        "effect": "NoExecute",
        "device": f"{DRIVER}/{device}",
    }
    return {
        "kind": "EvictionRecord",
        "metadata": {"name": f"uid-{name}", "namespace": NAMESPACE},
        "spec": {"pod": who, "causes": [cause], "evictedTime": at(after)},
    }


def taint_record(
    name: str, *, lifted: float | None = None, by: str = "", evictions: int = 0
) -> Obj:
    """Return the memory of a rule."""
    status: Obj = {"evicted": evictions, "deletedBy": by}
    if lifted is not None:
        status["deletedTime"] = at(lifted)
    return {
        "kind": "TaintRecord",
        "metadata": {"name": f"{name}-uid"},
        "spec": {
            "rule": {"name": name, "uid": f"uid-{name}"},
            "taint": taint("NoExecute"),
            "deviceSelector": {"driver": DRIVER},
            "createdBy": "alice",
            "description": "firmware",
            "addedTime": at(0),
        },
        "status": status,
    }
