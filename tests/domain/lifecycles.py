"""Builders for the decisions about pods and owners; they hide what a case is not about."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from manifests import pod_template
from sully.domain.scheduling.objects import (
    Pod,
)
from sully.domain.workloads.ownership import Owned, OwnedMetadata
from sully.domain.workloads.workloads import (
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
    RolloutStrategy,
)
from sully.machinery.formats.timestamps import format_micro_time
from sully.machinery.meta import OwnerReference
from sully.testing.builders import meta, pod_as
from sully.testing.clock import NOON


def ago(**time: float) -> datetime:
    return NOON - timedelta(**time)


def ref(uid: str, *, block: bool = False, controller: bool = False) -> OwnerReference:
    return OwnerReference(
        api_version="v1",
        kind="ConfigMap",
        name=uid,
        uid=uid,
        block_owner_deletion=block,
        controller=controller,
    )


def owned(
    *owners: OwnerReference, finalizers: tuple[str, ...] = (), terminating: bool = False
) -> Owned:
    metadata = OwnedMetadata(
        name="it",
        uid="it",
        owner_references=owners,
        finalizers=finalizers,
        deletion_timestamp=NOON if terminating else None,
    )
    return Owned(metadata=metadata)


def pod(
    name: str = "p",
    *,
    node: str = "n",
    phase: str = "Running",
    ready: datetime | None = NOON,
    created: datetime = NOON,
    restarts: int = 0,
    terminating: bool = False,
    owner: OwnerReference | None = None,
    annotations: dict[str, str] | None = None,
) -> Pod:
    metadata: dict[str, Any] = {
        "creationTimestamp": format_micro_time(created),
        "annotations": annotations or {},
        "ownerReferences": [msgspec.to_builtins(owner)] if owner else [],
    }
    if terminating:
        metadata["deletionTimestamp"] = format_micro_time(NOON)
    conditions: list[dict[str, Any]] = []
    if ready is not None:
        condition = {"type": "Ready", "status": "True"}
        conditions.append(condition | {"lastTransitionTime": format_micro_time(ready)})
    status = {
        "phase": phase,
        "conditions": conditions,
        "containerStatuses": [{"restartCount": restarts}],
    }
    return pod_as(Pod, name, namespace="a", node=node, uid=name, metadata=metadata, status=status)


def replica_set(
    name: str,
    size: int,
    *,
    available: int | None = None,
    born: int = 0,
    image: str = "",
    **annotations: str,
) -> ReplicaSet:
    """Return a ReplicaSet with so many pods; `born` orders them by age."""
    there = size if available is None else available
    return ReplicaSet(
        metadata=meta(
            name,
            namespace="a",
            uid=name,
            creation_timestamp=NOON + timedelta(seconds=born),
            annotations={
                f"deployment.kubernetes.io/{key.replace('_', '-')}": value
                for key, value in annotations.items()
            },
        ),
        spec=ReplicaSetSpec(replicas=size, template=template(image or name)),
        status=ReplicaSetStatus(replicas=size, available_replicas=there, ready_replicas=there),
    )


def template(image: str, **labels: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": image}]}
    return pod_template({"app": "web"} | labels, spec)


def deployment(
    replicas: int,
    *,
    surge: int | str = 0,
    unavailable: int | str = 0,
    recreate: bool = False,
    status: DeploymentStatus | None = None,
    **spec: Any,
) -> Deployment:
    strategy = RolloutStrategy(
        type="RollingUpdate",
        rolling_update=RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable),
    )
    image = spec.pop("image", "new")
    annotations = spec.pop("annotations", {})
    return Deployment(
        metadata=meta("web", namespace="a", uid="web", generation=1, annotations=annotations),
        spec=DeploymentSpec(
            replicas=replicas,
            strategy=RolloutStrategy(type="Recreate") if recreate else strategy,
            template=template(image),
            **spec,
        ),
        status=status or DeploymentStatus(),
    )
