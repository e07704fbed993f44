"""Validation of the requests of a claim or a template."""

from collections.abc import Iterable, Sequence
from typing import Any

from sully.api.resource.checks import (
    Errors,
    Options,
    only_declared,
    shown,
    unique,
    unique_keys,
    validate_declared_items,
)
from sully.api.resource.selectors import (
    COST_MAX,
    derived_cost,
    validate_expression,
    validate_selectors,
)
from sully.api.resource.types import (
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from sully.api.resource.validation.classes import validate_configuration
from sully.api.resource.validation.names import (
    validate_class_name,
    validate_dns_label,
    validate_fully_qualified_name,
    validate_long_name,
    validate_request_reference,
)
from sully.api.resource.validation.taints import (
    validate_keys_of_tolerations,
    validate_tolerations,
)
from sully.machinery.declared import declared
from sully.machinery.fields import Path

REQUESTS_MAX = 32
SUBREQUESTS_MAX = 8
CONSTRAINTS_MAX = 32
CONFIG_MAX = 32
DERIVED_MAX = 32
_MODES = ("All", "ExactCount")
_V1BETA1_FIELDS = (
    *("name", "deviceClassName", "selectors", "allocationMode", "count", "adminAccess"),
    *("firstAvailable", "tolerations", "capacity", "derivedAttributes"),
)
"""Fields of a request in v1beta1, in their order in Go."""

Names = dict[str, frozenset[str]]


def request_names(claim: DeviceClaim) -> Names:
    """Return the names of all requests, each with those of its alternatives."""
    return {
        request.name: frozenset(sub.name for sub in request.first_available)
        for request in claim.requests or ()
    }


def validate_claim_spec(spec: ResourceClaimSpec, at: Path, rules: Options) -> Errors:
    """Yield everything wrong with a claim's spec."""
    claim, at = spec.devices, at.child("devices")
    names = request_names(claim)
    requests = claim.requests or ()
    if len(requests) <= REQUESTS_MAX:
        show = _flat if rules.version == "v1beta1" else shown
        yield from declared(unique(requests, lambda one: one.name, at.child("requests"), show))
    yield from validate_declared_items(
        requests,
        REQUESTS_MAX,
        lambda request, at: _request(request, at, rules, claim.constraints),
        at.child("requests"),
    )
    yield from validate_declared_items(
        claim.constraints,
        CONSTRAINTS_MAX,
        lambda constraint, at: _constraint(constraint, at, names, rules),
        at.child("constraints"),
    )
    yield from validate_declared_items(
        claim.config,
        CONFIG_MAX,
        lambda config, at: _config(config, at, names, rules),
        at.child("config"),
    )
    if sum(_derived_costs(claim, rules)) > COST_MAX:
        yield at.forbidden(
            "too complex, total cost of derived attribute CEL expressions in the claim exceeds"
            " cost limit"
        )


def _flat(request: DeviceRequest) -> dict[str, Any]:
    """Return a request as v1beta1 has it, with the fields of `exactly` in it."""
    fields = shown(request)
    flat = {"deviceClassName": "", **fields, **fields.pop("exactly", {})}
    return {name: flat[name] for name in _V1BETA1_FIELDS if name in flat}


def _derived_costs(claim: DeviceClaim, rules: Options) -> Iterable[int]:
    for request in claim.requests or ():
        exact = (request.exactly,) if request.exactly is not None else ()
        for part in (*exact, *request.first_available):
            for attribute in part.derived_attributes:
                yield derived_cost(attribute.expression, rules)


def _request(
    request: DeviceRequest, at: Path, rules: Options, constraints: Sequence[DeviceConstraint]
) -> Errors:
    yield from validate_dns_label(request.name, at.child("name"))
    text = "exactly one of `exactly` or `firstAvailable` is required"
    exactly = _exactly(request, at.child("exactly"), rules, constraints)
    alternatives = _alternatives(request, at.child("firstAvailable"), rules, constraints)
    if request.exactly is not None and request.first_available:
        yield at.invalid(None, f"{text}, but multiple fields are set")
        # What the schema declares holds for both.
        yield from only_declared(exactly)
        yield from only_declared(alternatives)
    elif request.exactly is not None:
        yield from exactly
    elif request.first_available:
        yield from alternatives
    else:
        yield at.required(text)


def _exactly(
    request: DeviceRequest, at: Path, rules: Options, constraints: Sequence[DeviceConstraint]
) -> Errors:
    if (exactly := request.exactly) is None:
        return
    yield from validate_class_name(exactly.device_class_name, at.child("deviceClassName"))
    yield from _alternative(exactly, request.name, at, rules, constraints)


def _alternatives(
    request: DeviceRequest, at: Path, rules: Options, constraints: Sequence[DeviceConstraint]
) -> Errors:
    def check(sub: DeviceSubRequest, at: Path) -> Errors:
        yield from validate_dns_label(sub.name, at.child("name"))
        yield from declared(validate_long_name(sub.device_class_name, at.child("deviceClassName")))
        name = f"{request.name}/{sub.name}"
        yield from _alternative(sub, name, at, rules, constraints)

    if len(request.first_available) <= SUBREQUESTS_MAX:
        yield from declared(unique(request.first_available, lambda one: one.name, at))
    yield from validate_declared_items(request.first_available, SUBREQUESTS_MAX, check, at)


def _alternative(
    request: ExactDeviceRequest | DeviceSubRequest,
    name: str,
    at: Path,
    rules: Options,
    constraints: Sequence[DeviceConstraint],
) -> Errors:
    yield from validate_selectors(request.selectors, at.child("selectors"), rules)
    yield from _derived(request, name, at, rules, constraints)
    yield from _amount(request.allocation_mode, request.count, at)
    tolerations = at.child("tolerations")
    yield from validate_tolerations(request.tolerations, tolerations, rules)
    if not rules.stored:
        yield from validate_keys_of_tolerations(request.tolerations, tolerations, rules)


def _amount(mode: str, count: int, at: Path) -> Errors:
    if not mode:
        yield at.child("allocationMode").not_supported(mode, _MODES)
    elif mode not in _MODES:
        yield from declared([at.child("allocationMode").not_supported(mode, _MODES)])
    elif mode == "All" and count != 0:
        text = "must not be specified when allocationMode is 'All'"
        yield at.child("count").invalid(count, text)
    elif mode == "ExactCount" and count <= 0:
        yield at.child("count").invalid(count, "must be greater than zero")


def _derived(
    request: ExactDeviceRequest | DeviceSubRequest,
    name: str,
    at: Path,
    rules: Options,
    constraints: Sequence[DeviceConstraint],
) -> Errors:
    used = set(_constrained(name, constraints))

    def check(attribute: DeviceDerivedAttribute, at: Path) -> Errors:
        yield from declared(_derived_format(attribute, at, rules))
        if attribute.name and attribute.name not in used:
            yield at.child("name").invalid(
                attribute.name,
                "must be referenced by at least one matchAttribute or distinctAttribute constraint"
                " targeting this request",
            )
        if attribute.expression:
            expression_at = at.child("expression")
            yield from validate_expression(attribute.expression, expression_at, rules, derived=True)

    at = at.child("derivedAttributes")
    yield from validate_declared_items(request.derived_attributes, DERIVED_MAX, check, at)
    yield from unique_keys(request.derived_attributes, lambda one: one.name, at)


def _derived_format(attribute: DeviceDerivedAttribute, at: Path, rules: Options) -> Errors:
    if not attribute.name:
        yield at.child("name").required()
    else:
        yield from validate_fully_qualified_name(attribute.name, at.child("name"), rules.compat)
    if not attribute.expression:
        yield at.child("expression").required()


def _constrained(name: str, constraints: Sequence[DeviceConstraint]) -> Iterable[str]:
    """Yield the attributes by which constraints compare the devices of a request."""
    parent = name.partition("/")[0]
    for constraint in constraints:
        attribute = constraint.match_attribute or constraint.distinct_attribute
        if attribute and (not constraint.requests or {name, parent} & set(constraint.requests)):
            yield attribute


def _constraint(constraint: DeviceConstraint, at: Path, names: Names, rules: Options) -> Errors:
    yield from validate_references(constraint.requests, at.child("requests"), names)
    # If both are set the first one wins; Kubernetes does not refuse it.
    for field, name in (
        ("matchAttribute", constraint.match_attribute),
        ("distinctAttribute", constraint.distinct_attribute),
    ):
        if name is not None:
            yield from declared(validate_fully_qualified_name(name, at.child(field), rules.compat))
    if constraint.match_attribute is not None or constraint.distinct_attribute is not None:
        return
    if rules.gates["DRAConsumableCapacity"]:
        # The odd wording is Kubernetes', and clients may look for it.
        yield at.required(
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple'
            " fields are set"
        )
    else:
        yield at.child("matchAttribute").required()


def _config(config: DeviceClaimConfiguration, at: Path, names: Names, rules: Options) -> Errors:
    yield from validate_references(config.requests, at.child("requests"), names)
    yield from validate_configuration(config.opaque, at, rules)


def validate_references(requests: tuple[str, ...], at: Path, names: Names) -> Errors:
    """Check a list of references to requests."""
    yield from validate_declared_items(
        requests, REQUESTS_MAX, lambda name, at: validate_request_reference(name, at, names), at
    )
    if len(requests) <= REQUESTS_MAX:
        yield from declared(unique(requests, str, at))
