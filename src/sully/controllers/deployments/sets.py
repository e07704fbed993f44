"""Creating, scaling and forgetting the ReplicaSets of a Deployment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sully.client.events import reference
from sully.client.objects import key_of
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Transport
from sully.controllers.workloads import DEPLOYMENTS, REPLICA_SETS, Recorder, controller_ref
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
    """The name of a new ReplicaSet belongs to someone else."""


class SetKeeper:
    """Makes and changes ReplicaSets in the name of Deployments."""

    def __init__(self, transport: Transport, recorder: Recorder) -> None:
        self._transport = transport
        self._recorder = recorder

    async def create(
        self, deployment: Deployment, old: Sequence[ReplicaSet], number: int
    ) -> tuple[ReplicaSet, bool]:
        """Create the ReplicaSet of the present template; say whether it was not there before."""
        body = set_of(deployment, old, number)
        try:
            made = await self._transport.create(REPLICA_SETS, body)
        except AlreadyExists:
            return await self._existing(deployment, key_of(body)), False
        if made.spec.replicas > 0:
            self._tell_scaled(deployment, made.name, 0, made.spec.replicas)
        return made, True

    async def _existing(self, deployment: Deployment, key: Key) -> ReplicaSet:
        """Return a ReplicaSet that our cache does not show yet, if it is really ours."""
        found = await self._transport.get(REPLICA_SETS, key)
        controller = found.metadata.controller()
        ours = controller is not None and controller.uid == deployment.metadata.uid
        if ours and same_template(found.spec.template, deployment.spec.template):
            return found
        raise CollisionError(str(key))

    async def refresh(
        self, deployment: Deployment, new: ReplicaSet, annotations: dict[str, str]
    ) -> ReplicaSet:
        """Hand on what the Deployment says besides its template."""
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
        """Give ReplicaSets their sizes; return those that changed, by name."""
        noted = size_annotations(deployment, limits(deployment).surge)
        changed: dict[str, ReplicaSet] = {}
        for each in sets:
            size = sizes.get(each.name)
            known = noted.items() <= each.metadata.annotations.items()
            if size is not None and (size != each.spec.replicas or not known):
                changed[each.name] = await self._resize(deployment, each, size, noted)
        return changed

    async def _resize(
        self, deployment: Deployment, each: ReplicaSet, size: int, noted: dict[str, str]
    ) -> ReplicaSet:
        change = {
            "metadata": {
                "resourceVersion": each.metadata.resource_version,
                "annotations": noted,
            },
            "spec": {"replicas": size},
        }
        made = await self._transport.patch(REPLICA_SETS, key_of(each), change)
        if size != each.spec.replicas:
            self._tell_scaled(deployment, each.name, each.spec.replicas, size)
        return made

    def _tell_scaled(self, deployment: Deployment, name: str, before: int, after: int) -> None:
        way = "up" if before < after else "down"
        text = f"Scaled {way} replica set {name} from {before} to {after}"
        about = reference(DEPLOYMENTS, deployment)
        self._recorder.event(about, "Normal", "ScalingReplicaSet", text)

    async def forget(self, deployment: Deployment, old: Sequence[ReplicaSet]) -> None:
        """Delete the old ReplicaSets beyond the limit."""
        for each in forgotten(deployment, old):
            options = DeleteOptions(
                uid=each.metadata.uid, resource_version=each.metadata.resource_version
            )
            try:
                await self._transport.delete(REPLICA_SETS, key_of(each), options)
            except NotFound:
                continue


def set_of(deployment: Deployment, old: Sequence[ReplicaSet], number: int) -> dict[str, Any]:
    """Return the ReplicaSet of the present template as it is to be created."""
    spec, metadata = deployment.spec, deployment.metadata
    short = template_hash(spec.template, deployment.status.collision_count)
    labels = template_labels(spec.template) | {HASH_LABEL: short}
    selector = spec.selector or {}
    matched = (selector.get("matchLabels") or {}) | {HASH_LABEL: short}
    template = spec.template | {
        "metadata": (spec.template.get("metadata") or {}) | {"labels": labels}
    }
    annotations = annotations_for(deployment, {}, number)
    return {
        "metadata": {
            "name": f"{metadata.name}-{short}",
            "namespace": metadata.namespace,
            "labels": labels,
            "annotations": annotations | size_annotations(deployment, limits(deployment).surge),
            "ownerReferences": [controller_ref(DEPLOYMENTS, metadata)],
        },
        "spec": {
            "replicas": new_size(deployment, old, 0),
            "minReadySeconds": spec.min_ready_seconds,
            "selector": selector | {"matchLabels": matched},
            "template": template,
        },
    }
