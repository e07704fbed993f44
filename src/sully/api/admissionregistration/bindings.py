"""ValidatingAdmissionPolicyBindings: defaults, validation, columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sully.api.admissionregistration.match_resources import (
    default_match_resources,
    validate_match_resources,
)
from sully.api.admissionregistration.types import ADMISSION, ALLOW, AUDIT, DENY, GROUP, WARN
from sully.api.core import generations
from sully.api.core.checks import label_selector, one_of
from sully.api.core.columns import AGE, NAME, plain
from sully.machinery.declared import declared
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import dns_subdomain_problems, path_segment_problems
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]
Errors = Iterator[FieldError]
SPEC = Path("spec")
_EXCLUSIVE = "name and selector are mutually exclusive"
_BOTH = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the"
    " API response and headers serves no purpose)"
)


class BindingStrategy(Strategy, frozen=True):
    """Writes to bindings."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Match everything."""
        default_match_resources(obj.setdefault("spec", {}).get("matchResources"))

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Set the generation."""
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Count the change."""
        generations.follow(obj, old, bump=generations.spec_changed(obj, old))

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check the names of policy and parameters, and what happens on failures."""
        spec = obj["spec"]
        policy, at = spec.get("policyName", ""), SPEC.child("policyName")
        if not policy:
            yield from declared([at.required()])
        else:
            yield from (at.invalid(policy, text) for text in dns_subdomain_problems(policy))
        if "paramRef" in spec:
            yield from _param_ref(spec["paramRef"], SPEC.child("paramRef"))
        yield from validate_match_resources(
            spec.get("matchResources"), SPEC.child("matchResources")
        )
        yield from _actions(spec.get("validationActions", []), SPEC.child("validationActions"))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check the new state like a new binding."""
        return self.validate_create(obj, ctx)


def _param_ref(ref: Obj, at: Path) -> Errors:
    name, selector = ref.get("name", ""), ref.get("selector")
    if name:
        yield from (at.child("name").invalid(name, text) for text in path_segment_problems(name))
        if selector is not None:
            yield at.child("name").forbidden(_EXCLUSIVE)
    if selector is not None:
        yield from label_selector(selector, at.child("selector"))
        if name:
            yield at.child("selector").forbidden(_EXCLUSIVE)
    elif not name:
        yield at.required("one of name or selector must be specified")
    action, place = ref.get("parameterNotFoundAction", ""), at.child("parameterNotFoundAction")
    if not action:
        yield place.required()
    elif action not in (DENY, ALLOW):
        yield place.not_supported(action, (DENY, ALLOW))


def _actions(actions: list[str], at: Path) -> Errors:
    seen: set[str] = set()
    for index, action in enumerate(actions):
        yield from one_of(action, (DENY, WARN, AUDIT), at.index(index))
        if action in seen:
            yield at.index(index).duplicate(action)
        seen.add(action)
    if {DENY, WARN} <= seen:
        yield at.invalid(actions, _BOTH)
    if not actions:
        yield from declared([at.required()])


def _shown_params(obj: Obj) -> str:
    ref = obj["spec"].get("paramRef")
    if ref is None:
        return "<unset>"
    if not ref.get("name"):
        return _shown_selector(ref.get("selector") or {})
    return f"{ref.get('namespace') or '*'}/{ref['name']}"


def _shown_selector(selector: Obj) -> str:
    """Return a selector as Kubernetes prints the type of its source."""
    labels = sorted((selector.get("matchLabels") or {}).items())
    expressions = [
        f"LabelSelectorRequirement{{Key:{one['key']},Operator:{one['operator']},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    ]
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{"
        f"{''.join(f'{key}: {value},' for key, value in labels)}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{''.join(expressions)}}},}}"
    )


BINDINGS = ResourceType(
    group=GROUP,
    kind="ValidatingAdmissionPolicyBinding",
    plural="validatingadmissionpolicybindings",
    singular="validatingadmissionpolicybinding",
    namespaced=False,
    versions=(Version("v1", ADMISSION, unconditional_update=False),),
    strategy=BindingStrategy(),
    categories=("api-extensions",),
    columns=(
        NAME,
        Column(
            "PolicyName",
            plain(lambda obj: obj["spec"].get("policyName", "")),
            description="Policy that the binding puts into effect.",
        ),
        Column("ParamRef", plain(_shown_params), description="Parameters of the policy."),
        AGE,
    ),
)
