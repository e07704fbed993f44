"""The functions of `authorizer` in expressions: may the user of a request do something else?

What a check needs is collected by `group`, `resource` and so on; the authorizer is an argument, so
that this package knows no server.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import msgspec
from msgspec.structs import replace

from sully.machinery.cel import types
from sully.machinery.cel.declarations import Library, library
from sully.machinery.cel.values import register

AUTHORIZER: Final = types.opaque("kubernetes.authorization.Authorizer")
PATH_CHECK: Final = types.opaque("kubernetes.authorization.PathCheck")
GROUP_CHECK: Final = types.opaque("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK: Final = types.opaque("kubernetes.authorization.ResourceCheck")
DECISION: Final = types.opaque("kubernetes.authorization.Decision")


class AuthorizationCheck(msgspec.Struct, frozen=True):
    """A question for the authorizer; `account` is (namespace, name) of another user."""

    verb: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    account: tuple[str, str] | None = None


class CheckDecision(msgspec.Struct, frozen=True):
    """The answer."""

    allowed: bool
    reason: str = ""


Authorize = Callable[[AuthorizationCheck], CheckDecision]


class AuthorizerValue(msgspec.Struct, frozen=True):
    """The value of `authorizer`."""

    authorize: Authorize
    check: AuthorizationCheck = AuthorizationCheck()

    def service_account(self, namespace: str, name: str) -> AuthorizerValue:
        """Ask for a service account instead."""
        return AuthorizerValue(self.authorize, replace(self.check, account=(namespace, name)))

    def path(self, path: str) -> PathCheck:
        """Ask about a path that is not a resource."""
        return PathCheck(self.authorize, replace(self.check, path=path))

    def group(self, group: str) -> GroupCheck:
        """Ask about a resource of a group."""
        return GroupCheck(self.authorize, replace(self.check, group=group))


class PathCheck(msgspec.Struct, frozen=True):
    """A check of a path."""

    authorize: Authorize
    check: AuthorizationCheck

    def decide(self, verb: str) -> CheckDecision:
        """Ask the authorizer."""
        return self.authorize(replace(self.check, verb=verb))


class GroupCheck(msgspec.Struct, frozen=True):
    """A check of a group, which needs a resource."""

    authorize: Authorize
    check: AuthorizationCheck

    def resource(self, resource: str) -> ResourceCheck:
        """Ask about a resource."""
        return ResourceCheck(self.authorize, replace(self.check, resource=resource))


class ResourceCheck(msgspec.Struct, frozen=True):
    """A check of a resource."""

    authorize: Authorize
    check: AuthorizationCheck

    def subresource(self, name: str) -> ResourceCheck:
        """Ask about a subresource."""
        return ResourceCheck(self.authorize, replace(self.check, subresource=name))

    def namespace(self, name: str) -> ResourceCheck:
        """Ask about a namespace."""
        return ResourceCheck(self.authorize, replace(self.check, namespace=name))

    def name(self, name: str) -> ResourceCheck:
        """Ask about one object."""
        return ResourceCheck(self.authorize, replace(self.check, name=name))

    def decide(self, verb: str) -> CheckDecision:
        """Ask the authorizer."""
        return self.authorize(replace(self.check, verb=verb))


for _class, _type in (
    (AuthorizerValue, AUTHORIZER),
    (PathCheck, PATH_CHECK),
    (GroupCheck, GROUP_CHECK),
    (ResourceCheck, RESOURCE_CHECK),
    (CheckDecision, DECISION),
):
    register(_class, _type)


@lru_cache(maxsize=1)
def authorizations() -> Library:
    """Return the functions of authorizers, checks and decisions."""
    subject, path, group = AUTHORIZER.name, PATH_CHECK.name, GROUP_CHECK.name
    resource, decision = RESOURCE_CHECK.name, DECISION.name
    return library(
        (
            ("authorizer_path", f"{subject}:path(string) -> {path}", AuthorizerValue.path),
            ("authorizer_group", f"{subject}:group(string) -> {group}", AuthorizerValue.group),
            (
                "authorizer_serviceaccount",
                f"{subject}:serviceAccount(string, string) -> {subject}",
                AuthorizerValue.service_account,
            ),
            ("pathcheck_check", f"{path}:check(string) -> {decision}", PathCheck.decide),
            ("groupcheck_resource", f"{group}:resource(string) -> {resource}", GroupCheck.resource),
            (
                "resourcecheck_subresource",
                f"{resource}:subresource(string) -> {resource}",
                ResourceCheck.subresource,
            ),
            (
                "resourcecheck_namespace",
                f"{resource}:namespace(string) -> {resource}",
                ResourceCheck.namespace,
            ),
            ("resourcecheck_name", f"{resource}:name(string) -> {resource}", ResourceCheck.name),
            (
                "resourcecheck_check",
                f"{resource}:check(string) -> {decision}",
                ResourceCheck.decide,
            ),
            ("decision_allowed", f"{decision}:allowed() -> bool", lambda one: one.allowed),
            ("decision_reason", f"{decision}:reason() -> string", lambda one: one.reason),
            ("decision_errored", f"{decision}:errored() -> bool", lambda _: False),
            ("decision_error", f"{decision}:error() -> string", lambda _: ""),
        )
    )
