"""Creates and deletes the pods of a workload, with events, as client-go's PodControl."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from sully.client.events import EventRecorder, reference
from sully.client.objects import key_of
from sully.client.transport import Kind, Transport
from sully.controllers.workloads.expectations import Expectations
from sully.controllers.workloads.kinds import controller_ref, is_namespace_terminating
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.workloads import BURST, Workload
from sully.machinery.errors import ApiError, NotFound
from sully.views.snapshot.kinds import PODS

MAX_NAME_LENGTH = 253

OwnerT = TypeVar("OwnerT", bound=Workload)


class PodControl(Generic[OwnerT]):
    """Creates and deletes pods for owners of a kind."""

    def __init__(
        self,
        transport: Transport,
        recorder: EventRecorder,
        expectations: Expectations,
        owners: Kind[OwnerT],
    ) -> None:
        self._transport = transport
        self._recorder = recorder
        self._expectations = expectations
        self._owners = owners

    async def create(self, owner: OwnerT, bodies: Sequence[Mapping[str, Any]]) -> ApiError | None:
        """Create pods, `BURST` at most; return the first error.

        Slow start: batches double, so that an invalid template fails once, not hundreds of times.
        """
        pending, size = list(bodies[:BURST]), 1
        uid = owner.metadata.uid
        self._expectations.expect_creations(uid, len(pending))
        while pending:
            batch, pending = pending[:size], pending[size:]
            creations = (self._create_one(owner, body) for body in batch)
            results = await asyncio.gather(*creations, return_exceptions=True)
            failures = [result for result in results if result is not None]
            if failures:
                # Whatever the error is: these pods will not be observed.
                self._expectations.creation_observed(uid, len(failures) + len(pending))
                error = _first_error(failures)
                return None if error is not None and is_namespace_terminating(error) else error
            size *= 2
        return None

    async def _create_one(self, owner: OwnerT, body: Mapping[str, Any]) -> None:
        about = reference(self._owners, owner)
        try:
            pod = await self._transport.create(PODS, dict(body))
        except ApiError as error:
            if not is_namespace_terminating(error):
                text = f"Error creating: {error.message}"
                self._recorder.event(about, "Warning", "FailedCreate", text)
            raise
        text = self._success("Create", owner, pod.metadata.name)
        self._recorder.event(about, "Normal", "SuccessfulCreate", text)

    async def delete(self, owner: OwnerT, pods: Sequence[Pod]) -> ApiError | None:
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

    async def _delete_one(self, owner: OwnerT, pod: Pod) -> None:
        about = reference(self._owners, owner)
        try:
            await self._transport.delete(PODS, key_of(pod))
        except NotFound:
            self._expectations.deletion_observed(owner.metadata.uid, pod.metadata.uid)
            return
        except ApiError as error:
            text = f"Error deleting: {error.message}"
            self._recorder.event(about, "Warning", "FailedDelete", text)
            raise
        text = self._success("Delete", owner, pod.metadata.name)
        self._recorder.event(about, "Normal", "SuccessfulDelete", text)

    def _success(self, verb: str, owner: OwnerT, pod: str) -> str:
        # The controller of StatefulSets has texts of its own in Kubernetes.
        if self._owners.kind == "StatefulSet":
            return f"{verb} Pod {pod} in StatefulSet {owner.metadata.name} successful"
        return f"{verb}d pod: {pod}"


def _first_error(failures: Iterable[BaseException]) -> ApiError | None:
    """Return the first error of the server; raise any other failure, such as a lost connection."""
    errors: list[ApiError] = []
    for failure in failures:
        if not isinstance(failure, ApiError):
            raise failure
        errors.append(failure)
    return errors[0] if errors else None


def pod_of(
    kind: Kind[Any], owner: Workload, template: Mapping[str, Any], name: str = ""
) -> dict[str, Any]:
    """Return a pod from the template of an owner; without a name, the server generates one."""
    metadata = owner.metadata
    source = template.get("metadata") or {}
    copied = {
        key: dict(source[key]) if isinstance(source[key], Mapping) else list(source[key])
        for key in ("labels", "annotations", "finalizers")
        if source.get(key)
    }
    identity = {"name": name} if name else {"generateName": prefix(metadata.name)}
    return {
        "metadata": {
            **copied,
            **identity,
            "namespace": metadata.namespace,
            "ownerReferences": [controller_ref(kind, metadata)],
        },
        "spec": dict(template.get("spec") or {}),
    }


def prefix(name: str) -> str:
    """Return what the generated names of pods begin with."""
    # The longest name there can be leaves no room for the dash.
    return f"{name}-" if len(name) < MAX_NAME_LENGTH else name
