"""Creates the claims of pods from templates, each once.

The caches may not show a claim that was just created. So the names, which look as if the server had
generated them, are derived from the pod and its claim: whatever a cache has missed and however
often the controller restarts, a second attempt finds that the name is taken, and by which claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from sully.api.resource.types import ResourceClaim
from sully.client.transport import Key, Transport
from sully.controllers.claims.lookups import TEMPLATES, WRITE_OPTIONS, Lookups, Template
from sully.controllers.claims.metrics import ClaimMetrics
from sully.domain.claims.lifecycle import (
    ClaimToCreate,
    claim_of,
    is_made_for,
    made_claim,
    name_prefix,
)
from sully.domain.claims.pods import Pod, PodClaim
from sully.domain.claims.reservations import is_for_pod
from sully.machinery.errors import AlreadyExists, ApiError, Conflict, NotFound
from sully.runtime.ids import ALPHABET
from sully.views.kinds import CLAIMS


class ClaimCreationError(Exception):
    """A claim could not be created; the message is that of the event."""

    def __init__(self, text: str, cause: ApiError | None = None) -> None:
        super().__init__(text)
        self.cause = cause
        """None if a retry does not help before something changes."""


class ClaimCreator:
    """Finds or creates the claims of pods."""

    def __init__(
        self, *, lookups: Lookups, transport: Transport, metrics: ClaimMetrics | None = None
    ) -> None:
        self._lookups = lookups
        self._transport = transport
        self._metrics = metrics

    async def ensure(self, pod: Pod, pod_claim: PodClaim, recorded: str | None) -> str:
        """Return the name of the claim of a pod, new or not.

        The recorded claim may be deleted, or recreated for another pod.
        """
        uid, namespace = pod.metadata.uid, pod.metadata.namespace
        if recorded:
            claim = self._lookups.claims.get(Key(namespace, recorded))
            if claim is not None and is_for_pod(claim, uid=uid):
                return recorded
        # Created, but not recorded, because the controller was stopped.
        unrecorded = made_claim(self._lookups.claims_made_for(uid), uid=uid, name=pod_claim.name)
        if unrecorded is not None:
            return unrecorded.metadata.name
        if recorded:
            claim = await self._get(Key(namespace, recorded))
            if claim is not None and is_for_pod(claim, uid=uid):
                return recorded
        return await self._create_from_template(pod, pod_claim)

    async def _create_from_template(self, pod: Pod, pod_claim: PodClaim) -> str:
        metadata = pod.metadata
        key = Key(metadata.namespace, pod_claim.resource_claim_template_name or "")
        template = await self._template(key)
        to_create = ClaimToCreate(
            namespace=metadata.namespace,
            pod=metadata.name,
            uid=metadata.uid,
            claim=pod_claim.name,
        )
        try:
            return await self._create_named(to_create, template)
        except ApiError as error:
            # Kubernetes has no name here, because the server generates it.
            raise ClaimCreationError(f"create ResourceClaim : {error.message}", error) from error

    async def _create_named(self, to_create: ClaimToCreate, template: Template) -> str:
        for name in names_for(to_create):
            if await self._create(to_create, name, template):
                return name
            claim = await self._get(Key(to_create.namespace, name))
            if claim is not None and is_made_for(
                claim, uid=to_create.uid, claim_name=to_create.claim
            ):
                return name
        raise Conflict("all names for the claim are taken by other claims")

    async def _template(self, key: Key) -> Template:
        template = self._lookups.templates.get(key)
        if template is not None:
            return template
        try:
            # The event of the pod may have arrived first; that is not a failure.
            return await self._transport.get(TEMPLATES, key)
        except NotFound as error:
            cause = f'resourceclaimtemplate.resource.k8s.io "{key.name}" not found'
            raise ClaimCreationError(f'resource claim template "{key.name}": {cause}') from error

    async def _create(self, to_create: ClaimToCreate, name: str, template: Template) -> bool:
        """Create a claim; return False if the name is taken."""
        body = claim_of(to_create, name=name, template=template.spec)
        try:
            await self._transport.create(CLAIMS, body, options=WRITE_OPTIONS)
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


MAX_NAMES = 8
"""How many names to try; the first is taken by another claim about once in 14 million."""
_LENGTH = 5


def names_for(to_create: ClaimToCreate) -> Iterator[str]:
    """Yield the names a claim may have, in the order in which they are tried."""
    prefix = name_prefix(to_create.pod, to_create.claim)
    for attempt in range(MAX_NAMES):
        yield prefix + _suffix(f"{to_create.uid}/{to_create.claim}/{attempt}")


def _suffix(seed: str) -> str:
    value = int.from_bytes(sha256(seed.encode()).digest())
    letters = []
    for _ in range(_LENGTH):
        value, letter = divmod(value, len(ALPHABET))
        letters.append(ALPHABET[letter])
    return "".join(letters)
