"""Makes the claims that pods want from templates, each once.

What was made a moment ago is remembered until the cache shows it, which saves asking the server.
That there are never two does not rest on this memory but on names.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from sully.api.resource.claim_types import ResourceClaim
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.claims.lookups import TEMPLATES, Lookups, Template
from sully.controllers.claims.metrics import ClaimMetrics
from sully.controllers.claims.names import names_for
from sully.domain.claims import POD_CLAIM, Wanted, claim_of, is_made_for, made_claim, owning_pod
from sully.machinery.errors import AlreadyExists, ApiError, Conflict, NotFound
from sully.runtime.clock import Clock
from sully.views.kinds import CLAIMS, Pod, PodResourceClaim

FRESH_SECONDS = 30.0
"""How long to believe that a claim exists which the cache has not shown."""
MANAGER = "kube-controller-manager"
"""Who wrote it, as managedFields tell: the program, of which this controller is a part."""
WRITTEN = WriteOptions(field_manager=MANAGER)


class NotMadeError(Exception):
    """A claim could not be made; the text is for people."""

    def __init__(self, text: str, cause: ApiError | None = None) -> None:
        super().__init__(text)
        self.cause = cause
        """None if there is nothing to try again before something changes."""


@dataclass(frozen=True, slots=True)
class _Fresh:
    name: str
    until: float


class ClaimMaker:
    """Finds or makes the claims of pods."""

    def __init__(
        self,
        *,
        lookups: Lookups,
        transport: Transport,
        clock: Clock,
        metrics: ClaimMetrics | None = None,
    ) -> None:
        self._lookups = lookups
        self._transport = transport
        self._clock = clock
        self._metrics = metrics
        self._fresh: dict[tuple[str, str], _Fresh] = {}
        """By the uid of the pod and the name of the claim in it."""
        lookups.claims.on_change(self._claim_changed)
        lookups.pods.on_change(self._pod_changed)

    async def ensure(self, pod: Pod, each: PodResourceClaim, recorded: str | None) -> str:
        """Return the name of the claim that is made for a pod, whether new or not."""
        found = self._known(pod, each, recorded) or self._remembered(pod, each)
        if found is not None:
            return found
        if recorded and await self._is_there(pod, each, recorded):
            self._remember(pod, each, recorded)
            return recorded
        name = await self._make(pod, each)
        self._remember(pod, each, name)
        return name

    def waits(self, pod: Pod) -> float:
        """Return the seconds after which to make sure of what a pod's claims are believed to be."""
        uid = pod.metadata.uid
        found = [self._fresh.get((uid, each.name)) for each in pod.spec.resource_claims]
        left = [each.until - self._clock.monotonic() for each in found if each is not None]
        return max(0.0, min(left, default=0.0))

    def _known(self, pod: Pod, each: PodResourceClaim, recorded: str | None) -> str | None:
        uid, namespace = pod.metadata.uid, pod.metadata.namespace
        claim = self._lookups.claims.get(Key(namespace, recorded)) if recorded else None
        owner = owning_pod(claim) if claim is not None else None
        if owner is not None and owner.uid == uid:
            return recorded
        # Made, but the one who made it did not come to record it.
        orphan = made_claim(self._lookups.claims_made_for(uid), uid=uid, name=each.name)
        return orphan.metadata.name if orphan is not None else None

    def _remembered(self, pod: Pod, each: PodResourceClaim) -> str | None:
        fresh = self._fresh.get((pod.metadata.uid, each.name))
        if fresh is None or fresh.until <= self._clock.monotonic():
            return None
        return fresh.name

    def _remember(self, pod: Pod, each: PodResourceClaim, name: str) -> None:
        if self._lookups.claims.get(Key(pod.metadata.namespace, name)) is None:
            until = self._clock.monotonic() + FRESH_SECONDS
            self._fresh[pod.metadata.uid, each.name] = _Fresh(name, until)

    async def _is_there(self, pod: Pod, each: PodResourceClaim, name: str) -> bool:
        claim = await self._get(Key(pod.metadata.namespace, name))
        return claim is not None and is_made_for(
            claim, uid=pod.metadata.uid, claim_name=each.name
        )

    async def _make(self, pod: Pod, each: PodResourceClaim) -> str:
        metadata = pod.metadata
        template = await self._template(Key(metadata.namespace, _template_of(each)))
        wanted = Wanted(
            namespace=metadata.namespace, pod=metadata.name, uid=metadata.uid, claim=each.name
        )
        try:
            for name in names_for(wanted):
                if await self._create(wanted, name, template) or await self._is_there(
                    pod, each, name
                ):
                    return name
        except ApiError as error:
            # The place of the name is empty in Kubernetes as well.
            raise NotMadeError(f"create ResourceClaim : {error.message}", error) from error
        error = Conflict("all names are taken")
        raise NotMadeError(f"create ResourceClaim : {error.message}", error)

    async def _template(self, key: Key) -> Template:
        found = self._lookups.templates.get(key)
        if found is not None:
            return found
        try:
            # Perhaps the pod's news were only faster; nobody should be told of a failure then.
            return await self._transport.get(TEMPLATES, key)
        except NotFound as error:
            why = f'resourceclaimtemplate.resource.k8s.io "{key.name}" not found'
            raise NotMadeError(f'resource claim template "{key.name}": {why}') from error

    async def _create(self, wanted: Wanted, name: str, template: Template) -> bool:
        """Create a claim; return False if the name is taken."""
        body = claim_of(wanted, name=name, template=template.spec)
        try:
            await self._transport.create(CLAIMS, body, options=WRITTEN)
        except AlreadyExists:
            return False
        except ApiError:
            self._count(template, success=False)
            raise
        self._count(template, success=True)
        return True

    def _count(self, template: Template, *, success: bool) -> None:
        if self._metrics is not None:
            self._metrics.created(template.spec["spec"], success=success)

    async def _get(self, key: Key) -> ResourceClaim | None:
        try:
            return await self._transport.get(CLAIMS, key)
        except NotFound:
            return None

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = new or old
        owner = owning_pod(claim) if claim is not None else None
        if claim is not None and owner is not None:
            name = claim.metadata.annotations.get(POD_CLAIM, "")
            self._fresh.pop((owner.uid, name), None)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is None:
            for each in old.spec.resource_claims:
                self._fresh.pop((old.metadata.uid, each.name), None)


def _template_of(each: PodResourceClaim) -> str:
    return each.resource_claim_template_name or ""
