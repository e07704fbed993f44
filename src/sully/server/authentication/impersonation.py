"""Impersonation: the Impersonate-… headers, and who may use them.

A user needs the verb `impersonate` on every part of the identity: the user or service account,
each group, the uid, each extra value. There are also narrow permissions: `impersonate:MODE` on the
identity together with `impersonate-on:MODE:VERB` on the requested resource; they are tried first,
and a rejection names the first missing permission.
"""

from collections.abc import Iterable, Iterator
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from sully.machinery.errors import BadRequest, Forbidden
from sully.machinery.formats.names import dns_label_problems, dns_subdomain_problems
from sully.machinery.serialization.gotext import quote
from sully.server.authentication.groups import MASTERS, with_authenticated
from sully.server.authentication.service_accounts import account_groups, split_account
from sully.server.authorization.attributes import Attributes, Authorizer, Decision
from sully.server.authorization.enforce import refusal
from sully.server.requests import User

PREFIX = "impersonate-"
_GROUP = "authentication.k8s.io"
_NODE = "system:node:"
_NODE_NAME = "authentication.kubernetes.io/node-name"
_EXTRA = b"impersonate-extra-"


class RequestedUser(msgspec.Struct):
    """The user that the headers request."""

    name: str = ""
    uid: str = ""
    groups: list[str] = msgspec.field(default_factory=list)
    extra: dict[str, list[str]] = msgspec.field(default_factory=dict)


def requested_user(headers: Iterable[tuple[bytes, bytes]]) -> RequestedUser | None:
    """Read the headers (names in lower case); None without impersonation."""
    requested, any_header = RequestedUser(), False
    for name, raw in headers:
        if not name.startswith(b"impersonate-"):
            continue
        value = raw.decode("utf-8", errors="replace")
        if name == b"impersonate-user":
            requested.name = requested.name or value
        elif name == b"impersonate-uid":
            requested.uid = requested.uid or value
        elif name == b"impersonate-group":
            requested.groups.append(value)
        elif name.startswith(_EXTRA):
            key = unquote(name[len(_EXTRA) :].decode("latin-1"))
            requested.extra.setdefault(key, []).append(value)
        any_header = any_header or bool(
            requested.name or requested.uid or requested.groups or requested.extra
        )
    if any_header and not requested.name:
        raise BadRequest(f"requested {_shown(requested)} without impersonating a user name")
    return requested if any_header else None


def impersonate(
    user: User, requested: RequestedUser, attributes: Attributes, authorizer: Authorizer
) -> tuple[User, str]:
    """Return the impersonated user and the narrow permission, empty for the broad one.

    `attributes` describe the request itself. Raises Forbidden, with the first reason.
    """
    first: Forbidden | None = None
    for mode in (*_modes(user, requested), ""):
        error = _refusal(user, _requirements(requested, mode, attributes), authorizer)
        if error is None:
            return _impersonated_user(
                requested, narrow=bool(mode)
            ), f"impersonate:{mode}" if mode else ""
        first = first or error
    raise first or Forbidden("all impersonation modes failed")


def _modes(user: User, requested: RequestedUser) -> Iterator[str]:
    """Yield the narrow permissions for such a user."""
    only_name = not (requested.uid or requested.groups or requested.extra)
    node = _node(requested.name)
    if node and only_name:
        if _account(user.name) and user.extra.get(_NODE_NAME) == (node,):
            yield "associated-node"
        yield "arbitrary-node"
    elif _account(requested.name) and only_name:
        yield "serviceaccount"
    elif not node and not _account(requested.name):
        yield "user-info"


# What must be allowed, or why it never is.
_Requirement = tuple[Attributes, str]


def _refusal(
    user: User, requirements: Iterable[_Requirement], authorizer: Authorizer
) -> Forbidden | None:
    for required, forbidden in requirements:
        decision = Decision(False, forbidden) if forbidden else authorizer.authorize(user, required)
        if not decision.allowed:
            return refusal(user, required, decision)
    return None


def _requirements(
    requested: RequestedUser, mode: str, attributes: Attributes
) -> Iterator[_Requirement]:
    if not mode:
        for required in _identity(requested, "impersonate", mode):
            yield required, ""
        return
    yield replace(attributes, verb=f"impersonate-on:{mode}:{attributes.verb}"), ""
    for required in _identity(requested, f"impersonate:{mode}", mode):
        yield required, _forbidden_reason(required)


def _forbidden_reason(required: Attributes) -> str:
    """Return why constrained impersonation never allows this, whatever the rules are."""
    if required.resource == "groups" and required.name in ("", MASTERS):
        named = f"the {MASTERS} group" if required.name else "the empty string group"
        return f"impersonating {named} is not allowed"
    if required.resource != "userextras":
        return ""
    domain, slash, path = required.subresource.partition("/")
    if not slash or not path or dns_subdomain_problems(domain):
        return "impersonating an invalid key in extra is not allowed"
    return "" if required.name else "impersonating the empty string value in extra is not allowed"


def _identity(requested: RequestedUser, verb: str, mode: str) -> Iterator[Attributes]:
    """Yield the permissions that an impersonation needs."""
    group = _GROUP if mode else ""
    account, node = _account(requested.name), _node(requested.name) if mode else ""
    if account:
        yield Attributes(verb, group, "v1", "serviceaccounts", "", *account)
    elif node:
        # A pod may impersonate the node it runs on.
        yield Attributes(
            verb, group, "v1", "nodes", name="*" if mode == "associated-node" else node
        )
    else:
        yield Attributes(verb, group, "v1", "users", name=requested.name)
    if requested.uid:
        yield Attributes(verb, _GROUP, "v1", "uids", name=requested.uid)
    for name in requested.groups:
        yield Attributes(verb, group, "v1", "groups", name=name)
    for key, values in sorted(requested.extra.items()):
        for value in values:
            yield Attributes(verb, _GROUP, "v1", "userextras", key, name=value)


def _impersonated_user(requested: RequestedUser, *, narrow: bool) -> User:
    groups = list(requested.groups)
    account = _account(requested.name)
    if not groups and account:
        groups += account_groups(account[0])
    elif not groups and narrow and _node(requested.name):
        groups.append("system:nodes")
    extra = {key: tuple(values) for key, values in requested.extra.items()}
    return User(requested.name, with_authenticated(requested.name, groups), requested.uid, extra)


def _account(name: str) -> tuple[str, str] | None:
    split = split_account(name)
    if split is None or dns_label_problems(split[0]) or dns_subdomain_problems(split[1]):
        return None
    return split


def _node(name: str) -> str:
    node = name.removeprefix(_NODE)
    return node if name.startswith(_NODE) and not dns_subdomain_problems(node) else ""


def _shown(requested: RequestedUser) -> str:
    """Print the requested user as Kubernetes prints its own structure."""
    extra = ", ".join(f"{quote(key)}:{_strings(v)}" for key, v in sorted(requested.extra.items()))
    shown = f"map[string][]string{{{extra}}}" if extra else "map[string][]string(nil)"
    return (
        f'&user.DefaultInfo{{Name:"", UID:{quote(requested.uid)},'
        f" Groups:{_strings(requested.groups)}, Extra:{shown}}}"
    )


def _strings(values: list[str]) -> str:
    if not values:
        return "[]string(nil)"
    return f"[]string{{{', '.join(quote(value) for value in values)}}}"
