"""Creates and deletes the pods of a ReplicaSet, with events, as client-go's PodControl."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from sully.client.events import EventRecorder, reference
from sully.client.objects import key_of
from sully.client.transport import Transport
from sully.controllers.replicasets.expectations import Expectations
from sully.controllers.workloads import (
    PODS,
    REPLICA_SETS,
    controller_ref,
    is_namespace_terminating,
)
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.workloads import ReplicaSet
from sully.machinery.errors import ApiError, NotFound

BURST = 500
"""How many pods one reconcile creates or deletes at most."""
MAX_NAME_LENGTH = 253


class PodControl:
    """Creates and deletes pods for ReplicaSets."""

    def __init__(
        self, transport: Transport, recorder: EventRecorder, expectations: Expectations
    ) -> None:
        self._transport = transport
        self._recorder = recorder
        self._expectations = expectations

    async def create(self, owner: ReplicaSet, count: int) -> ApiError | None:
        """Create pods; return the first error.

        Slow start: batches double, so that an invalid template fails once, not hundreds of times.
        """
        remaining, size = min(count, BURST), 1
        uid = owner.metadata.uid
        self._expectations.expect_creations(uid, remaining)
        while remaining:
            batch = min(size, remaining)
            creations = (self._create_one(owner) for _ in range(batch))
            results = await asyncio.gather(*creations, return_exceptions=True)
            failures = [result for result in results if result is not None]
            remaining -= batch
            if failures:
                # Whatever the error is: these pods will not be observed.
                self._expectations.creation_observed(uid, len(failures) + remaining)
                error = _first_error(failures)
                return None if error is not None and is_namespace_terminating(error) else error
            size *= 2
        return None

    async def _create_one(self, owner: ReplicaSet) -> None:
        about = reference(REPLICA_SETS, owner)
        try:
            pod = await self._transport.create(PODS, pod_of(owner))
        except ApiError as error:
            if not is_namespace_terminating(error):
                text = f"Error creating: {error.message}"
                self._recorder.event(about, "Warning", "FailedCreate", text)
            raise
        text = f"Created pod: {pod.metadata.name}"
        self._recorder.event(about, "Normal", "SuccessfulCreate", text)

    async def delete(self, owner: ReplicaSet, pods: Sequence[Pod]) -> ApiError | None:
        """Delete pods; return the first error."""
        batch = pods[:BURST]
        uid = owner.metadata.uid
        self._expectations.expect_deletions(uid, {pod.metadata.uid for pod in batch})
        deletions = (self._delete_one(owner, pod) for pod in batch)
        results = await asyncio.gather(*deletions, return_exceptions=True)
        failures = {
            pod.metadata.uid: result
            for pod, result in zip(batch, results, strict=True)
            if result is not None
        }
        for pod_uid in failures:
            self._expectations.deletion_observed(uid, pod_uid)
        return _first_error(failures.values())

    async def _delete_one(self, owner: ReplicaSet, pod: Pod) -> None:
        about = reference(REPLICA_SETS, owner)
        try:
            await self._transport.delete(PODS, key_of(pod))
        except NotFound:
            self._expectations.deletion_observed(owner.metadata.uid, pod.metadata.uid)
            return
        except ApiError as error:
            text = f"Error deleting: {error.message}"
            self._recorder.event(about, "Warning", "FailedDelete", text)
            raise
        text = f"Deleted pod: {pod.metadata.name}"
        self._recorder.event(about, "Normal", "SuccessfulDelete", text)


def _first_error(failures: Iterable[BaseException]) -> ApiError | None:
    """Return the first error of the server; raise any other failure, such as a lost connection."""
    errors: list[ApiError] = []
    for failure in failures:
        if not isinstance(failure, ApiError):
            raise failure
        errors.append(failure)
    return errors[0] if errors else None


def pod_of(owner: ReplicaSet) -> dict[str, Any]:
    """Return a pod from the template of a ReplicaSet."""
    template, metadata = owner.spec.template, owner.metadata
    source = template.get("metadata") or {}
    copied = {
        name: source[name] for name in ("labels", "annotations", "finalizers") if source.get(name)
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
    return f"{name}-" if len(name) < MAX_NAME_LENGTH else name
