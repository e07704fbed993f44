"""The attributes of a request and the decision about it, as values.

The callers (http/, inprocess.py, impersonation, reviews) build `Attributes` and pass them with
a user to an `Authorizer`; authorizer.py has the one that the server uses, enforce.py returns its
rejections as errors.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol
from urllib.parse import unquote

import msgspec

from sully.machinery.formats.names import path_segment_problems
from sully.machinery.selectors import fieldselectors
from sully.machinery.selectors.labels import SelectorError
from sully.server.requests import Target, User, split_path

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})

_VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_OF_MANY = ("list", "watch", "deletecollection")
_NAMESPACE_PARTS = ("status", "finalize")


class Attributes(msgspec.Struct, frozen=True):
    """What a request does: a verb on a resource, or a method on a path."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str | None = None  # set for non-resource paths; only the verb is used then
    # Fields that selected objects must have, for lists and watches.
    fields: Mapping[str, str] = msgspec.field(default_factory=lambda: NO_OPTIONS)


class Decision(msgspec.Struct, frozen=True):
    """Whether a request is allowed, and why."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides synchronously: everything it depends on is in memory."""

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Report whether a user may do something."""
        ...


def on_target(verb: str, target: Target, options: Mapping[str, str] = NO_OPTIONS) -> Attributes:
    """Return the attributes of a request on a resource."""
    resource = target.resource
    namespace, name = target.namespace, target.name
    if resource.plural == "namespaces" and resource.group == "":
        # A namespace is in itself: its admin may read it.
        namespace = name
    fields = selected_fields(options.get("fieldSelector", "")) if verb in _OF_MANY else NO_OPTIONS
    return Attributes(
        verb,
        resource.group,
        target.version,
        resource.plural,
        target.subresource,
        namespace,
        name or (_selected_name(fields) if fields else ""),
        fields=fields,
    )


def on_path(method: str, path: str, options: Mapping[str, str] = NO_OPTIONS) -> Attributes:
    """Return the attributes of a non-resource path.

    It may have the form of a resource path that is not served.
    """
    split = split_path(path)
    if split is None or not split[2]:
        return Attributes(method.lower(), path=path)
    group, version, parts = split
    parts = [unquote(part) for part in parts]
    verb = _VERBS.get(method, "")
    if parts[0] == "watch" and len(parts) > 1:
        verb, parts = "watch", parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_PARTS:
            parts = parts[2:]
    resource, name, subresource = [*parts, "", "", ""][:3]
    if not name:
        listing = "watch" if is_true(options.get("watch")) else "list"
        verb = {"get": listing, "delete": "deletecollection"}.get(verb, verb)
    fields = selected_fields(options.get("fieldSelector", "")) if verb in _OF_MANY else NO_OPTIONS
    name = name or _selected_name(fields)
    return Attributes(verb, group, version, resource, subresource, namespace, name, fields=fields)


def is_true(value: str | None) -> bool:
    """Read a boolean option as the API does: anything but false and 0 is true."""
    return value is not None and value.lower() not in ("false", "0")


def selected_fields(selector: str) -> Mapping[str, str]:
    """Return the fields that a selector requires to equal a value; none if it is invalid."""
    if not selector:
        return NO_OPTIONS
    try:
        parsed = fieldselectors.parse(selector)
    except SelectorError:
        # The verb will reject it; until then it matches nothing.
        return NO_OPTIONS
    return {
        requirement.field: requirement.value
        for requirement in parsed.requirements
        if not requirement.negated
    }


def _selected_name(fields: Mapping[str, str]) -> str:
    name = fields.get("metadata.name", "")
    return "" if path_segment_problems(name) else name
