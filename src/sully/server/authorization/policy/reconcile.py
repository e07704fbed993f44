"""The default cluster roles and bindings, and their auto-reconciliation at every start.

Missing ones are created; existing ones keep additions and get missing rules and subjects, unless
their annotation `rbac.authorization.kubernetes.io/autoupdate` is false. Nothing is ever removed.
"""

from sully.api.rbac.aggregation import aggregated_rules
from sully.api.rbac.coverage import missing
from sully.machinery.serialization.codec import copy
from sully.server.authorization.policy import clusters, kube_controllers, nodes
from sully.server.authorization.policy import components as programs
from sully.server.authorization.policy import user_facing as people
from sully.server.authorization.policy.builders import AUTO_UPDATE, Obj


def reconciled_role(existing: Obj, expected: Obj) -> Obj | None:
    """Return a role with its missing rules; None if none is missing or it must not be changed."""
    changed = _with_metadata(existing, expected)
    if changed is None:
        return None
    rule = expected.get("aggregationRule")
    if rule is not None:
        # The aggregation controller writes the rules; only the selectors count.
        current = (existing.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
        missing_parts = [
            selector for selector in rule["clusterRoleSelectors"] if selector not in current
        ]
        if missing_parts:
            changed["aggregationRule"] = {"clusterRoleSelectors": [*current, *missing_parts]}
    else:
        missing_rules = missing(existing.get("rules") or [], expected["rules"])
        if missing_rules:
            changed["rules"] = [*(existing.get("rules") or []), *missing_rules]
    return changed if changed != existing else None


def reconciled_binding(existing: Obj, expected: Obj) -> Obj | None:
    """Return a binding with its missing subjects; None if it must not be changed."""
    changed = _with_metadata(existing, expected)
    if changed is None:
        return None
    current = existing.get("subjects") or []
    missing_parts = [subject for subject in expected["subjects"] if subject not in current]
    if missing_parts:
        changed["subjects"] = [*current, *missing_parts]
    return changed if changed != existing else None


def _with_metadata(existing: Obj, expected: Obj) -> Obj | None:
    annotations = existing["metadata"].get("annotations") or {}
    if annotations.get(AUTO_UPDATE, "true") != "true":
        return None
    changed: Obj = copy(existing)
    for part in ("labels", "annotations"):
        current = existing["metadata"].get(part) or {}
        changed["metadata"][part] = {**expected["metadata"][part], **current}
    return changed


def _complete(roles: tuple[Obj, ...]) -> tuple[Obj, ...]:
    """Set the rules of aggregated roles, so that they apply before any controller runs.

    In the order of aggregation: view, edit, admin.
    """
    named = {role["metadata"]["name"]: role for role in roles}
    for name in ("view", "edit", "admin"):
        named[name] = named[name] | {"rules": aggregated_rules(named[name], named.values())}
    return tuple(named.values())


_SUBJECTS = (people, nodes, clusters, programs, kube_controllers)
CLUSTER_ROLES: tuple[Obj, ...] = _complete(
    tuple(role for module in _SUBJECTS for role in module.ROLES)
)
CLUSTER_ROLE_BINDINGS: tuple[Obj, ...] = tuple(
    binding for module in _SUBJECTS for binding in module.BINDINGS
)
