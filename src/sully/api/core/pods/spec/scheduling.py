"""Where a pod may be scheduled: node selectors, affinity, topology spread, gates."""

from typing import Any

from sully.api.core.checks import (
    NOT_AN_OPERATOR,
    Errors,
    dns_label,
    dns_subdomain,
    formatted,
    label_key,
    label_selector,
    one_of,
    set_operator,
)
from sully.machinery.fields import Path
from sully.machinery.formats.names import label_value_problems

Obj = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_ONE_NAME = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
_SINGLE = "must be specified single value when `operator` is 'Lt' or 'Gt'"
_POSITIVE = "must be greater than zero"


def affinity(value: Obj | None, at: Path) -> Errors:
    """Check node affinity, pod affinity and pod anti-affinity."""
    if value is None:
        return
    if "nodeAffinity" in value:
        yield from _node_affinity(value["nodeAffinity"], at.child("nodeAffinity"))
    for name in ("podAffinity", "podAntiAffinity"):
        if name in value:
            yield from _pod_affinity(value[name], at.child(name))


def _node_affinity(value: Obj, at: Path) -> Errors:
    if REQUIRED in value:
        yield from node_selector(value[REQUIRED], at.child(REQUIRED))
    for position, preferred in enumerate(value.get(PREFERRED) or ()):
        here = at.child(PREFERRED).index(position)
        yield from _weight(preferred, here)
        # No node need have the values.
        yield from _term(preferred["preference"], here.child("preference"), checks_values=False)


def node_selector(selector: Obj, at: Path) -> Errors:
    """Check the terms of a node selector; there must be one."""
    at = at.child("nodeSelectorTerms")
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        yield at.required("must have at least one node selector term")
    for position, term in enumerate(terms):
        yield from _term(term, at.index(position))


def _term(term: Obj, at: Path, *, checks_values: bool = True) -> Errors:
    for position, expression in enumerate(term.get("matchExpressions") or ()):
        here = at.child("matchExpressions").index(position)
        yield from set_operator(expression, here, _order)
        yield from label_key(expression.get("key", ""), here.child("key"))
        for index, value in enumerate(expression.get("values") or () if checks_values else ()):
            yield from formatted(value, label_value_problems, here.child("values").index(index))
    for position, field in enumerate(term.get("matchFields") or ()):
        yield from _field(field, at.child("matchFields").index(position))


def _order(expression: Obj, at: Path) -> Errors:
    if expression.get("operator") not in ("Gt", "Lt"):
        yield at.child("operator").invalid(expression.get("operator", ""), NOT_AN_OPERATOR)
    elif len(expression.get("values") or ()) != 1:
        yield at.child("values").required(_SINGLE)


def _field(field: Obj, at: Path) -> Errors:
    values = field.get("values") or []
    if field.get("operator") not in ("In", "NotIn"):
        yield at.child("operator").invalid(field.get("operator", ""), NOT_AN_OPERATOR)
    elif len(values) != 1:
        yield at.child("values").required(_ONE_NAME)
    if field.get("key") != "metadata.name":
        yield at.child("key").invalid(field.get("key", ""), "not a valid field selector key")
        return
    for position, value in enumerate(values):
        yield from dns_subdomain(value, at.child("values").index(position))


def _weight(preferred: Obj, at: Path) -> Errors:
    if not 1 <= preferred.get("weight", 0) <= 100:
        yield at.child("weight").invalid(preferred.get("weight", 0), "must be in the range 1-100")


def _pod_affinity(value: Obj, at: Path) -> Errors:
    for position, term in enumerate(value.get(REQUIRED) or ()):
        yield from _pod_term(term, at.child(REQUIRED).index(position))
    for position, preferred in enumerate(value.get(PREFERRED) or ()):
        here = at.child(PREFERRED).index(position)
        yield from _weight(preferred, here)
        yield from _pod_term(preferred["podAffinityTerm"], here.child("podAffinityTerm"))


def _pod_term(term: Obj, at: Path) -> Errors:
    yield from label_selector(term.get("labelSelector"), at.child("labelSelector"))
    yield from label_selector(term.get("namespaceSelector"), at.child("namespaceSelector"))
    for name in term.get("namespaces") or ():
        yield from dns_label(name, at.child("namespace"))
    yield from _label_keys(term, at)
    if not term.get("topologyKey"):
        yield at.child("topologyKey").required("can not be empty")
    yield from label_key(term.get("topologyKey", ""), at.child("topologyKey"))


def _label_keys(holder: Obj, at: Path) -> Errors:
    """Check the keys of labels whose values pods compare with those of others."""
    match_keys, mismatch_keys = (
        holder.get(n) or [] for n in ("matchLabelKeys", "mismatchLabelKeys")
    )
    selector = holder.get("labelSelector")
    for name, keys in (("matchLabelKeys", match_keys), ("mismatchLabelKeys", mismatch_keys)):
        if keys and selector is None:
            text = "must not be specified when labelSelector is not set"
            yield at.child(name).forbidden(text)
        elif selector is not None:
            for position, key in enumerate(keys):
                yield from label_key(key, at.child(name).index(position))
    yield from _selected_keys(match_keys, selector or {}, at)
    for position, key in enumerate(match_keys):
        if key in mismatch_keys:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield at.child("matchLabelKeys").index(position).invalid(key, text)


def _selected_keys(keys: list[str], selector: Obj, at: Path) -> Errors:
    # The selector already has an expression for each key, so its own is the second one.
    seen = set(selector.get("matchLabels") or {})
    for expression in selector.get("matchExpressions") or ():
        key = expression.get("key", "")
        if key in keys and key in seen:
            # Kubernetes leaves the field out of this path.
            last = len(keys) - 1 - keys[::-1].index(key)
            text = "exists in both matchLabelKeys and labelSelector"
            yield at.index(last).invalid(key, text)
        seen.add(key)


def spread(constraints: list[Obj], at: Path) -> Errors:
    """Check how pods should be spread over the cluster."""
    pairs = [
        f"{{{one.get('topologyKey', '')}, {one.get('whenUnsatisfiable', '')}}}"
        for one in constraints
    ]
    for position, constraint in enumerate(constraints):
        here = at.index(position)
        yield from _constraint(constraint, here)
        if pairs[position] in pairs[position + 1 :]:
            yield here.child("{topologyKey, whenUnsatisfiable}").duplicate(pairs[position])
        yield from _domains(constraint, here)


def _constraint(constraint: Obj, at: Path) -> Errors:
    if constraint.get("maxSkew", 0) <= 0:
        yield at.child("maxSkew").invalid(constraint.get("maxSkew", 0), _POSITIVE)
    if not constraint.get("topologyKey"):
        yield at.child("topologyKey").required("can not be empty")
    action = constraint.get("whenUnsatisfiable", "")
    actions = ("DoNotSchedule", "ScheduleAnyway")
    yield from one_of(action, actions, at.child("whenUnsatisfiable"))


def _domains(constraint: Obj, at: Path) -> Errors:
    action = constraint.get("whenUnsatisfiable", "")
    least = constraint.get("minDomains")
    if least is not None and least <= 0:
        yield at.child("minDomains").invalid(least, _POSITIVE)
    if least is not None and action != "DoNotSchedule":
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield at.child("minDomains").invalid(least, text)
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if name in constraint:
            yield from one_of(constraint[name], ("Honor", "Ignore"), at.child(name))
    yield from _label_keys(constraint, at)
    yield from label_selector(constraint.get("labelSelector"), at.child("labelSelector"))


def gates(values: list[Obj], at: Path) -> Errors:
    """Check the scheduling gates."""
    seen: set[str] = set()
    for position, gate in enumerate(values):
        name = gate.get("name", "")
        yield from label_key(name, at.index(position))
        if name in seen:
            yield at.index(position).duplicate(name)
        seen.add(name)
