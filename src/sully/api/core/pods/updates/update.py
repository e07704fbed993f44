"""What may change in a pod that exists: almost nothing.

A pod is not edited, it is replaced; so a change may only touch images, deadlines, tolerations and
gates, and while gates hold the pod back, it may still be steered to fewer nodes.
"""

from typing import Any

from sully.api.core.checks import Errors, as_go, same
from sully.api.core.gotypes import core_type
from sully.api.core.pods.mirrors import validate_same_mirror
from sully.api.core.pods.spec.scheduling import REQUIRED
from sully.api.core.pods.spec.validation import SPEC, validate_pod
from sully.api.core.taints import tolerations
from sully.machinery.fields import Path
from sully.machinery.serialization.gostructs import diff

Obj = dict[str, Any]

_MAX_SECONDS = 2**31 - 1
_ALLOWED = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_PARTS = ("matchExpressions", "matchFields")
_SAME_TERMS = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
_ONLY_ADDED = "only additions are allowed (no mutations or deletions)"
_ONLY_ADDED_LABELS = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
_TOLERATION_KEPT = "existing toleration can not be modified except its tolerationSeconds"


def validate_change(pod: Obj, old: Obj) -> Errors:
    """Yield everything wrong with a change of a pod."""
    yield from validate_pod(pod)
    yield from validate_same_mirror(pod, old)
    spec, before = pod["spec"], old["spec"]
    for name in ("containers", "initContainers"):
        if len(spec.get(name) or ()) != len(before.get(name) or ()):
            yield SPEC.child(name).forbidden("pod updates may not add or remove containers")
            return
    yield from _deadline(spec, before)
    yield from _tolerations(spec, before)
    yield from _gates(spec, before)
    yield from _everything_else(spec, before)


def _deadline(spec: Obj, before: Obj) -> Errors:
    at = SPEC.child("activeDeadlineSeconds")
    new, old = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if new is None:
        if old is not None:
            yield at.invalid(None, "must not update from a positive integer to nil value")
    elif not 0 <= new <= _MAX_SECONDS:
        yield at.invalid(new, f"must be between 0 and {_MAX_SECONDS}, inclusive")
    elif old is not None and old < new:
        yield at.invalid(new, "must be less than or equal to previous value")


def _tolerations(spec: Obj, before: Obj) -> Errors:
    at, new = SPEC.child("tolerations"), spec.get("tolerations") or []
    remaining = [_without_seconds(toleration) for toleration in new]
    for toleration in before.get("tolerations") or ():
        if _without_seconds(toleration) not in remaining:
            yield at.forbidden(_TOLERATION_KEPT)
            return
    yield from tolerations(new, at)


def _without_seconds(toleration: Obj) -> Obj:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _gates(spec: Obj, before: Obj) -> Errors:
    known = [gate["name"] for gate in before.get("schedulingGates") or ()]
    for position, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate["name"] not in known:
            text = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield SPEC.child("schedulingGates").index(position).child("name").forbidden(text)


def _everything_else(spec: Obj, before: Obj) -> Errors:
    """Copy the old values where changes are allowed; then nothing may differ."""
    rest = dict(spec)
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        _take(rest, before, name)
    for name in ("containers", "initContainers"):
        pairs = zip(spec.get(name) or (), before.get(name) or (), strict=True)
        rest[name] = [{**new, "image": old.get("image", "")} for new, old in pairs] or None
    grace = "terminationGracePeriodSeconds"
    if before.get(grace, 0) < 0 and rest.get(grace) == 1:
        rest[grace] = before[grace]
    if before.get("schedulingGates"):
        yield from _steering(rest, before)
    if not same(rest, before):
        fields = ",".join(_ALLOWED)
        shown = diff(before, rest, core_type("PodSpec"))
        yield SPEC.forbidden(f"pod updates may not change fields other than {fields}\n{shown}")


def _take(rest: Obj, before: Obj, name: str) -> None:
    rest.pop(name, None)
    if name in before:
        rest[name] = before[name]


def _steering(rest: Obj, before: Obj) -> Errors:
    """Check changes of the node selection of a gated pod."""
    new, old = rest.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(new.get(key) != value for key, value in old.items()):
        shown = dict(sorted(new.items())) or None
        yield SPEC.child("nodeSelector").invalid(shown, _ONLY_ADDED_LABELS)
    _take(rest, before, "nodeSelector")
    affinity, affinity_before = _node_affinity(rest), _node_affinity(before)
    if not same(affinity, affinity_before):
        at = SPEC.child("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
        yield from _narrower(_required(affinity), _required(affinity_before), at)
        _take_node_affinity(rest, before)


def _node_affinity(spec: Obj) -> Obj | None:
    affinity: Obj = spec.get("affinity") or {}
    return affinity.get("nodeAffinity")


def _required(node_affinity: Obj | None) -> list[Obj]:
    return ((node_affinity or {}).get(REQUIRED) or {}).get("nodeSelectorTerms") or []


def _take_node_affinity(rest: Obj, before: Obj) -> None:
    """Copy only the affinity to nodes: that to pods must not change."""
    affinity = {**(rest.get("affinity") or {})}
    affinity.pop("nodeAffinity", None)
    if (node_affinity := _node_affinity(before)) is not None:
        affinity["nodeAffinity"] = node_affinity
    rest.pop("affinity", None)
    if affinity or "affinity" in before:
        rest["affinity"] = affinity


def _narrower(new: list[Obj], old: list[Obj], at: Path) -> Errors:
    if not old:
        return
    if len(new) != len(old):
        yield at.invalid([_shown(term) for term in new] or None, _SAME_TERMS)
        return
    for position, (term, before) in enumerate(zip(new, old, strict=True)):
        if not all(_begins(term.get(name), before.get(name)) for name in _PARTS):
            yield at.index(position).invalid(_shown(term), _ONLY_ADDED)


def _begins(new: list[Obj] | None, old: list[Obj] | None) -> bool:
    existing = old or []
    return (new or [])[: len(existing)] == existing


def _shown(term: Obj) -> Obj:
    """Return a term as error texts quote it, under the names of Go's fields."""
    return {
        name[0].upper() + name[1:]: [
            as_go(requirement, "Key", "Operator", "Values") for requirement in term[name]
        ]
        if term.get(name) is not None
        else None
        for name in _PARTS
    }
