"""The resources that containers request, and the devices of the pod's claims."""

from collections.abc import Collection
from typing import Any

from sully.api.core.amounts import (
    HUGE_PAGES,
    amount,
    container_resource_name,
    may_overcommit,
)
from sully.api.core.checks import Errors, as_go, dns_label, dns_subdomain, explained
from sully.machinery.fields import Path
from sully.machinery.quantity import parse_quantity

Obj = dict[str, Any]

_BOTH_SOURCES = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
_NO_SOURCE = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
_AMONG = "must be one of the names in pod.spec.resourceClaims"


def requirements(resources: Obj, claims: Collection[str], at: Path) -> Errors:
    """Check limits, requests and claims of one container."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for field, values in (("limits", limits), ("requests", requests)):
        for name, text in sorted(values.items()):
            here = at.child(field).key(name)
            yield from container_resource_name(name, here)
            yield from amount(name, text, here)
            if field == "requests":
                yield from _within_limit(name, text, limits, at)
    names = limits.keys() | requests.keys()
    if any(name.startswith(HUGE_PAGES) for name in names) and not names & {"cpu", "memory"}:
        yield at.forbidden("HugePages require cpu or memory")
    yield from _used_claims(resources.get("claims") or [], claims, at.child("claims"))


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
        if request:
            yield from dns_label(request, here.child("request"))
        if not name:
            yield here.required()
            continue
        whole = f"{name}/{request}" if request else name
        # Naming a claim as a whole includes each of its requests.
        overlaps = name in seen or (not request and any(s.startswith(f"{name}/") for s in seen))
        if overlaps:
            yield here.duplicate(name)
        elif whole in seen:
            yield here.duplicate(whole)
        seen.add(whole)
        if name not in claims:
            why = f"{_AMONG}: {', '.join(sorted(claims))}" if claims else f"{_AMONG} which is empty"
            yield explained(here.not_found(name), why)


def claims(values: list[Obj], pod_name: str | None, at: Path) -> Errors:
    """Check the claims of a pod; without a name (in templates) generated claims are not named."""
    seen: set[str] = set()
    for position, claim in enumerate(values):
        here = at.index(position)
        name = claim.get("name", "")
        if not name:
            yield here.child("name").required()
        elif name in seen:
            yield here.child("name").duplicate(name)
        else:
            yield from _claim_name(claim, pod_name, here.child("name"))
            seen.add(name)
        yield from _claim_source(claim, here)


def _claim_name(claim: Obj, pod_name: str | None, at: Path) -> Errors:
    problems = [*dns_label(claim["name"], at)]
    yield from problems
    if not problems and pod_name is not None and "resourceClaimTemplateName" in claim:
        final = f"{pod_name}-{claim['name']}"
        for error in dns_subdomain(final, at):
            text = error.body.removeprefix("Invalid value: ").partition(": ")[2]
            yield at.invalid(final, f"final ResourceClaim name: {text}")


def _claim_source(claim: Obj, at: Path) -> Errors:
    given = [n for n in ("resourceClaimName", "resourceClaimTemplateName") if n in claim]
    shown = as_go(claim, "Name", "ResourceClaimName", "ResourceClaimTemplateName")
    if len(given) == 2:
        yield at.invalid(shown, _BOTH_SOURCES)
    elif not given:
        yield at.invalid(shown, _NO_SOURCE)
    for name in given:
        yield from dns_subdomain(claim[name], at.child(name))
