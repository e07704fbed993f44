"""The default cluster roles and bindings, and their auto-reconciliation at every start.

Missing ones are created; existing ones keep additions and get back what they lack, unless their
annotation `rbac.authorization.kubernetes.io/autoupdate` is false. Nothing is ever removed.
"""

from sully.api.rbac.aggregation import aggregated_rules
from sully.api.rbac.coverage import missing
from sully.machinery.codec import copy
from sully.server.authorization.policy import clusters, nodes, people, programs
from sully.server.authorization.policy.writing import AUTO_UPDATE, Obj


def role_lacks(found: Obj, wanted: Obj) -> Obj | None:
    """Return a role with what it lacks, None if it lacks nothing or is not to be changed."""
    changed = _with_metadata(found, wanted)
    if changed is None:
        return None
    rule = wanted.get("aggregationRule")
    if rule is not None:
        # The aggregation controller writes the rules; only the selectors count.
        have = (found.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
        want = [selector for selector in rule["clusterRoleSelectors"] if selector not in have]
        if want:
            changed["aggregationRule"] = {"clusterRoleSelectors": [*have, *want]}
    else:
        lacking = missing(found.get("rules") or [], wanted["rules"])
        if lacking:
            changed["rules"] = [*(found.get("rules") or []), *lacking]
    return changed if changed != found else None


def binding_lacks(found: Obj, wanted: Obj) -> Obj | None:
    """Return a binding with the subjects it lacks, None if there is nothing to change."""
    changed = _with_metadata(found, wanted)
    if changed is None:
        return None
    have = found.get("subjects") or []
    want = [subject for subject in wanted["subjects"] if subject not in have]
    if want:
        changed["subjects"] = [*have, *want]
    return changed if changed != found else None


def _with_metadata(found: Obj, wanted: Obj) -> Obj | None:
    annotations = found["metadata"].get("annotations") or {}
    if annotations.get(AUTO_UPDATE, "true") != "true":
        return None
    changed: Obj = copy(found)
    for part in ("labels", "annotations"):
        have = found["metadata"].get(part) or {}
        changed["metadata"][part] = {**wanted["metadata"][part], **have}
    return changed


def _complete(roles: tuple[Obj, ...]) -> tuple[Obj, ...]:
    """Give aggregated roles their rules, so that they hold before any controller runs.

    In the order in which they gather from each other: view, edit, admin.
    """
    named = {role["metadata"]["name"]: role for role in roles}
    for name in ("view", "edit", "admin"):
        named[name] = named[name] | {"rules": aggregated_rules(named[name], named.values())}
    return tuple(named.values())


_SUBJECTS = (people, nodes, clusters, programs)
CLUSTER_ROLES: tuple[Obj, ...] = _complete(
    tuple(role for module in _SUBJECTS for role in module.ROLES)
)
CLUSTER_ROLE_BINDINGS: tuple[Obj, ...] = tuple(
    binding for module in _SUBJECTS for binding in module.BINDINGS
)
