"""Impersonation: the Impersonate-… headers, and who may use them.

A caller needs the verb `impersonate` on everything it takes on: the user or service account, each
group, the uid, each extra value. There are also narrow permissions: `impersonate:MODE` on the
identity together with `impersonate-on:MODE:VERB` on the requested resource; they are tried first,
and a rejection names the first missing permission.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

from msgspec.structs import replace

from sully.machinery.errors import BadRequest, Forbidden
from sully.machinery.gotext import quote
from sully.machinery.names import dns_label_problems, dns_subdomain_problems
from sully.server.authentication.accounts import account_groups, split_account
from sully.server.authentication.groups import MASTERS, with_authenticated
from sully.server.authorization.attributes import Attributes, Authorizer, Verdict
from sully.server.authorization.enforce import refusal
from sully.server.requests import User

PREFIX = "impersonate-"
_GROUP = "authentication.k8s.io"
_NODE = "system:node:"
_NODE_NAME = "authentication.kubernetes.io/node-name"
_EXTRA = b"impersonate-extra-"


@dataclass(slots=True)
class Wanted:
    """The user that the headers request."""

    name: str = ""
    uid: str = ""
    groups: list[str] = field(default_factory=list)
    extra: dict[str, list[str]] = field(default_factory=dict)


def wanted(headers: Iterable[tuple[bytes, bytes]]) -> Wanted | None:
    """Read the headers (names in lower case); None without impersonation."""
    found, asked = Wanted(), False
    for name, raw in headers:
        if not name.startswith(b"impersonate-"):
            continue
        value = raw.decode("utf-8", errors="replace")
        if name == b"impersonate-user":
            found.name = found.name or value
        elif name == b"impersonate-uid":
            found.uid = found.uid or value
        elif name == b"impersonate-group":
            found.groups.append(value)
        elif name.startswith(_EXTRA):
            key = unquote(name[len(_EXTRA) :].decode("latin-1"))
            found.extra.setdefault(key, []).append(value)
        asked = asked or bool(found.name or found.uid or found.groups or found.extra)
    if asked and not found.name:
        raise BadRequest(f"requested {_shown(found)} without impersonating a user name")
    return found if asked else None


def impersonate(
    user: User, wish: Wanted, asked: Attributes, authorizer: Authorizer
) -> tuple[User, str]:
    """Return the impersonated user and the narrow permission, empty for the broad one.

    `asked` is what the request is about. Raises Forbidden, with the first reason there was.
    """
    first: Forbidden | None = None
    for mode in (*_modes(user, wish), ""):
        error = _refusal(user, _questions(wish, mode, asked), authorizer)
        if error is None:
            return _become(wish, narrow=bool(mode)), f"impersonate:{mode}" if mode else ""
        first = first or error
    raise first or Forbidden("all impersonation modes failed")


def _modes(user: User, wish: Wanted) -> Iterator[str]:
    """Yield the narrow permissions for such a user."""
    only_name = not (wish.uid or wish.groups or wish.extra)
    node = _node(wish.name)
    if node and only_name:
        if _account(user.name) and user.extra.get(_NODE_NAME) == (node,):
            yield "associated-node"
        yield "arbitrary-node"
    elif _account(wish.name) and only_name:
        yield "serviceaccount"
    elif not node and not _account(wish.name):
        yield "user-info"


# What must be allowed, or why it never is.
_Question = tuple[Attributes, str]


def _refusal(
    user: User, questions: Iterable[_Question], authorizer: Authorizer
) -> Forbidden | None:
    for question, never in questions:
        verdict = Verdict(False, never) if never else authorizer.decide(user, question)
        if not verdict.allowed:
            return refusal(user, question, verdict)
    return None


def _questions(wish: Wanted, mode: str, asked: Attributes) -> Iterator[_Question]:
    if not mode:
        for question in _identity(wish, "impersonate", mode):
            yield question, ""
        return
    yield replace(asked, verb=f"impersonate-on:{mode}:{asked.verb}"), ""
    for question in _identity(wish, f"impersonate:{mode}", mode):
        yield question, _never(question)


def _never(question: Attributes) -> str:
    """Return why a narrow permission cannot be for this, whatever the rules say."""
    if question.resource == "groups" and question.name in ("", MASTERS):
        named = f"the {MASTERS} group" if question.name else "the empty string group"
        return f"impersonating {named} is not allowed"
    if question.resource != "userextras":
        return ""
    domain, slash, path = question.subresource.partition("/")
    if not slash or not path or dns_subdomain_problems(domain):
        return "impersonating an invalid key in extra is not allowed"
    return "" if question.name else "impersonating the empty string value in extra is not allowed"


def _identity(wish: Wanted, verb: str, mode: str) -> Iterator[Attributes]:
    """Yield the permissions that an impersonation needs."""
    group = _GROUP if mode else ""
    account, node = _account(wish.name), _node(wish.name) if mode else ""
    if account:
        yield Attributes(verb, group, "v1", "serviceaccounts", "", *account)
    elif node:
        # A pod may impersonate the node it runs on.
        yield Attributes(
            verb, group, "v1", "nodes", name="*" if mode == "associated-node" else node
        )
    else:
        yield Attributes(verb, group, "v1", "users", name=wish.name)
    if wish.uid:
        yield Attributes(verb, _GROUP, "v1", "uids", name=wish.uid)
    for name in wish.groups:
        yield Attributes(verb, group, "v1", "groups", name=name)
    for key, values in sorted(wish.extra.items()):
        for value in values:
            yield Attributes(verb, _GROUP, "v1", "userextras", key, name=value)


def _become(wish: Wanted, *, narrow: bool) -> User:
    groups = list(wish.groups)
    account = _account(wish.name)
    if not groups and account:
        groups += account_groups(account[0])
    elif not groups and narrow and _node(wish.name):
        groups.append("system:nodes")
    extra = {key: tuple(values) for key, values in wish.extra.items()}
    return User(wish.name, with_authenticated(wish.name, groups), wish.uid, extra)


def _account(name: str) -> tuple[str, str] | None:
    split = split_account(name)
    if split is None or dns_label_problems(split[0]) or dns_subdomain_problems(split[1]):
        return None
    return split


def _node(name: str) -> str:
    node = name.removeprefix(_NODE)
    return node if name.startswith(_NODE) and not dns_subdomain_problems(node) else ""


def _shown(wish: Wanted) -> str:
    """Print the requested user as Kubernetes prints its own structure."""
    extra = ", ".join(f"{quote(key)}:{_strings(v)}" for key, v in sorted(wish.extra.items()))
    shown = f"map[string][]string{{{extra}}}" if extra else "map[string][]string(nil)"
    return (
        f'&user.DefaultInfo{{Name:"", UID:{quote(wish.uid)},'
        f" Groups:{_strings(wish.groups)}, Extra:{shown}}}"
    )


def _strings(values: list[str]) -> str:
    if not values:
        return "[]string(nil)"
    return f"[]string{{{', '.join(quote(value) for value in values)}}}"
