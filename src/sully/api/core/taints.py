"""Validation of the taints of nodes and the tolerations of pods.

The scheduler decides whether a toleration matches a taint.
"""

from typing import Any

from sully.api.core.checks import Errors, as_go, explained, label_key
from sully.machinery.fields import Path
from sully.machinery.formats.names import label_value_problems

Obj = dict[str, Any]

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_EMPTY_KEY = (
    'operator must be Exists when `key` is empty, which means "match all values and all keys"'
)


def _effect(effect: str, at: Path) -> Errors:
    if not effect:
        yield at.required()
    elif effect not in _EFFECTS:
        yield at.not_supported(effect, _EFFECTS)


def taints(values: list[Obj], at: Path) -> Errors:
    """Check the taints of a node."""
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(values):
        here = at.index(position)
        yield from label_key(taint.get("key", ""), here.child("key"))
        problems = label_value_problems(taint.get("value", ""))
        if problems:
            yield here.child("value").invalid(taint.get("value", ""), ";".join(problems))
        yield from _effect(taint.get("effect", ""), here.child("effect"))
        identity = (taint.get("key", ""), taint.get("effect", ""))
        if identity in seen:
            shown = as_go(taint, "Key", "Value", "Effect", "TimeAdded")
            shown["Value"] = shown["Value"] or ""
            error = here.duplicate(shown)
            yield explained(error, "taints must be unique by key and effect pair")
        seen.add(identity)


def tolerations(values: list[Obj], at: Path) -> Errors:
    """Check the tolerations of a pod."""
    for position, toleration in enumerate(values):
        yield from _toleration(toleration, at.index(position))


def _toleration(toleration: Obj, at: Path) -> Errors:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect = toleration.get("effect", "")
    if key:
        yield from label_key(key, at.child("key"))
    elif operator != "Exists":
        yield at.child("operator").invalid(operator, _EMPTY_KEY)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield at.child("effect").invalid(effect, text)
    yield from _operator(toleration, operator, at.child("operator"))
    if effect:
        yield from _effect(effect, at.child("effect"))


def _operator(toleration: Obj, operator: str, at: Path) -> Errors:
    value = toleration.get("value", "")
    if operator in ("Equal", ""):
        problems = label_value_problems(value)
        if problems:
            yield at.invalid(value, ";".join(problems))
    elif operator == "Exists":
        if value:
            yield at.invalid(value, "value must be empty when `operator` is 'Exists'")
    else:
        # Kubernetes knows these two only behind a gate, and lists them all the same.
        numeric = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
        yield at.not_supported(operator, ("Equal", "Exists", *numeric))
