"""ResourceQuotas, with all their fields: who reads one as this may write it back."""

from __future__ import annotations

import msgspec

from sully.machinery.meta import ObjectMeta, Wire


class ScopeRequirement(Wire, frozen=True, kw_only=True):
    """One scope, with an operator and values (ScopedResourceSelectorRequirement)."""

    scope_name: str
    operator: str
    values: tuple[str, ...] = ()


class ScopeSelector(Wire, frozen=True, kw_only=True):
    """Scopes of which an object must match every one."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(Wire, frozen=True, kw_only=True):
    """The limits of a quota, and what it counts."""

    hard: dict[str, str] = msgspec.field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Wire, frozen=True, kw_only=True):
    """The limits in force, and how much of them is used."""

    hard: dict[str, str] = msgspec.field(default_factory=dict)
    used: dict[str, str] = msgspec.field(default_factory=dict)


class ResourceQuota(Wire, frozen=True, kw_only=True):
    """What all objects of a namespace may use together."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()

    @property
    def requirements(self) -> tuple[ScopeRequirement, ...]:
        """Return the scopes that an object must be in to be counted."""
        selector = self.spec.scope_selector
        named = tuple([ScopeRequirement(scope_name=x, operator="Exists") for x in self.spec.scopes])
        return named if selector is None else named + selector.match_expressions
