"""Claims that a pod without a node waits for: they are missing, full, or not ready."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.api.resource.types import ResourceClaim
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.claims.lifecycle import MOST_CONSUMERS
from sully.domain.claims.pods import PodClaim, claim_references
from sully.domain.claims.reservations import is_for_pod, reserved_for
from sully.domain.scheduling.objects import Pod
from sully.explain.causes import Finding, PendingFacts
from sully.explain.reader import Reader
from sully.explain.trials.scheduler import ResolvedClaims, deadline, unready
from sully.views.kinds import CLAIMS
from sully.views.snapshot.kinds import TEMPLATES


def pending_finding(
    pod: Pod, cause: str, facts: PendingFacts, because: Iterable[str] = (), **more: Any
) -> Finding:
    return Finding(
        kind="Pod",
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        cause=cause,
        facts=facts,
        because=tuple(because),
        **more,
    )


def find_claim_problem(reader: Reader, pod: Pod, resolved: ResolvedClaims) -> Finding | None:
    """Find a claim that the scheduler cannot use, or that the pod has to wait for."""
    if resolved.message:
        return _unresolved(reader, pod, resolved.message)
    return _full(pod, resolved.claims) or _not_ready(reader, pod, resolved.claims)


def _unresolved(reader: Reader, pod: Pod, message: str) -> Finding:
    namespace = pod.metadata.namespace
    entries = {entry.name: entry for entry in pod.spec.resource_claims}
    for reference in claim_references(pod, extended=False):
        if reference.missing:
            return _not_created(reader, pod, entries[reference.entry], message)
        name = reference.name
        if not name:
            continue
        claim = reader.snapshot.get(CLAIMS, Key(namespace, name))
        cause = ""
        if claim is None:
            cause = "ClaimMissing"
        elif claim.metadata.deletion_timestamp is not None:
            cause = "ClaimDeleting"
        elif reference.generated and not is_for_pod(claim, uid=pod.metadata.uid):
            cause = "ClaimOfOtherPod"
        if cause:
            facts = PendingFacts(message=message, claim=name, namespace=namespace)
            return pending_finding(pod, cause, facts, (f"ResourceClaim/{namespace}/{name}",))
    return pending_finding(pod, "ClaimMissing", PendingFacts(message=message))


def _not_created(reader: Reader, pod: Pod, entry: PodClaim, message: str) -> Finding:
    namespace = pod.metadata.namespace
    template = entry.resource_claim_template_name or ""
    facts = PendingFacts(message=message, template=template, namespace=namespace)
    if reader.snapshot.get(TEMPLATES, Key(namespace, template)) is None:
        return pending_finding(pod, "TemplateMissing", facts)
    because = (f"ResourceClaimTemplate/{namespace}/{template}",)
    return pending_finding(pod, "ClaimNotCreated", facts, because)


def _full(pod: Pod, claims: Iterable[ResourceClaim]) -> Finding | None:
    """Find a claim that is reserved for as many pods as possible."""
    for claim in claims:
        name, reserved = str(key_of(claim)), len(claim.status.reserved_for)
        if reserved >= MOST_CONSUMERS and not reserved_for(claim, uid=pod.metadata.uid):
            facts = PendingFacts(claim=name, pods=reserved)
            return pending_finding(pod, "ClaimFull", facts, (f"ResourceClaim/{name}",))
    return None


def _not_ready(reader: Reader, pod: Pod, claims: Iterable[ResourceClaim]) -> Finding | None:
    """Find a device that the pod has and that its driver must prepare first."""
    reserved = [claim for claim in claims if reserved_for(claim, uid=pod.metadata.uid)]
    pending = [(claim, device) for claim in reserved for device in unready(claim)]
    # Where one has failed, the scheduler does not wait for the others.
    for claim, device in sorted(pending, key=lambda pair: not pair[1].failed):
        name, result = str(key_of(claim)), device.result
        facts = PendingFacts(
            claim=name,
            device=f"{result.driver}/{result.pool}/{result.device}",
            driver=result.driver,
            conditions=tuple(device.failed or device.lacks),
            until=None if device.failed else deadline((claim,), reader.now),
        )
        cause = "DevicesFailed" if device.failed else "DevicesNotReady"
        return pending_finding(pod, cause, facts, (f"ResourceClaim/{name}",))
    return None
