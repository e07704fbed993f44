"""The metrics of claims, with the names of Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sully.api.resource.types import ResourceClaim
from sully.client.informers.informer import Informer
from sully.domain.claims.lifecycle import EXTENDED, POD_CLAIM
from sully.runtime.metrics import Metrics

_LABELS = ("allocated", "admin_access", "source")


class ClaimMetrics:
    """The number of claims, and of attempts to create one."""

    def __init__(self, metrics: Metrics) -> None:
        self._creates = metrics.counter(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "Number of ResourceClaims creation requests, categorized by creation status and admin"
            " access.",
            ("status", "admin_access"),
        )
        self._claims = metrics.gauge(
            "dynamic_resource_allocation_resource_claims",
            "Number of ResourceClaims, categorized by allocation status, admin access, and source:"
            " a template or an extended resource.",
            _LABELS,
        )

    def follow(self, claims: Informer[ResourceClaim]) -> None:
        """Count the claims of a cache."""
        claims.on_change(self._changed)

    def created(self, spec: Mapping[str, Any], *, success: bool) -> None:
        """Count an attempt to create a claim with this spec."""
        requests = (spec.get("devices") or {}).get("requests") or ()
        admin = any((request.get("exactly") or {}).get("adminAccess") for request in requests)
        self._creates.labels("success" if success else "failure", _label(admin)).inc()

    def _changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before = _labels(old) if old is not None else None
        after = _labels(new) if new is not None else None
        if before == after:
            return
        if before is not None:
            self._claims.labels(*before).dec()
        if after is not None:
            self._claims.labels(*after).inc()


def _labels(claim: ResourceClaim) -> tuple[str, str, str]:
    requests = claim.spec.devices.requests or ()
    admin = any(
        request.exactly is not None and request.exactly.admin_access for request in requests
    )
    annotations, source = claim.metadata.annotations, ""
    if annotations.get(EXTENDED) == "true":
        source = "extended_resource"
    elif POD_CLAIM in annotations:
        source = "resource_claim_template"
    return _label(claim.status.allocation is not None), _label(admin), source


def _label(value: bool) -> str:
    return "true" if value else "false"
