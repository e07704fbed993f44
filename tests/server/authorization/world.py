"""A server with the default roles, and ways to ask it as a user."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from embedded import embedded
from sully.machinery.errors import ApiError
from sully.machinery.gates import Gates
from sully.server.authorization.attributes import Attributes, Decision
from sully.server.bootstrap import ensure_namespaces, ensure_policy
from sully.server.inprocess import InProcess
from sully.server.requests import ResourceRef, User
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock

Obj = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
EVERYBODY = "system:authenticated"
MASTER = User("root", ("system:masters", EVERYBODY))


def person(name: str, *groups: str) -> User:
    """Return a user who has shown credentials."""
    return User(name, (*groups, EVERYBODY))


def node(name: str) -> User:
    """Return the identity of a node."""
    return User(f"system:node:{name}", ("system:nodes", EVERYBODY))


def account(name: str, namespace: str = "kube-system") -> User:
    """Return the identity of a service account."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", EVERYBODY)
    return User(f"system:serviceaccount:{namespace}:{name}", groups)


def ask(verb: str, what: str, namespace: str = "", name: str = "", **fields: str) -> Attributes:
    """Write a question: `apps/deployments/scale`, `pods`, or a path that begins with a slash."""
    if what.startswith("/"):
        return Attributes(verb, path=what)
    parts = what.split("/")
    group = ""
    if "." in parts[0] or parts[0] in ("apps", "policy"):
        group, *parts = parts
    resource, subresource = [*parts, ""][:2]
    selected = {key.replace("__", "."): value for key, value in fields.items()}
    return Attributes(verb, group, "v1", resource, subresource, namespace, name, fields=selected)


class World:
    """An API server over a store of its own."""

    def __init__(self, gates: Gates | None = None) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore()
        self.api = embedded(self.store, self.clock, gates=gates)

    @classmethod
    @asynccontextmanager
    async def running(cls, gates: Gates | None = None) -> AsyncIterator[World]:
        """Return a server that has started, with the default roles."""
        world = cls(gates)
        await world.api.authorizer.start()
        await ensure_namespaces(world.caller(MASTER))
        await ensure_policy(world.caller(MASTER), gates)
        yield world

    def caller(self, user: User) -> InProcess:
        return InProcess(self.api, user)

    def authorize(self, user: User, asked: Attributes) -> Decision:
        return self.api.authorizer.authorize(user, asked)

    def may(self, user: User, verb: str, what: str, namespace: str = "", name: str = "") -> bool:
        return self.authorize(user, ask(verb, what, namespace, name)).allowed

    async def call(
        self,
        user: User,
        verb: str,
        plural: str,
        body: Obj | None = None,
        *,
        namespace: str = "",
        name: str = "",
        **more: Any,
    ) -> Obj:
        """Run a verb as a user; `plural` may have its group in front and a subresource behind."""
        asked = ask(verb, plural)
        ref = ResourceRef(asked.group, "v1", asked.resource, namespace, name, asked.subresource)
        return (await self.caller(user).call(verb, ref, body=body, **more)).obj

    async def refused(self, user: User, verb: str, plural: str, *args: Any, **more: Any) -> str:
        """Return why a call was refused; it must be."""
        try:
            await self.call(user, verb, plural, *args, **more)
        except ApiError as error:
            return error.message
        return ""

    async def role(self, name: str, *rules: Obj, namespace: str = "", **more: Any) -> Obj:
        """Create a role; without a namespace a cluster role."""
        plural = f"{RBAC}/roles" if namespace else f"{RBAC}/clusterroles"
        body = {"metadata": {"name": name, **more.pop("metadata", {})}, "rules": list(rules)}
        return await self.call(MASTER, "create", plural, body | more, namespace=namespace)

    async def bind(self, name: str, role: str, subjects: Iterable[Obj], namespace: str = "") -> Obj:
        """Create a binding to a `Kind/name`; without a namespace a cluster role binding."""
        plural = f"{RBAC}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings"
        kind, _, referred = role.partition("/")
        body = {
            "metadata": {"name": name},
            "roleRef": {"kind": kind, "name": referred},
            "subjects": list(subjects),
        }
        return await self.call(MASTER, "create", plural, body, namespace=namespace)


def rule(verbs: str, resources: str, groups: str = "core", names: str = "") -> Obj:
    """Write a rule, words separated by spaces."""
    made: Obj = {
        "apiGroups": ["" if text == "core" else text for text in groups.split()],
        "resources": resources.split(),
        "verbs": verbs.split(),
    }
    return made | ({"resourceNames": names.split()} if names else {})


def user(name: str) -> Obj:
    return {"kind": "User", "name": name}


def group(name: str) -> Obj:
    return {"kind": "Group", "name": name}
