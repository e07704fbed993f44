"""Which writes a policy or a binding matches: rules, and selectors of namespaces and objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from sully.api.admissionregistration.types import ANY, EQUIVALENT
from sully.machinery.selectors.labels import Selector, from_object

Obj = Mapping[str, Any]


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """A write as rules see it."""

    operation: str
    """CREATE, UPDATE, DELETE or CONNECT."""
    group: str
    version: str
    """That of the request."""
    versions: Sequence[str]
    """Those in which the resource is served."""
    resource: str
    subresource: str = ""
    namespaced: bool = False
    name: str = ""
    is_namespace: bool = False
    obj: Obj | None = None
    old: Obj | None = None
    namespace: Obj | None = None
    """The namespace of the object, if it has one."""


class Match(msgspec.Struct, frozen=True):
    """The compiled form of MatchResources."""

    rules: tuple[Obj, ...]
    excluded: tuple[Obj, ...]
    equivalent: bool
    namespaces: Selector
    objects: Selector

    def version(self, write: Write) -> str | None:
        """Return the version in which a write matches; None if it does not."""
        if not self._selects_namespace(write) or not self._selects_object(write):
            return None
        if self._matched(self.excluded, write) is not None:
            return None
        return self._matched(self.rules, write) if self.rules else write.version

    def _matched(self, rules: Iterable[Obj], write: Write) -> str | None:
        for rule in rules:
            if matches(rule, write, write.version):
                return write.version
        for rule in rules if self.equivalent else ():
            for version in write.versions:
                if matches(rule, write, version):
                    return version
        return None

    def _selects_namespace(self, write: Write) -> bool:
        if self.namespaces.everything:
            return True
        if write.is_namespace:
            namespace = write.obj if write.obj is not None else write.old
        elif not write.namespaced:
            return True
        else:
            namespace = write.namespace
        return namespace is not None and self.namespaces.matches(_labels(namespace))

    def _selects_object(self, write: Write) -> bool:
        if self.objects.everything:
            return True
        return any(
            state is not None and self.objects.matches(_labels(state))
            for state in (write.obj, write.old)
        )


def compile_match(match: Obj | None) -> Match:
    """Return the compiled form of MatchResources; without any, everything matches."""
    constraints = match or {}
    return Match(
        tuple(constraints.get("resourceRules", ())),
        tuple(constraints.get("excludeResourceRules", ())),
        constraints.get("matchPolicy", EQUIVALENT) == EQUIVALENT,
        from_object(constraints.get("namespaceSelector") or {}),
        from_object(constraints.get("objectSelector") or {}),
    )


def matches(rule: Obj, write: Write, version: str) -> bool:
    """Report whether a rule matches a write in a version."""
    names = rule.get("resourceNames")
    scope = rule.get("scope", ANY)
    return (
        _has(rule["operations"], write.operation)
        and _has(rule["apiGroups"], write.group)
        and _has(rule["apiVersions"], version)
        and (scope == ANY or (scope == "Namespaced") == write.namespaced)
        and any(_resource(one, write) for one in rule["resources"])
        and (not names or write.name in names)
    )


def _has(values: Sequence[str], value: str) -> bool:
    return ANY in values or value in values


def _resource(pattern: str, write: Write) -> bool:
    resource, slash, part = pattern.partition("/")
    if resource not in (ANY, write.resource):
        return False
    if not slash:
        return not write.subresource
    return part in (ANY, write.subresource)


def _labels(obj: Obj) -> Mapping[str, str]:
    labels: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return labels
