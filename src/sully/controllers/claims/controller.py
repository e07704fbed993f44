"""Gives pods their claims: makes those that come from templates, and tells the pod their names.

Reads pods, claims and templates; writes claims, the status of pods, and events. For pods that got
their node past the scheduler it also reserves claims that are allocated. What happens when a pod no
longer needs its claims is releasing.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sully.api.resource.types import ResourceClaim
from sully.client.events import reference
from sully.client.objects import key_of
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.claims.lookups import (
    WRITTEN,
    Lookups,
    Template,
    claims_named,
    reservations,
)
from sully.controllers.claims.maker import ClaimMaker, NotMadeError
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.workloads import PODS, Recorder, is_terminating
from sully.domain.claims.lifecycle import claim_statuses, may_reserve
from sully.domain.claims.pods import claim_references
from sully.domain.claims.reservations import made_for
from sully.domain.scheduling.objects import Pod
from sully.runtime.backoff import Backoff
from sully.views.kinds import CLAIMS

NAME = "resource-claim-controller"
COMPONENT = "resource_claim"
"""The name under which Kubernetes tells people."""
WORKERS = 32
"""Kubernetes has 10; but writes that are under way together are made durable together."""
BACKOFF = Backoff(base=0.005, cap=1000.0, jitter=0.0)
RECORDED = WriteOptions(field_manager="ResourceClaimController", force=True)


class PodClaimsController:
    """Makes and reserves claims, pod by pod."""

    name = NAME

    def __init__(
        self, *, lookups: Lookups, maker: ClaimMaker, transport: Transport, recorder: Recorder
    ) -> None:
        self._lookups = lookups
        self._maker = maker
        self._transport = transport
        self._recorder = recorder

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for pods, and for the claims and templates they want."""
        yield Watch(self._lookups.pods.newest, self._if_wanting)
        yield Watch(self._lookups.claims.newest, self._pods_naming)
        yield Watch(self._lookups.templates, self._pods_wanting)

    async def reconcile(self, key: Key) -> Result:
        """See that a pod which may run has its claims."""
        pod = self._lookups.pods.get(key)
        if pod is None or pod.is_terminating or pod.finished:
            return DONE
        try:
            await self._make_claims(pod)
        except NotMadeError as error:
            if error.cause is not None:
                raise error.cause from error
            # The template is missing: when it comes we are woken.
            return DONE
        if pod.spec.node_name:
            await self._reserve_claims(pod)
        return DONE

    async def _make_claims(self, pod: Pod) -> None:
        statuses = pod.status.resource_claim_statuses
        recorded = {each.name: each.resource_claim_name for each in statuses}
        made: dict[str, str] = {}
        for each in pod.spec.resource_claims:
            # An entry without a name says that none is needed.
            needed = each.name not in recorded or bool(recorded[each.name])
            if each.resource_claim_template_name is None or not needed:
                continue
            try:
                made[each.name] = await self._maker.ensure(pod, each, recorded.get(each.name))
            except NotMadeError as error:
                self._complain(pod, each.name, error)
                raise
        if any(recorded.get(name) != claim for name, claim in made.items()):
            await self._tell(pod, claim_statuses(recorded, made))

    async def _tell(self, pod: Pod, statuses: list[dict[str, Any]]) -> None:
        """Write the names of its claims to a pod."""
        metadata = pod.metadata
        # The uid, because another pod may have the name by now.
        who = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
        body = {"metadata": who, "status": {"resourceClaimStatuses": statuses}}
        await self._transport.apply(PODS, body, RECORDED, "status")

    def _complain(self, pod: Pod, claim: str, error: NotMadeError) -> None:
        if error.cause is None or not is_terminating(error.cause):
            text = f"PodResourceClaim {claim}: {error}"
            about = reference(PODS, pod)
            self._recorder.event(about, "Warning", "FailedResourceClaimCreation", text)

    async def _reserve_claims(self, pod: Pod) -> None:
        for claim in self._unreserved(pod):
            await self._reserve(claim, pod)

    def _unreserved(self, pod: Pod) -> Iterator[ResourceClaim]:
        """Yield the claims of a pod with a node that are still to be reserved for it."""
        uid = pod.metadata.uid
        for key, made in claims_named(pod).items():
            claim = self._lookups.claims.get(key)
            if claim is None or (made and not made_for(claim, uid=uid, group=pod.group)):
                continue
            if may_reserve(claim, uid=uid, group=pod.group):
                yield claim

    async def _reserve(self, claim: ResourceClaim, pod: Pod) -> None:
        """Add a pod to those who may use a claim, if that is still as the cache shows it."""
        new = {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
        patch = {
            "metadata": {"resourceVersion": claim.metadata.resource_version},
            "status": {"reservedFor": [*reservations(claim.status.reserved_for), new]},
        }
        await self._transport.patch(
            CLAIMS, key_of(claim), patch, subresource="status", options=WRITTEN
        )

    # -- news -------------------------------------------------------------------------------------

    def _if_wanting(self, pod: Pod) -> Iterable[Key]:
        """Return a pod's key, unless it plainly has all it needs: most changes are not about it."""
        key = key_of(pod)
        now = self._lookups.pods.get(key)
        return (key,) if now is not None and self._is_wanting(now) else ()

    def _is_wanting(self, pod: Pod) -> bool:
        if not pod.spec.resource_claims and pod.status.extended_resource_claim_status is None:
            return False
        if pod.is_terminating or pod.finished:
            return False
        return self._lacks_claims(pod) or bool(pod.spec.node_name and any(self._unreserved(pod)))

    def _lacks_claims(self, pod: Pod) -> bool:
        """Report whether a claim is not made, not recorded, or not where it was recorded."""
        for named in claim_references(pod, extended=False):
            if named.missing:
                return True
            if not named.generated or not named.name:
                continue
            claim = self._lookups.claims.get(Key(pod.metadata.namespace, named.name))
            if claim is None or not made_for(claim, uid=pod.metadata.uid):
                return True
        return False

    def _pods_naming(self, claim: ResourceClaim) -> Iterable[Key]:
        pods = self._lookups.pods_naming(key_of(claim))
        return [key_of(pod) for pod in pods if self._is_wanting(pod)]

    def _pods_wanting(self, template: Template) -> Iterable[Key]:
        return map(key_of, self._lookups.pods_wanting(key_of(template)))
