"""Creating and deleting the pods of a ReplicaSet, and telling people about it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from sully.client.events import reference
from sully.client.objects import key_of
from sully.client.transport import Transport
from sully.controllers.replicasets.expectations import Expectations
from sully.controllers.workloads import (
    PODS,
    REPLICA_SETS,
    Recorder,
    controller_ref,
    is_terminating,
)
from sully.domain.workloads import Pod, ReplicaSet
from sully.machinery.errors import ApiError, NotFound

BURST = 500
"""How many pods one look creates or deletes at most."""
LONGEST_NAME = 253


class PodKeeper:
    """Makes and removes pods in the name of ReplicaSets."""

    def __init__(
        self, transport: Transport, recorder: Recorder, expectations: Expectations
    ) -> None:
        self._transport = transport
        self._recorder = recorder
        self._expectations = expectations

    async def create(self, owner: ReplicaSet, count: int) -> ApiError | None:
        """Create pods; return the failure that ended that, if one did.

        In batches that double, so that a template that cannot be created fails once and not
        hundreds of times.
        """
        left, size = min(count, BURST), 1
        uid = owner.metadata.uid
        self._expectations.creations(uid, left)
        while left:
            batch = min(size, left)
            results = await asyncio.gather(*(self._create_one(owner) for _ in range(batch)))
            failures = [each for each in results if each is not None]
            left -= batch
            if failures:
                self._expectations.created(uid, len(failures) + left)
                return None if is_terminating(failures[0]) else failures[0]
            size *= 2
        return None

    async def _create_one(self, owner: ReplicaSet) -> ApiError | None:
        about = reference(REPLICA_SETS, owner)
        try:
            pod = await self._transport.create(PODS, pod_of(owner))
        except ApiError as error:
            if not is_terminating(error):
                text = f"Error creating: {error.message}"
                self._recorder.event(about, "Warning", "FailedCreate", text)
            return error
        text = f"Created pod: {pod.metadata.name}"
        self._recorder.event(about, "Normal", "SuccessfulCreate", text)
        return None

    async def delete(self, owner: ReplicaSet, pods: Sequence[Pod]) -> ApiError | None:
        """Delete pods; return a failure, if there was one."""
        chosen = pods[:BURST]
        self._expectations.deletions(owner.metadata.uid, {pod.metadata.uid for pod in chosen})
        results = await asyncio.gather(*(self._delete_one(owner, pod) for pod in chosen))
        return next((each for each in results if each is not None), None)

    async def _delete_one(self, owner: ReplicaSet, pod: Pod) -> ApiError | None:
        about = reference(REPLICA_SETS, owner)
        try:
            await self._transport.delete(PODS, key_of(pod))
        except ApiError as error:
            self._expectations.deleted(owner.metadata.uid, pod.metadata.uid)
            if isinstance(error, NotFound):
                return None
            text = f"Error deleting: {error.message}"
            self._recorder.event(about, "Warning", "FailedDelete", text)
            return error
        text = f"Deleted pod: {pod.metadata.name}"
        self._recorder.event(about, "Normal", "SuccessfulDelete", text)
        return None


def pod_of(owner: ReplicaSet) -> dict[str, Any]:
    """Return a pod made from the template of a ReplicaSet."""
    template, metadata = owner.spec.template, owner.metadata
    given = template.get("metadata") or {}
    copied = {
        name: given[name] for name in ("labels", "annotations", "finalizers") if given.get(name)
    }
    return {
        "metadata": {
            **copied,
            "generateName": _prefix(metadata.name),
            "namespace": metadata.namespace,
            "ownerReferences": [controller_ref(REPLICA_SETS, metadata)],
        },
        "spec": template.get("spec") or {},
    }


def _prefix(name: str) -> str:
    # The longest name there can be leaves no room for the dash.
    return f"{name}-" if len(name) < LONGEST_NAME else name
