"""Creates the claims of pods from templates, and writes their names into the status of pods.

Reads pods, claims and templates; writes claims, the status of pods, and events. For pods that were
bound without the scheduler it also reserves claims that are allocated. releasing.py handles pods
that no longer need their claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sully.api.resource.types import ResourceClaim
from sully.client.events import EventRecorder, reference
from sully.client.objects import key_of
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.claims.creator import ClaimCreationError, ClaimCreator
from sully.controllers.claims.lookups import (
    WRITE_OPTIONS,
    Lookups,
    Template,
    claims_named,
    reservations,
)
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.workloads.kinds import is_namespace_terminating
from sully.domain.claims.lifecycle import claim_statuses, may_reserve
from sully.domain.claims.pods import claim_references
from sully.domain.claims.reservations import is_for_pod
from sully.domain.scheduling.objects import Pod
from sully.runtime.backoff import Backoff
from sully.views.kinds import CLAIMS
from sully.views.snapshot.kinds import PODS

NAME = "resource-claim-controller"
COMPONENT = "resource_claim"
"""The source component of events, as in Kubernetes."""
WORKERS = 32
"""Kubernetes has 10; but concurrent writes share one flush of the store."""
BACKOFF = Backoff(base=0.005, cap=1000.0, jitter=0.0)
STATUS_OPTIONS = WriteOptions(field_manager="ResourceClaimController", force=True)


class PodClaimsController:
    """Creates and reserves the claims of pods."""

    name = NAME

    def __init__(
        self,
        *,
        lookups: Lookups,
        creator: ClaimCreator,
        transport: Transport,
        recorder: EventRecorder,
    ) -> None:
        self._lookups = lookups
        self._creator = creator
        self._transport = transport
        self._recorder = recorder

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for pods, and for the claims and templates they refer to."""
        yield Watch(self._lookups.pods.newest, self._incomplete_pod)
        yield Watch(self._lookups.claims.newest, self._incomplete_pods)
        yield Watch(self._lookups.templates, self._pods_with_template)

    async def reconcile(self, key: Key) -> Result:
        """Create and reserve the missing claims of a pod that may run."""
        pod = self._lookups.pods.get(key)
        if pod is None or not pod.is_active:
            return DONE
        try:
            await self._create_claims(pod)
        except ClaimCreationError as error:
            if error.cause is not None:
                raise error.cause from error
            # The template does not exist yet; its creation enqueues the pod.
            return DONE
        if pod.spec.node_name:
            await self._reserve_claims(pod)
        return DONE

    async def _create_claims(self, pod: Pod) -> None:
        statuses = pod.status.resource_claim_statuses
        recorded = {status.name: status.resource_claim_name for status in statuses}
        created: dict[str, str] = {}
        for pod_claim in pod.spec.resource_claims:
            name = pod_claim.name
            # An entry without a claim name means that none is needed.
            needed = name not in recorded or bool(recorded[name])
            if pod_claim.resource_claim_template_name is None or not needed:
                continue
            try:
                created[name] = await self._creator.ensure(pod, pod_claim, recorded.get(name))
            except ClaimCreationError as error:
                self._record_failure(pod, name, error)
                raise
        if any(recorded.get(name) != claim for name, claim in created.items()):
            await self._update_status(pod, claim_statuses(recorded, created))

    async def _update_status(self, pod: Pod, statuses: list[dict[str, Any]]) -> None:
        """Write the names of its claims into the status of a pod."""
        # The uid, because the pod may have been recreated.
        metadata = {
            "name": pod.metadata.name,
            "namespace": pod.metadata.namespace,
            "uid": pod.metadata.uid,
        }
        body = {"metadata": metadata, "status": {"resourceClaimStatuses": statuses}}
        await self._transport.apply(PODS, body, STATUS_OPTIONS, "status")

    def _record_failure(self, pod: Pod, claim: str, error: ClaimCreationError) -> None:
        if error.cause is None or not is_namespace_terminating(error.cause):
            text = f"PodResourceClaim {claim}: {error}"
            about = reference(PODS, pod)
            self._recorder.event(about, "Warning", "FailedResourceClaimCreation", text)

    async def _reserve_claims(self, pod: Pod) -> None:
        for claim in self._unreserved(pod):
            await self._reserve(claim, pod)

    def _unreserved(self, pod: Pod) -> Iterator[ResourceClaim]:
        """Yield the claims of a bound pod that are not reserved for it yet."""
        uid = pod.metadata.uid
        for key, generated in claims_named(pod).items():
            claim = self._lookups.claims.get(key)
            if claim is None or (generated and not is_for_pod(claim, uid=uid, group=pod.group)):
                continue
            if may_reserve(claim, uid=uid, group=pod.group):
                yield claim

    async def _reserve(self, claim: ResourceClaim, pod: Pod) -> None:
        """Reserve a claim for a pod, unless it changed since it was cached."""
        consumer = {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
        patch = {
            "metadata": {"resourceVersion": claim.metadata.resource_version},
            "status": {"reservedFor": [*reservations(claim.status.reserved_for), consumer]},
        }
        await self._transport.patch(
            CLAIMS, key_of(claim), patch, subresource="status", options=WRITE_OPTIONS
        )

    # -- event handlers ---------------------------------------------------------------------------

    def _incomplete_pod(self, pod: Pod) -> Iterable[Key]:
        """Return a pod's key, unless it has all its claims: most changes do not affect them."""
        key = key_of(pod)
        latest = self._lookups.pods.get(key)
        return (key,) if latest is not None and self._is_incomplete(latest) else ()

    def _is_incomplete(self, pod: Pod) -> bool:
        if not pod.spec.resource_claims and pod.status.extended_resource_claim_status is None:
            return False
        if not pod.is_active:
            return False
        return self._lacks_claims(pod) or bool(pod.spec.node_name and any(self._unreserved(pod)))

    def _lacks_claims(self, pod: Pod) -> bool:
        """Report whether a claim is missing in the cache or in the status of its pod."""
        for ref in claim_references(pod, extended=False):
            if ref.missing:
                return True
            if not ref.generated or not ref.name:
                continue
            claim = self._lookups.claims.get(Key(pod.metadata.namespace, ref.name))
            if claim is None or not is_for_pod(claim, uid=pod.metadata.uid):
                return True
        return False

    def _incomplete_pods(self, claim: ResourceClaim) -> Iterable[Key]:
        pods = self._lookups.pods_with_claim(key_of(claim))
        return [key_of(pod) for pod in pods if self._is_incomplete(pod)]

    def _pods_with_template(self, template: Template) -> Iterable[Key]:
        return map(key_of, self._lookups.pods_with_template(key_of(template)))
