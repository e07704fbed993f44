"""The caches that both claim controllers read, and their indexes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from sully.api.resource.types import GROUP, ResourceClaim
from sully.client.informers.informer import Informer
from sully.client.options import WriteOptions
from sully.client.transport import Key, Kind
from sully.controllers.framework.kinds import Metadata
from sully.domain.claims.lifecycle import Consumers, is_pod, needs_claims, owning_pod
from sully.domain.claims.pods import claim_references
from sully.domain.scheduling.objects import Pod
from sully.machinery.meta import Wire

WRITE_OPTIONS = WriteOptions(field_manager="kube-controller-manager")
"""The field manager is that of the whole program, as in Kubernetes."""
_CONSUMER, _OWNER = "claims/consumer", "claims/owner"
_CLAIM, _TEMPLATE = "claims/claim", "claims/template"


class Template(Wire, frozen=True, kw_only=True):
    """A ResourceClaimTemplate. Its spec is only copied, so it is not decoded further."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: dict[str, Any] = msgspec.field(default_factory=dict)


TEMPLATES: Kind[Template] = Kind(
    GROUP, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", Template
)


class Lookups:
    """Pods, claims and templates, indexed by their references."""

    def __init__(
        self,
        *,
        pods: Informer[Pod],
        claims: Informer[ResourceClaim],
        templates: Informer[Template],
    ) -> None:
        self.pods = pods
        self.claims = claims
        self.templates = templates
        pods.add_index(_CLAIM, lambda pod: map(str, claims_named(pod)))
        pods.add_index(_TEMPLATE, lambda pod: map(str, templates_named(pod)))
        claims.add_index(_CONSUMER, lambda claim: map(str, consumers(claim)))
        claims.add_index(_OWNER, _owner)

    def claims_made_for(self, uid: str) -> list[ResourceClaim]:
        """Return the claims that a pod owns."""
        return self.claims.by_index(_OWNER, uid)

    def claims_reserved_for(self, pod: Key) -> list[ResourceClaim]:
        """Return the claims that are reserved for a pod of this name."""
        return self.claims.by_index(_CONSUMER, str(pod))

    def pods_with_claim(self, claim: Key) -> list[Pod]:
        """Return the pods that refer to a claim."""
        return self.pods.by_index(_CLAIM, str(claim))

    def pods_with_template(self, template: Key) -> list[Pod]:
        """Return the pods that refer to a template."""
        return self.pods.by_index(_TEMPLATE, str(template))


def may_run(pod: Pod) -> bool:
    """Report whether a pod runs or may still run, so that it needs its claims."""
    return needs_claims(
        finished=pod.is_terminal, terminating=pod.is_terminating, bound=bool(pod.spec.node_name)
    )


def still_needs_claims(pod: Pod | None, uid: str) -> bool:
    """Report whether a pod is still there, is the one with this uid, and needs its claims."""
    return pod is not None and pod.metadata.uid == uid and may_run(pod)


def claims_named(pod: Pod) -> dict[Key, bool]:
    """Return the claims that a pod refers to, and whether each was generated for it."""
    namespace = pod.metadata.namespace
    return {
        Key(namespace, reference.name): reference.generated
        for reference in claim_references(pod)
        if reference.name
    }


def templates_named(pod: Pod) -> set[Key]:
    """Return the templates that a pod refers to."""
    return {
        Key(pod.metadata.namespace, pod_claim.resource_claim_template_name)
        for pod_claim in pod.spec.resource_claims
        if pod_claim.resource_claim_template_name is not None
    }


def consumers(claim: ResourceClaim) -> set[Key]:
    """Return the pods that a claim is reserved for, by name."""
    return {
        Key(claim.metadata.namespace, consumer.name)
        for consumer in claim.status.reserved_for
        if is_pod(consumer)
    }


def reservations(consumers: Consumers) -> list[dict[str, Any]]:
    """Return the JSON form of `reservedFor`."""
    entries: list[dict[str, Any]] = msgspec.to_builtins(list(consumers))
    return entries


def _owner(claim: ResourceClaim) -> Iterable[str]:
    owner = owning_pod(claim)
    return () if owner is None else (owner.uid,)
