"""Creates, scales and deletes the ReplicaSets of a Deployment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sully.client.events import EventRecorder, reference
from sully.client.objects import key_of
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Transport
from sully.controllers.workloads.kinds import DEPLOYMENTS, REPLICA_SETS, controller_ref
from sully.domain.workloads.revisions import (
    HASH_LABEL,
    annotations_for,
    forgotten,
    same_template,
    size_annotations,
    template_hash,
)
from sully.domain.workloads.rollout import Sizes, limits, new_size
from sully.domain.workloads.workloads import Deployment, ReplicaSet, template_labels
from sully.machinery.errors import AlreadyExists, NotFound


class CollisionError(Exception):
    """The name of a new ReplicaSet is taken."""


class ReplicaSetControl:
    """Writes ReplicaSets for Deployments."""

    def __init__(self, transport: Transport, recorder: EventRecorder) -> None:
        self._transport = transport
        self._recorder = recorder

    async def create(
        self, deployment: Deployment, old: Sequence[ReplicaSet], number: int
    ) -> tuple[ReplicaSet, bool]:
        """Create the ReplicaSet of the current template; return whether it is new."""
        body = new_replica_set(deployment, old, number)
        try:
            created = await self._transport.create(REPLICA_SETS, body)
        except AlreadyExists:
            return await self._existing(deployment, key_of(body)), False
        if created.spec.replicas > 0:
            self._record_scaling(deployment, created.name, 0, created.spec.replicas)
        return created, True

    async def _existing(self, deployment: Deployment, key: Key) -> ReplicaSet:
        """Return a ReplicaSet that the cache does not show yet, if it is ours."""
        existing = await self._transport.get(REPLICA_SETS, key)
        ours = existing.metadata.is_controlled_by(deployment.metadata.uid)
        if ours and same_template(existing.spec.template, deployment.spec.template):
            return existing
        raise CollisionError(str(key))

    async def refresh(
        self, deployment: Deployment, new: ReplicaSet, annotations: dict[str, str]
    ) -> ReplicaSet:
        """Copy annotations and `minReadySeconds` of the Deployment."""
        change = {
            "metadata": {
                "resourceVersion": new.metadata.resource_version,
                "annotations": annotations,
            },
            "spec": {"minReadySeconds": deployment.spec.min_ready_seconds},
        }
        return await self._transport.patch(REPLICA_SETS, key_of(new), change)

    async def scale(
        self, deployment: Deployment, sets: Iterable[ReplicaSet], sizes: Sizes
    ) -> dict[str, ReplicaSet]:
        """Scale ReplicaSets; return those that changed, by name."""
        annotations = size_annotations(deployment, limits(deployment).surge)
        changed: dict[str, ReplicaSet] = {}
        for rs in sets:
            size = sizes.get(rs.name)
            annotated = annotations.items() <= rs.metadata.annotations.items()
            if size is not None and (size != rs.spec.replicas or not annotated):
                changed[rs.name] = await self._resize(deployment, rs, size, annotations)
        return changed

    async def _resize(
        self, deployment: Deployment, rs: ReplicaSet, size: int, annotations: dict[str, str]
    ) -> ReplicaSet:
        change = {
            "metadata": {
                "resourceVersion": rs.metadata.resource_version,
                "annotations": annotations,
            },
            "spec": {"replicas": size},
        }
        scaled = await self._transport.patch(REPLICA_SETS, key_of(rs), change)
        if size != rs.spec.replicas:
            self._record_scaling(deployment, rs.name, rs.spec.replicas, size)
        return scaled

    def _record_scaling(self, deployment: Deployment, name: str, before: int, after: int) -> None:
        direction = "up" if before < after else "down"
        text = f"Scaled {direction} replica set {name} from {before} to {after}"
        about = reference(DEPLOYMENTS, deployment)
        self._recorder.event(about, "Normal", "ScalingReplicaSet", text)

    async def clean_up(self, deployment: Deployment, old: Sequence[ReplicaSet]) -> None:
        """Delete old ReplicaSets beyond `revisionHistoryLimit`."""
        for rs in forgotten(deployment, old):
            options = DeleteOptions(
                uid=rs.metadata.uid, resource_version=rs.metadata.resource_version
            )
            try:
                await self._transport.delete(REPLICA_SETS, key_of(rs), options)
            except NotFound:
                continue


def new_replica_set(
    deployment: Deployment, old: Sequence[ReplicaSet], number: int
) -> dict[str, Any]:
    """Return the ReplicaSet to create for the current template."""
    spec, metadata = deployment.spec, deployment.metadata
    hash_ = template_hash(spec.template, deployment.status.collision_count)
    labels = template_labels(spec.template) | {HASH_LABEL: hash_}
    selector = spec.selector or {}
    match_labels = (selector.get("matchLabels") or {}) | {HASH_LABEL: hash_}
    template = spec.template | {
        "metadata": (spec.template.get("metadata") or {}) | {"labels": labels}
    }
    annotations = annotations_for(deployment, {}, number)
    return {
        "metadata": {
            "name": f"{metadata.name}-{hash_}",
            "namespace": metadata.namespace,
            "labels": labels,
            "annotations": annotations | size_annotations(deployment, limits(deployment).surge),
            "ownerReferences": [controller_ref(DEPLOYMENTS, metadata)],
        },
        "spec": {
            "replicas": new_size(deployment, old, 0),
            "minReadySeconds": spec.min_ready_seconds,
            "selector": selector | {"matchLabels": match_labels},
            "template": template,
        },
    }
