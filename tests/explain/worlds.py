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
KINDS: dict[str, Kind[Any]] = {kind.kind: kind for kind in EVERYTHING}
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
    results: dict[str, list[Obj]] = {name: [] for name in KINDS if name not in away}
    for number, obj in enumerate(objects):
        metadata = {"uid": f"uid-{obj['metadata']['name']}", "resourceVersion": str(number + 1)}
        results[obj["kind"]].append(obj | {"metadata": metadata | obj["metadata"]})
    return Snapshot(
        [Objects(KINDS[name], items) for name, items in results.items()],
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
    answer = question.answer(Reader(taken), key)
    assert answer is not None, f"nobody knows {kind} {name}"
    return answer


# -- nodes, devices, classes ----------------------------------------------------------------------


def node(
    name: str = "n1", *, taints: Iterable[Obj] = (), cordoned: bool = False, **labels: str
) -> Obj:
    spec = {"taints": list(taints), "unschedulable": cordoned}
    return manifests.node(name, spec=spec, labels=labels)


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
    return manifests.device_class(name, *expressions, **spec)


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
    """Return a rule for all devices by default; `select=NOTHING` has no selector."""
    made = manifests.rule(
        name,
        selector=select or {},
        taint=taint(effect, key, **more),
        creationTimestamp=at(0),
        annotations={"sully.dev/created-by": by, **(annotations or {})},
    )
    if select is NOTHING:
        del made["spec"]["deviceSelector"]
    return made


NOTHING: Obj = {"none": True}


def patch(name: str, *, select: Obj | None = None, priority: int = 0, **devices: Any) -> Obj:
    content = {"priority": priority, **devices} | ({} if select is None else {"filter": select})
    annotations = {"sully.dev/created-by": "bob"}
    return manifests.patch(name, content, creationTimestamp=at(0), annotations=annotations)


# -- pods, claims ---------------------------------------------------------------------------------


def request(name: str = "gpu", *, cls: str = CLASS, **more: Any) -> Obj:
    exactly = {"allocationMode": "ExactCount", "count": 1, **more}
    return manifests.request(cls, name, **exactly)


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
        manifests.result(
            device, pool, request="gpu", tolerations=list(tolerations), adminAccess=admin
        )
        for pool, _, device in (held.partition("/") for held in holds)
    ]
    status: Obj = {
        "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
    }
    if results:
        status["allocation"] = {"devices": {"results": results}}
        if selector is not None:
            status["allocation"]["nodeSelector"] = selector
    devices = {"requests": list(requests) or [request()], "constraints": list(constraints)}
    return namespaced("ResourceClaim", name, {"devices": devices}, status, **metadata)


def namespaced(kind: str, name: str, spec: Obj, status: Obj, **metadata: Any) -> Obj:
    metadata = {"namespace": NAMESPACE, "creationTimestamp": at(0)} | metadata
    return manifests.body(kind, name, spec, status, **metadata)


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
    """Return a pod that references claims, and templates of claims."""
    metadata: Obj = {}
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "u"}
        metadata["ownerReferences"] = [reference | {"controller": True}]
    if deleted is not None:
        metadata["deletionTimestamp"] = at(deleted)
    references = manifests.claim_references(*claims, templates=templates)
    spec = {"resourceClaims": references, "containers": [{"name": "c"}], "nodeName": on} | spec
    status = {"phase": "Running" if on else "Pending"} | (status or {})
    return namespaced("Pod", name, spec, status, **metadata)


def budget(name: str, *, allowed: int) -> Obj:
    """Return a budget of all pods of the namespace."""
    status = {"disruptionsAllowed": allowed}
    return namespaced("PodDisruptionBudget", name, {"selector": {}}, status)


def evicted(
    name: str,
    rule_name: str = "fw",
    *,
    after: float = 0,
    owner: str = "",
    device: str = "n1/gpu-0",
) -> Obj:
    """Return the record of a pod that was evicted from a device, `pool/device`, by a rule."""
    pod: Obj = {"namespace": NAMESPACE, "name": name, "uid": f"uid-{name}", "node": "n1"}
    if owner:
        pod["owner"] = {"kind": "ReplicaSet", "name": owner}
    cause = {
        "kind": "DeviceTaintRule",
        "name": rule_name,
        "uid": f"uid-{rule_name}",
        "key": "example.com/fw",
        "effect": "NoExecute",
        "device": f"{DRIVER}/{device}",
    }
    spec = {"pod": pod, "causes": [cause], "evictedTime": at(after)}
    return manifests.body("EvictionRecord", f"uid-{name}", spec, namespace=NAMESPACE)


def taint_record(
    name: str, *, deleted: float | None = None, by: str = "", evictions: int = 0
) -> Obj:
    """Return the record of a rule."""
    status: Obj = {"evicted": evictions, "deletedBy": by}
    if deleted is not None:
        status["deletedTime"] = at(deleted)
    spec = {
        "rule": {"name": name, "uid": f"uid-{name}"},
        "taint": taint("NoExecute"),
        "deviceSelector": {"driver": DRIVER},
        "createdBy": "alice",
        "description": "firmware",
        "addedTime": at(0),
    }
    return manifests.body("TaintRecord", f"{name}-uid", spec, status)
