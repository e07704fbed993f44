"""Brings the default roles and bindings back to what they should at least contain.

Run at every start. What is missing is created; what exists keeps everything people added and gets
back what it lacks, unless its annotation `rbac.authorization.kubernetes.io/autoupdate` says
otherwise. Nothing is ever taken away.
"""

from typing import Any

from sully.api.rbac.coverage import missing
from sully.machinery.codec import copy
from sully.server.authorization.policy.writing import AUTO_UPDATE

Obj = dict[str, Any]


def role_lacks(found: Obj, wanted: Obj) -> Obj | None:
    """Return a role with what it lacks, None if it lacks nothing or is not to be changed."""
    changed = _with_metadata(found, wanted)
    if changed is None:
        return None
    rule = wanted.get("aggregationRule")
    if rule is not None:
        # The aggregation controller writes the rules; only the selectors count.
        have = (found.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
        want = [each for each in rule["clusterRoleSelectors"] if each not in have]
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
    want = [each for each in wanted["subjects"] if each not in have]
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
