"""Which writes a policy or a binding is about: defaults and validation of MatchResources."""

from collections.abc import Iterator, Sequence
from typing import Any

from sully.api.admissionregistration.types import ANY, EQUIVALENT, EXACT
from sully.api.core.checks import label_selector, one_of
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import path_segment_problems

Obj = dict[str, Any]
_OPERATIONS = (ANY, "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = (ANY, "Cluster", "Namespaced")


def default_match_resources(match: Obj | None) -> None:
    """Fill in what matches everything."""
    if match is None:
        return
    match.setdefault("matchPolicy", EQUIVALENT)
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for rule in (*match.get("resourceRules", ()), *match.get("excludeResourceRules", ())):
        rule.setdefault("scope", ANY)


def validate_match_resources(match: Obj | None, at: Path) -> Iterator[FieldError]:
    """Check selectors and rules."""
    if match is None:
        return
    yield from one_of(match["matchPolicy"], (EQUIVALENT, EXACT), at.child("matchPolicy"))
    for name in ("namespaceSelector", "objectSelector"):
        yield from label_selector(match[name], at.child(name))
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(name, ())):
            yield from _rule(rule, at.child(name).index(index))


def _rule(rule: Obj, at: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, name in enumerate(rule.get("resourceNames", ())):
        place = at.child("resourceNames").index(index)
        yield from (place.invalid(name, problem) for problem in path_segment_problems(name))
        if name in seen:
            yield place.duplicate(name)
        seen.add(name)
    operations = rule.get("operations", [])
    yield from _alone(operations, at.child("operations"), "operations")
    for index, operation in enumerate(operations):
        yield from one_of(operation, _OPERATIONS, at.child("operations").index(index))
    yield from _alone(rule.get("apiGroups", []), at.child("apiGroups"), "API groups")
    versions = rule.get("apiVersions", [])
    yield from _alone(versions, at.child("apiVersions"), "API versions")
    for index, version in enumerate(versions):
        if not version:
            yield at.child("apiVersions").index(index).required()
    yield from _resources(rule.get("resources", []), at.child("resources"))
    yield from one_of(rule["scope"], _SCOPES, at.child("scope"))


def _alone(values: list[str], at: Path, what: str) -> Iterator[FieldError]:
    if not values:
        yield at.required()
    elif len(values) > 1 and ANY in values:
        yield at.invalid(values, f"if '*' is present, must not specify other {what}")


def _resources(resources: Sequence[str], at: Path) -> Iterator[FieldError]:
    if not resources:
        yield at.required()
    whole: set[str] = set()
    everywhere: set[str] = set()
    plain = False
    for index, resource in enumerate(resources):
        if not resource:
            yield at.index(index).required()
            continue
        name, slash, part = resource.partition("/")
        if not slash:
            plain = resource != ANY
            continue
        if name in whole:
            text = f"if '{name}/*' is present, must not specify {resource}"
            yield at.index(index).invalid(resource, text)
        if part in everywhere:
            text = f"if '*/{part}' is present, must not specify {resource}"
            yield at.index(index).invalid(resource, text)
        whole |= {name} if part == ANY else set()
        everywhere |= {part} if name == ANY else set()
    if len(resources) > 1 and "*/*" in resources:
        yield at.invalid(resources, "if '*/*' is present, must not specify other resources")
    if ANY in resources and plain:
        text = "if '*' is present, must not specify other resources without subresources"
        yield at.invalid(resources, text)
