"""A request as values: the parsed path and options, independent of the transport.

`parse_path` knows the URL layout of the API; the verbs (api.py) get a `Request` from the HTTP
layer or from the in-process transport alike.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from sully.machinery.errors import BadRequest, NotFound, not_found, route_not_found
from sully.machinery.formats.names import path_segment_problems
from sully.machinery.scheme import Scheme
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import ResourceType


class User(msgspec.Struct, frozen=True):
    """A user and its groups."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class ResourceRef(msgspec.Struct, frozen=True):
    """A resource or object by its names, before it is looked up."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Target(msgspec.Struct, frozen=True):
    """What a path addresses: a resource, an object or a subresource."""

    resource: ResourceType
    version: str
    namespace: str = ""  # empty: cluster-scoped, or all namespaces
    name: str = ""
    subresource: str = ""
    watch: bool = False  # the old /watch/ paths

    @property
    def group_version(self) -> str:
        """Return the `apiVersion` of objects of this target."""
        group = self.resource.group
        return f"{group}/{self.version}" if group else self.version

    @property
    def names(self) -> tuple[str, str, str]:
        """Return resource, group and name, for errors."""
        return self.resource.plural, self.resource.group, self.name


class SentObject(msgspec.Struct):
    """The object that a write sends, before it was decoded: a body, or what a patch made."""

    value: Any = None
    version: str = ""


class Request(msgspec.Struct, frozen=True):
    """One call of a verb."""

    user: User
    target: Target
    options: Mapping[str, str] = msgspec.field(default_factory=dict)
    user_agent: str = ""
    # What admission adds to the audit event of the request.
    audit_annotations: dict[str, str] = msgspec.field(default_factory=dict)
    verb: str = "update"  # of a write to an existing object: update or patch
    sent_empty: tuple[tuple[str, ...], ...] = ()  # see WriteContext
    sent: SentObject = msgspec.field(default_factory=SentObject)

    def option(self, name: str) -> str:
        """Return an option, or an empty string."""
        return self.options.get(name, "")

    def flag(self, name: str) -> bool:
        """Read a boolean option as the API does: anything but false and 0 is true."""
        value = self.options.get(name)
        return value is not None and value.lower() not in ("false", "0")

    @property
    def manager(self) -> str:
        """Return the field manager: as requested, or the program's name in the user agent."""
        return self.option("fieldManager") or (self.user_agent.split("/", 1)[0][:128] or "unknown")


_DURATION_PART = re.compile(r"([0-9]*\.?[0-9]*)([^.0-9]*)")
_DURATION_UNITS = frozenset(("ns", "us", "\u00b5s", "\u03bcs", "ms", "s", "m", "h"))


def check_timeout(text: str) -> None:
    """Reject an invalid `timeout`; only its form matters, for no request takes long."""
    rest = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    problem = f"invalid duration {quote(text)}" if text and not rest else ""
    while rest and rest != "0" and not problem:
        part = _DURATION_PART.match(rest)
        number, unit = part.groups() if part else ("", "")
        rest = rest[len(number) + len(unit) :]
        if not number.strip("."):
            problem = f"invalid duration {quote(text)}"
        elif not unit:
            problem = f"missing unit in duration {quote(text)}"
        elif unit not in _DURATION_UNITS:
            problem = f"unknown unit {quote(unit)} in duration {quote(text)}"
    if problem:
        raise BadRequest(f"invalid timeout specified in the request URL - time: {problem}")


def split_path(path: str) -> tuple[str, str, list[str]] | None:
    """Split an API path into group, version and the rest; None for other paths."""
    parts = path.split("/")[1:]
    while parts and parts[-1] == "":
        parts.pop()
    if len(parts) >= 2 and parts[0] == "api":
        return "", parts[1], parts[2:]
    if len(parts) >= 3 and parts[0] == "apis":
        return parts[1], parts[2], parts[3:]
    return None


def parse_path(scheme: Scheme, path: str) -> Target | None:
    """Return the target of a path; None if its group is not served, or for a version's own page."""
    split = split_path(path)
    if split is None or not scheme.has_group(split[0]):
        return None
    group, version, rest = split
    if not scheme.serves(group, version):
        raise route_not_found()
    if not rest:
        return None
    watch = rest[0] == "watch"
    if watch:
        rest = rest[1:]
    namespace = ""
    # `namespaces` is a resource of its own, and the scope of others.
    if len(rest) >= 3 and rest[0] == "namespaces" and _has(scheme, group, version, rest[2]):
        namespace, rest = _segment(rest[1], "Namespace"), rest[2:]
    return _target(scheme, (group, version), namespace, rest, watch=watch)


def _has(scheme: Scheme, group: str, version: str, plural: str) -> bool:
    resource = scheme.find(group, version, plural)
    return group != "" or (resource is not None and resource.namespaced)


def _target(
    scheme: Scheme, group_version: tuple[str, str], namespace: str, rest: list[str], *, watch: bool
) -> Target:
    resource = scheme.find(*group_version, rest[0]) if rest else None
    if resource is not None and rest[2:3] == ["proxy"] and "proxy" in resource.refused:
        # What follows is a path behind the proxy, and the name may have a scheme and a port.
        rest = [rest[0], _proxied(rest[1]), "proxy"]
    if resource is None or len(rest) > 3 or "" in rest:
        raise route_not_found()
    if namespace and not resource.namespaced:
        raise route_not_found()
    if resource.namespaced and not namespace and "list" not in resource.verbs:
        # What only a namespace has is nowhere else.
        raise route_not_found()
    name = _segment(rest[1], "Name") if len(rest) > 1 else ""
    if name and resource.namespaced and not namespace:
        raise route_not_found()
    subresource = rest[2] if len(rest) > 2 else ""
    is_known = subresource in ("", *resource.refused)
    if not is_known and not has_subresource(resource, subresource, group_version[1]):
        if resource.storage_version.custom is not None:
            # Any path below a custom resource is routed; what is not served reads as no object.
            raise not_found(resource.plural, resource.group, name)
        raise route_not_found()
    return Target(resource, group_version[1], namespace, name, subresource, watch)


def _proxied(name: str) -> str:
    parts = name.split(":")
    return parts[0] if len(parts) < 3 else parts[1]


def not_served(target: Target) -> NotFound:
    """Return the error for a subresource that needs running containers."""
    what = f"{target.resource.plural}/{target.subresource}"
    return NotFound(
        f"{what} is not served: no containers run here, so there is nothing to reach", details={}
    )


def has_subresource(resource: ResourceType, name: str, version: str) -> bool:
    """Report whether a resource serves a subresource in a version."""
    served = resource.version(version)
    if served is not None and served.subresources is not None and name not in served.subresources:
        return False
    if name == "status":
        return resource.status is not None
    return (name == "scale" and resource.scale) or name in {*resource.connect, *resource.parts}


def _segment(text: str, what: str) -> str:
    name = unquote(text)
    if "/" in name:
        # An encoded slash separates parts as any other, and no path has so many.
        raise route_not_found()
    problems = path_segment_problems(name)
    if problems:
        raise BadRequest(f"{what} parameter invalid: {quote(name)}: {problems[0]}")
    return name
