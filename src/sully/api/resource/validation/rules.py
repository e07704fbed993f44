"""Taint rules and slice patches: which devices they select and what they change."""

from sully.api.core.checks import driver_name
from sully.api.resource.checks import Errors, Options, shortened, shown, validate_items
from sully.api.resource.selectors import validate_selectors
from sully.api.resource.types import (
    DevicePatch,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    NullableDeviceAttribute,
)
from sully.api.resource.validation.devices import (
    validate_attribute,
    validate_capacities,
    validate_union,
)
from sully.api.resource.validation.names import (
    QUALIFIED_MAX,
    validate_dns_label,
    validate_fully_qualified_name,
    validate_pool_name,
    validate_subdomain,
)
from sully.api.resource.validation.taints import TAINTS_MAX, validate_taint
from sully.machinery.declared import declared
from sully.machinery.fields import Path

PATCH_VALUES_MAX = 32
_REFUSED = (
    "needs the feature gate SullyRuleSelectors; without it the rule would select more devices"
)


def validate_rule_spec(
    spec: DeviceTaintRuleSpec, old: DeviceTaintRuleSpec | None, at: Path, rules: Options
) -> Errors:
    """Yield everything wrong with a rule."""
    before = old.device_selector if old is not None else None
    if spec.device_selector is not None:
        selector_at = at.child("deviceSelector")
        yield from validate_device_selector(spec.device_selector, before, selector_at, rules)
        yield from refuse_criteria(spec.device_selector, before, selector_at, rules)
    taint = old.taint if old is not None else None
    yield from validate_taint(spec.taint, at.child("taint"), rules, taint)


def validate_device_selector(
    selector: DeviceTaintSelector, old: DeviceTaintSelector | None, at: Path, rules: Options
) -> Errors:
    """Check the criteria of a rule or patch; unchanged expressions are not compiled again."""
    if selector.driver is not None:
        yield from driver_name(selector.driver, at.child("driver"))
    if selector.pool is not None:
        yield from validate_pool_name(selector.pool, at.child("pool"))
    if selector.device is not None:
        yield from validate_dns_label(selector.device, at.child("device"))
    if selector.device_class_name is not None:
        yield from validate_subdomain(selector.device_class_name, at.child("deviceClassName"))
    stored = old is not None and old.selectors == selector.selectors
    yield from validate_selectors(
        selector.selectors, at.child("selectors"), rules.as_stored(stored)
    )


def refuse_criteria(
    selector: DeviceTaintSelector, old: DeviceTaintSelector | None, at: Path, rules: Options
) -> Errors:
    """Refuse criteria that are switched off, instead of dropping them.

    A rule that lost its criteria would select every device. What was stored while the switch was
    on may stay.
    """
    if rules.gates["SullyRuleSelectors"]:
        return
    if old is not None and (old.selectors or old.device_class_name is not None):
        return
    if selector.device_class_name is not None:
        yield at.child("deviceClassName").forbidden(_REFUSED)
    if selector.selectors:
        yield at.child("selectors").forbidden(_REFUSED)


def validate_patch(patch: DevicePatch, old: DevicePatch | None, at: Path, rules: Options) -> Errors:
    """Yield everything wrong with what a ResourceSlicePatch changes of devices."""
    if patch.filter is not None:
        before = old.filter if old is not None else None
        yield from validate_device_selector(patch.filter, before, at.child("filter"), rules)
    values = len(patch.attributes) + len(patch.capacity)
    if values > PATCH_VALUES_MAX:
        text = f"the total number of attributes and capacities must not exceed {PATCH_VALUES_MAX}"
        yield at.invalid(values, text)
    yield from _patched_names(patch, at, rules)
    # Requests are only rounded on devices that several claims may share; whether a patched
    # device is one, the patch cannot know.
    yield from validate_capacities(patch.capacity, at.child("capacity"), rules, shareable=True)
    if old is None or old.taints != patch.taints:
        yield from validate_items(
            patch.taints, TAINTS_MAX, lambda t, at: validate_taint(t, at, rules), at.child("taints")
        )


def _patched_names(patch: DevicePatch, at: Path, rules: Options) -> Errors:
    for name, attribute in patch.attributes.items():
        names = at.child("attributes")
        yield from validate_fully_qualified_name(name, names, rules.compat)
        yield from _patched_attribute(attribute, names.key(shortened(name, QUALIFIED_MAX)))
    for name in patch.capacity:
        if "/" not in name:
            text = "a fully qualified name must be a domain and a name separated by a slash"
            yield at.child("capacity").invalid(name, text)


def _patched_attribute(attribute: NullableDeviceAttribute, at: Path) -> Errors:
    if attribute.null is None:
        yield from validate_attribute(attribute, at)
        return
    members = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions", "null")
    yield from declared(validate_union(shown(attribute), members, at))
