"""Roles and cluster roles: sets of rules, which only add permissions.

Whether a writer may put certain rules into a role is checked by server/authorization; the
rules of aggregated roles are in aggregation.py.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sully.api.core.checks import label_selector
from sully.api.core.columns import NAME
from sully.api.rbac.kinds import kind_of
from sully.machinery.declared import declared
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import path_segment_problems
from sully.machinery.strategy import Column, Strategy, WriteContext

Obj = dict[str, Any]

_NO_SELECTOR = "at least one clusterRoleSelector required if aggregationRule is non-nil"
_NO_URLS = "namespaced rules cannot apply to non-resource URLs"
_BOTH = "rules cannot apply to both regular resources and non-resource URLs"


class RoleStrategy(Strategy, frozen=True):
    """Writes to roles of a namespace."""

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check every rule."""
        return _validate_rules(obj, namespaced=True)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new rules like those of a new role."""
        return self.validate_create(obj, ctx)

    def validate_name(self, name: str) -> Sequence[str]:
        """Allow whatever is allowed in a path: names of roles have colons."""
        return path_segment_problems(name)


class ClusterRoleStrategy(RoleStrategy, frozen=True):
    """Writes to roles of the cluster."""

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check every rule, and the selectors of an aggregated role."""
        yield from _validate_rules(obj, namespaced=False)
        rule = obj.get("aggregationRule")
        if rule is not None:
            at = Path("aggregationRule.clusterRoleSelectors")
            selectors = rule.get("clusterRoleSelectors") or []
            if not selectors:
                yield at.required(_NO_SELECTOR)
            for position, selector in enumerate(selectors):
                problems = list(label_selector(selector, at.index(position)))
                yield from problems
                if problems:
                    yield at.index(position).invalid(None, "invalid label selector.")


def _validate_rules(obj: Obj, *, namespaced: bool) -> Iterator[FieldError]:
    for position, rule in enumerate(obj.get("rules") or ()):
        yield from validate_rule(rule, Path("rules").index(position), namespaced=namespaced)


def validate_rule(rule: Obj, at: Path, *, namespaced: bool) -> Iterator[FieldError]:
    """Yield what is wrong with one rule: it needs either resources or paths, and verbs."""
    yield from _subjects_of_rule(rule, at, namespaced=namespaced)
    if not rule.get("verbs"):
        yield from declared([at.child("verbs").required()])


def _subjects_of_rule(rule: Obj, at: Path, *, namespaced: bool) -> Iterator[FieldError]:
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            yield at.child("nonResourceURLs").invalid(urls, _NO_URLS)
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            yield at.child("nonResourceURLs").invalid(urls, _BOTH)
        return
    if not rule.get("apiGroups"):
        yield at.child("apiGroups").required("resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield at.child("resources").required("resource rules must supply at least one resource")


def _created(obj: Obj, _now: datetime) -> Any:
    return obj["metadata"].get("creationTimestamp")


_COLUMNS = (
    NAME,
    Column("Created At", _created, type="date", description="When the object was created."),
)

ROLES = kind_of("Role", RoleStrategy(), _COLUMNS, namespaced=True)
CLUSTER_ROLES = kind_of("ClusterRole", ClusterRoleStrategy(), _COLUMNS, namespaced=False)
