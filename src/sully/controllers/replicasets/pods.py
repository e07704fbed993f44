"""Creating and deleting the pods of a ReplicaSet, and telling people about it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
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
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.workloads import ReplicaSet
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
            asked = (self._create_one(owner) for _ in range(batch))
            results = await asyncio.gather(*asked, return_exceptions=True)
            failures = [each for each in results if each is not None]
            left -= batch
            if failures:
                # Whatever it was: nobody waits for what was not created.
                self._expectations.created(uid, len(failures) + left)
                refusal = _refusal(failures)
                return None if refusal is not None and is_terminating(refusal) else refusal
            size *= 2
        return None

    async def _create_one(self, owner: ReplicaSet) -> None:
        about = reference(REPLICA_SETS, owner)
        try:
            pod = await self._transport.create(PODS, pod_of(owner))
        except ApiError as error:
            if not is_terminating(error):
                text = f"Error creating: {error.message}"
                self._recorder.event(about, "Warning", "FailedCreate", text)
            raise
        text = f"Created pod: {pod.metadata.name}"
        self._recorder.event(about, "Normal", "SuccessfulCreate", text)

    async def delete(self, owner: ReplicaSet, pods: Sequence[Pod]) -> ApiError | None:
        """Delete pods; return a failure, if there was one."""
        chosen = pods[:BURST]
        uid = owner.metadata.uid
        self._expectations.deletions(uid, {pod.metadata.uid for pod in chosen})
        asked = (self._delete_one(owner, pod) for pod in chosen)
        results = await asyncio.gather(*asked, return_exceptions=True)
        failed = {
            pod.metadata.uid: each
            for pod, each in zip(chosen, results, strict=True)
            if each is not None
        }
        for each in failed:
            self._expectations.deleted(uid, each)
        return _refusal(failed.values())

    async def _delete_one(self, owner: ReplicaSet, pod: Pod) -> None:
        about = reference(REPLICA_SETS, owner)
        try:
            await self._transport.delete(PODS, key_of(pod))
        except NotFound:
            self._expectations.deleted(owner.metadata.uid, pod.metadata.uid)
            return
        except ApiError as error:
            text = f"Error deleting: {error.message}"
            self._recorder.event(about, "Warning", "FailedDelete", text)
            raise
        text = f"Deleted pod: {pod.metadata.name}"
        self._recorder.event(about, "Normal", "SuccessfulDelete", text)


def _refusal(failures: Iterable[BaseException]) -> ApiError | None:
    """Return what the server said first; raise what is no answer of it, such as its absence."""
    refusals: list[ApiError] = []
    for each in failures:
        if not isinstance(each, ApiError):
            raise each
        refusals.append(each)
    return refusals[0] if refusals else None


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
