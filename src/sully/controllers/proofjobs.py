"""Runs Jobs that test devices, and reports how they ended; for any controller that needs proofs.

The controller passes which proofs it needs now; Jobs that are not needed are deleted, and
everything else of a proof with them. Nothing is stored here: names are digests of requests
(`domain/proofs`), so a controller that restarts continues with the Jobs that it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from sully.api.resource.types import ResourceClaim
from sully.client.informers.informer import Informer
from sully.client.informers.reflector import ObjectSelector
from sully.client.objects import key_of
from sully.client.options import DeleteOptions, ListOptions, WriteOptions
from sully.client.transport import Key, Kind, Transport
from sully.domain.proofs.outcomes import (
    ProofJob,
    ProofOutcome,
    has_ended,
    has_failed,
    outcome,
)
from sully.domain.proofs.requests import (
    ADMIN_LABEL,
    OWNER,
    ProofOwner,
    ProofRequest,
    ProofSettings,
    build_claim,
    build_job,
    is_claim_of,
    run_name,
)
from sully.domain.proofs.selection import NotSelectableError
from sully.domain.workloads.pod_problems import ReportedPod, failure_message
from sully.machinery.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
)
from sully.views.kinds import CLAIMS
from sully.views.snapshot.kinds import NAMESPACES, PODS

PROOF_JOBS: Final[Kind[ProofJob]] = Kind("batch", "v1", "jobs", "Job", ProofJob)
SELECTOR: Final = ObjectSelector(label_selector=OWNER)
"""The Jobs to watch."""
_PODS: Final[Kind[ReportedPod]] = PODS.read_as(ReportedPod)
_BY_OWNER: Final = "proof-owner"
_REFUSED: Final = (BadRequest, Conflict, Forbidden, Invalid, NotFound)
"""What does not get better by itself within seconds; people should see it."""


class ProofJobs:
    """The Jobs and claims of proofs."""

    def __init__(
        self,
        *,
        jobs: Informer[ProofJob],
        claims: Informer[ResourceClaim],
        transport: Transport,
        field_manager: str,
    ) -> None:
        self.jobs = jobs
        self._claims = claims
        self._transport = transport
        self._options = WriteOptions(field_manager=field_manager)
        if not jobs.has_index(_BY_OWNER):
            # Several controllers share the cache.
            jobs.add_index(_BY_OWNER, lambda job: (job.metadata.labels.get(OWNER, ""),))

    async def outcomes(
        self,
        owner: ProofOwner,
        settings: ProofSettings,
        runs: Mapping[str, str],
        expression: Callable[[str], str],
    ) -> dict[str, ProofOutcome]:
        """Return what the Jobs of these runs, by device, have shown; nothing of missing ones.

        `expression` returns what selects exactly a device, or raises NotSelectableError.
        """
        by_run: dict[str, ProofOutcome] = {}
        for device, run in runs.items():
            job = self.jobs.get(Key(settings.namespace, run_name(owner, device, run)))
            # Only what the controller created: others may copy labels and names.
            if job is None or not job.metadata.is_controlled_by(owner.uid):
                continue
            if has_ended(job):
                try:
                    selected = expression(device)
                except NotSelectableError:
                    continue
                request = ProofRequest(
                    owner=owner, settings=settings, device=device, expression=selected, run=run
                )
                if not self._has_own_claim(request, job):
                    # It may have tested another device; `sync` reports it.
                    continue
            details = await self._details(job) if has_failed(job) else ""
            by_run[device] = outcome(run, job, details)
        return by_run

    async def sync(
        self, owner: ProofOwner, desired: Iterable[ProofRequest], retained: Collection[Key] = ()
    ) -> dict[str, str]:
        """Create and delete what differs; return why Jobs cannot be created, by device.

        `retained` are finished Jobs that stay, so that users can read their logs.
        """
        requests = list(desired)
        await self.delete_others(owner, requests, retained)
        return await self.start(requests)

    async def delete_others(
        self, owner: ProofOwner, desired: Iterable[ProofRequest], retained: Collection[Key] = ()
    ) -> None:
        """Delete the Jobs of an owner that are neither desired nor retained."""
        left = {Key(one.settings.namespace, one.name) for one in desired}.union(retained)
        for job in self.jobs.by_index(_BY_OWNER, owner.uid):
            if key_of(job) not in left and job.metadata.is_controlled_by(owner.uid):
                await self._delete(job)

    async def start(self, desired: Iterable[ProofRequest]) -> dict[str, str]:
        """Create the Jobs that do not exist; return why some cannot be created, by device."""
        problems: dict[str, str] = {}
        for request in desired:
            try:
                await self._start(request)
            except _REFUSED as error:
                problems[request.device] = str(error)
        return problems

    async def _start(self, request: ProofRequest) -> None:
        """Create the Job and the claim of a request, as far as they do not exist."""
        key = Key(request.settings.namespace, request.name)
        job, claim = self.jobs.get(key), self._claims.get(key)
        if job is None:
            if claim is not None:
                raise _foreign("ResourceClaim", key)
            await self._check_namespace(key.namespace)
            try:
                job = await self._transport.create(
                    PROOF_JOBS, build_job(request), options=self._options
                )
            except AlreadyExists:
                # The cache has not seen it yet, and never does if it lacks the label.
                job = await self._transport.get(PROOF_JOBS, key)
        if not job.metadata.is_controlled_by(request.owner.uid):
            raise _foreign("Job", key)
        if job.metadata.deletion_timestamp is not None:
            return
        if claim is None and not has_ended(job):
            await self._claim(request, job)
        elif not self._has_own_claim(request, job):
            await self._delete(job)
            raise _foreign("ResourceClaim", key)

    def _has_own_claim(self, request: ProofRequest, job: ProofJob) -> bool:
        claim = self._claims.get(Key(request.settings.namespace, request.name))
        return claim is not None and is_claim_of(request, job.metadata, claim)

    async def _claim(self, request: ProofRequest, job: ProofJob) -> None:
        try:
            body = build_claim(request, job.metadata)
            await self._transport.create(CLAIMS, body, options=self._options)
        except AlreadyExists:
            return
        except _REFUSED:
            # Without its claim a Job would wait until its deadline.
            await self._delete(job)
            raise

    async def _check_namespace(self, name: str) -> None:
        """Raise a clear error if claims of a namespace cannot have admin access."""
        namespace = await self._transport.get(NAMESPACES, Key("", name))
        if namespace.metadata.labels.get(ADMIN_LABEL) != "true":
            raise Forbidden(
                f'namespace "{name}" does not allow admin access to devices: it lacks the label'
                f" {ADMIN_LABEL}=true"
            )

    async def _details(self, job: ProofJob) -> str:
        """Return what the pods of a failed Job reported."""
        options = ListOptions(label_selector=f"batch.kubernetes.io/job-name={job.metadata.name}")
        listed = await self._transport.list(_PODS, job.metadata.namespace, options)
        return failure_message(listed.items)

    async def _delete(self, job: ProofJob) -> None:
        if job.metadata.deletion_timestamp is not None:
            return
        # Not the default: that of Jobs keeps their pods.
        options = DeleteOptions(uid=job.metadata.uid, propagation_policy="Background")
        try:
            await self._transport.delete(PROOF_JOBS, key_of(job), options)
        except (NotFound, Conflict):
            return


def owner_key(kind: Kind[Any], job: ProofJob) -> Iterable[Key]:
    """Yield the key of the object of a cluster-scoped kind that a Job is a proof for."""
    owner = job.metadata.controller()
    if owner is not None and owner.kind == kind.kind:
        yield Key("", owner.name)


def _foreign(kind: str, key: Key) -> Conflict:
    return Conflict(
        f'{kind} "{key}" is not the one that the controller creates: if it exists, delete it'
    )
