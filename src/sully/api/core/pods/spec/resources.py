"""The resources that containers request, and the devices of the pod's claims."""

from collections.abc import Callable, Collection
from typing import Any

from sully.api.core.amounts import (
    HUGE_PAGES,
    amount,
    container_resource_name,
    may_overcommit,
    resource_name,
)
from sully.api.core.checks import Errors, as_go, dns_label, dns_subdomain, explained
from sully.api.core.pods.aggregate import container_totals
from sully.api.core.pods.pod_level import is_pod_level
from sully.machinery.fields import Path
from sully.machinery.formats.quantity import QuantityError, parse_quantity

Obj = dict[str, Any]

_BOTH_SOURCES = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
_NO_SOURCE = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
_AMONG = "must be one of the names in pod.spec.resourceClaims"


def requirements(
    resources: Obj,
    claims: Collection[str],
    at: Path,
    check_name: Callable[[str, Path], Errors] = container_resource_name,
) -> Errors:
    """Check limits, requests and claims of one container, or of a pod."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for field, values in (("limits", limits), ("requests", requests)):
        for name, text in sorted(values.items()):
            here = at.child(field).key(name)
            yield from check_name(name, here)
            yield from amount(name, text, here)
            if field == "requests":
                yield from _within_limit(name, text, limits, at)
            if name.startswith(HUGE_PAGES) and not _is_multiple(name, text):
                yield here.invalid(text, f"{text} is not positive integer multiple of {name}")
    names = limits.keys() | requests.keys()
    if any(name.startswith(HUGE_PAGES) for name in names) and not names & {"cpu", "memory"}:
        yield at.forbidden("HugePages require cpu or memory")
    yield from _used_claims(resources.get("claims") or [], claims, at.child("claims"))


def _is_multiple(name: str, text: str) -> bool:
    """Report whether an amount is a number of huge pages of the size in their name."""
    try:
        size = parse_quantity(name.removeprefix(HUGE_PAGES))
    except QuantityError:
        return False
    return size.sign() > 0 and parse_quantity(text).nanos % size.nanos == 0


def pod_requirements(spec: Obj, claims: Collection[str], at: Path) -> Errors:
    """Check the resources of a pod as a whole, and that those of its containers fit."""
    resources, at = spec.get("resources"), at.child("resources")
    if resources is None:
        return
    if spec.get("os", {}).get("name") == "windows":
        yield at.forbidden("may not be set for a windows pod")
        return
    if "claims" in resources:
        yield at.child("claims").forbidden("claims may not be set for Resources at pod-level")
    yield from requirements(resources, claims, at, _pod_resource_name)
    yield from _room_for_containers(spec, "requests", at)
    yield from _room_for_containers(spec, "limits", at)
    yield from _limits_of_containers(spec, at)


def _pod_resource_name(name: str, at: Path) -> Errors:
    problems = [*resource_name(name, at)]
    yield from problems
    if not problems and not is_pod_level(name):
        yield at.not_supported(name, ("cpu", HUGE_PAGES, "memory"))


def _room_for_containers(spec: Obj, field: str, at: Path) -> Errors:
    """Check that a pod has as much as its containers; of limits, only those of huge pages."""
    amounts = spec["resources"].get(field) or {}
    for name, total in sorted(container_totals(spec, field).items()):
        counts = field == "requests" or name.startswith(HUGE_PAGES)
        if counts and name in amounts and total > parse_quantity(amounts[name]):
            text = f"must be greater than or equal to aggregate container {field} of {total}"
            yield at.child(field).key(name).invalid(amounts[name], text)


def _limits_of_containers(spec: Obj, at: Path) -> Errors:
    amounts = spec["resources"].get("limits") or {}
    for position, container in enumerate(spec.get("containers") or ()):
        for name, text in sorted((container["resources"].get("limits") or {}).items()):
            if name in amounts and parse_quantity(text) > parse_quantity(amounts[name]):
                here = at.child("containers").index(position).key(name).child("limits")
                yield here.invalid(
                    text, f"must be less than or equal to pod limits of {amounts[name]}"
                )


def _within_limit(name: str, text: str, limits: dict[str, str], at: Path) -> Errors:
    if name not in limits:
        if not may_overcommit(name):
            text = "Limit must be set for non overcommitable resources"
            yield at.child("limits").required(text)
        return
    request, limit = parse_quantity(text), parse_quantity(limits[name])
    if request != limit and not may_overcommit(name):
        why = f"must be equal to {name} limit of {limits[name]}"
        yield at.child("requests").invalid(text, why)
    elif request > limit:
        why = f"must be less than or equal to {name} limit of {limits[name]}"
        yield at.child("requests").invalid(text, why)


def _used_claims(used: list[Obj], claims: Collection[str], at: Path) -> Errors:
    seen: set[str] = set()
    for position, claim in enumerate(used):
        here = at.index(position)
        name, request = claim.get("name", ""), claim.get("request", "")
        if not name:
            yield here.required()
            continue
        # Naming a claim as a whole includes each of its requests.
        if name in seen:
            yield here.duplicate(name)
        elif not request:
            if any(one.startswith(f"{name}/") for one in seen):
                yield here.duplicate(name)
            seen.add(name)
        else:
            yield from dns_label(request, here.child("request"))
            if f"{name}/{request}" in seen:
                yield here.duplicate(f"{name}/{request}")
            seen.add(f"{name}/{request}")
        if name not in claims:
            why = f"{_AMONG}: {', '.join(sorted(claims))}" if claims else f"{_AMONG} which is empty"
            yield explained(here.not_found(name), why)


def claims(values: list[Obj], at: Path) -> Errors:
    """Check the claims of a pod."""
    seen: set[str] = set()
    for position, claim in enumerate(values):
        here = at.index(position)
        name = claim.get("name", "")
        if not name:
            yield here.child("name").required()
        elif name in seen:
            yield here.child("name").duplicate(name)
        else:
            yield from dns_label(name, here.child("name"))
            seen.add(name)
        yield from _claim_source(claim, here)


def _claim_source(claim: Obj, at: Path) -> Errors:
    sources = [n for n in ("resourceClaimName", "resourceClaimTemplateName") if n in claim]
    shown = as_go(claim, "Name", "ResourceClaimName", "ResourceClaimTemplateName")
    if len(sources) == 2:
        yield at.invalid(shown, _BOTH_SOURCES)
    elif not sources:
        yield at.invalid(shown, _NO_SOURCE)
    for name in sources:
        yield from dns_subdomain(claim[name], at.child(name))
