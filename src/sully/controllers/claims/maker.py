"""Makes the claims that pods want from templates, each once.

The caches may not have seen what was made a moment ago. That there are never two claims does not
rest on them, but on names.py.
"""

from __future__ import annotations

from sully.api.resource.types import ResourceClaim
from sully.client.transport import Key, Transport
from sully.controllers.claims.lookups import TEMPLATES, WRITTEN, Lookups, Template
from sully.controllers.claims.metrics import ClaimMetrics
from sully.controllers.claims.names import names_for
from sully.domain.claims.lifecycle import ClaimToCreate, claim_of, is_made_for, made_claim
from sully.domain.claims.pods import Pod, PodClaim
from sully.domain.claims.reservations import made_for
from sully.machinery.errors import AlreadyExists, ApiError, Conflict, NotFound
from sully.views.kinds import CLAIMS


class NotMadeError(Exception):
    """A claim could not be made; the text is for people."""

    def __init__(self, text: str, cause: ApiError | None = None) -> None:
        super().__init__(text)
        self.cause = cause
        """None if trying again is of no use before something changes."""


class ClaimMaker:
    """Finds or makes the claims of pods."""

    def __init__(
        self, *, lookups: Lookups, transport: Transport, metrics: ClaimMetrics | None = None
    ) -> None:
        self._lookups = lookups
        self._transport = transport
        self._metrics = metrics

    async def ensure(self, pod: Pod, each: PodClaim, recorded: str | None) -> str:
        """Return the name of the claim that is made for a pod, whether new or not.

        What is recorded may have vanished, or may be someone else's by now.
        """
        uid, namespace = pod.metadata.uid, pod.metadata.namespace
        if recorded:
            claim = self._lookups.claims.get(Key(namespace, recorded))
            if claim is not None and made_for(claim, uid=uid):
                return recorded
        # Made, but whoever made it did not come to record it.
        orphan = made_claim(self._lookups.claims_made_for(uid), uid=uid, name=each.name)
        if orphan is not None:
            return orphan.metadata.name
        if recorded:
            claim = await self._get(Key(namespace, recorded))
            if claim is not None and made_for(claim, uid=uid):
                return recorded
        return await self._make(pod, each)

    async def _make(self, pod: Pod, each: PodClaim) -> str:
        where, name = pod.metadata.namespace, pod.metadata.name
        template = await self._template(Key(where, each.resource_claim_template_name or ""))
        wanted = ClaimToCreate(namespace=where, pod=name, uid=pod.metadata.uid, claim=each.name)
        try:
            return await self._make_one(wanted, template)
        except ApiError as error:
            # Kubernetes has no name to put here, because the server makes it up.
            raise NotMadeError(f"create ResourceClaim : {error.message}", error) from error

    async def _make_one(self, wanted: ClaimToCreate, template: Template) -> str:
        for name in names_for(wanted):
            if await self._create(wanted, name, template):
                return name
            claim = await self._get(Key(wanted.namespace, name))
            if claim is not None and is_made_for(claim, uid=wanted.uid, claim_name=wanted.claim):
                return name
        raise Conflict("other claims have all the names that this one could get")

    async def _template(self, key: Key) -> Template:
        found = self._lookups.templates.get(key)
        if found is not None:
            return found
        try:
            # Perhaps the news of the pod were only faster; then nobody should hear of a failure.
            return await self._transport.get(TEMPLATES, key)
        except NotFound as error:
            why = f'resourceclaimtemplate.resource.k8s.io "{key.name}" not found'
            raise NotMadeError(f'resource claim template "{key.name}": {why}') from error

    async def _create(self, wanted: ClaimToCreate, name: str, template: Template) -> bool:
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
