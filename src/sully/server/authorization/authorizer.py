"""The authorizer of the server: system:masters, then node identities, then RBAC.

Each may allow; none can deny. A request that none of them allows is forbidden, with their reasons
joined. See index.py (roles and bindings), nodes.py (node identities).
"""

from collections.abc import Hashable
from functools import partial
from typing import Any

import msgspec

from sully.api.rbac.rules import resource_access
from sully.machinery.errors import joined, not_found
from sully.machinery.memo import LONGEST
from sully.runtime.clock import Clock
from sully.server.authorization.attributes import Attributes, Decision
from sully.server.authorization.index import BINDINGS, ROLES, Index
from sully.server.authorization.nodes import Nodes, node_name
from sully.server.authorization.relations import Relations
from sully.server.requests import User
from sully.server.storage.informer import ObjectHandler, StoreInformer, keep_current
from sully.server.storage.objects import Objects
from sully.store.base import Store, StoreKey

Obj = dict[str, Any]

MASTERS = "system:masters"
ALLOWED = Decision(allowed=True)
_UNRESOLVED = "node authorizer does not support user rule resolution"


class Rules(msgspec.Struct):
    """The rules of a user in a namespace, and errors while resolving them."""

    is_incomplete: bool
    """Whether something else than roles grants permissions; a role that is missing grants none."""
    rules: list[Obj] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)


class _Roles:
    def __init__(self, index: Index) -> None:
        self.put = index.put_role
        self._index = index

    def drop(self, namespace: str, name: str) -> None:
        self._index.drop_role((namespace, name))


class _Bindings:
    def __init__(self, index: Index) -> None:
        self.put = index.put_binding
        self._index = index

    def drop(self, namespace: str, name: str) -> None:
        self._index.drop_binding((namespace, name))


class RbacAuthorizer:
    """Decides by roles and bindings in a store; before `start` only system:masters is allowed."""

    def __init__(self, store: Store, objects: Objects) -> None:
        self._index = Index()
        roles, bindings = _Roles(self._index), _Bindings(self._index)
        sinks: dict[str, ObjectHandler] = {
            **dict.fromkeys(ROLES, roles),
            **dict.fromkeys(BINDINGS, bindings),
        }
        self._informer = StoreInformer(store, objects, sinks)
        relations = Relations()
        # Pods change often and only node identities need them: a separate informer.
        self._pods = StoreInformer(store, objects, {"pods": relations})
        self._nodes = Nodes(relations, partial(_lookup, store, objects))

    async def start(self) -> None:
        """Load roles, bindings and pods."""
        await self._informer.open()
        await self._pods.open()

    async def run(self, clock: Clock) -> None:
        """Keep the indexes current until the server stops."""
        await keep_current(clock, self._informer, self._pods)

    async def catch_up(self) -> None:
        """Apply events now, and list again what expired."""
        await self._informer.catch_up()
        await self._pods.catch_up()

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Report whether a user may do something."""
        if MASTERS in user.groups:
            return ALLOWED
        self._informer.pull()
        reasons = []
        node = node_name(user)
        if node is not None:
            self._pods.pull()
            decision = self._nodes.authorize(node, attributes)
            if decision.allowed:
                return decision
            reasons.append(("node", decision.reason))
        decision = self._by_roles(user, attributes)
        if decision.allowed:
            return decision
        reasons.append(("rbac", decision.reason))
        text = "\n".join(f"{authorizer}: {reason}" for authorizer, reason in reasons if reason)
        return Decision(allowed=False, reason=text)

    def _by_roles(self, user: User, attributes: Attributes) -> Decision:
        if attributes.path is not None:
            return self._by_paths(user, attributes.verb, attributes.path)
        question = (
            user.name,
            user.groups,
            attributes.verb,
            attributes.group,
            attributes.resource,
            attributes.subresource,
            attributes.namespace,
        )
        known = self._index.decisions.get(question)
        return known or self._by_rules(user, attributes, question)

    def _by_rules(self, user: User, attributes: Attributes, question: Hashable) -> Decision:
        access = resource_access(
            attributes.verb,
            attributes.group,
            attributes.resource,
            attributes.subresource,
            attributes.name,
        )
        problems: list[str] = []
        any_name = True
        for grant in self._index.grants(user, attributes.namespace):
            rights = grant.role.rights
            if rights is None:
                problems.append(_no_role(grant.role.key))
                continue
            any_name = any_name and not rights.names(access)
            if rights.grant(access):
                decision = Decision(allowed=True, reason=grant.reason)
                if any_name and len(str(question)) <= LONGEST:
                    self._index.decisions.keep(question, decision)
                return decision
        return _denied(problems)

    def _by_paths(self, user: User, verb: str, path: str) -> Decision:
        problems: list[str] = []
        for grant in self._index.grants(user, ""):
            rights = grant.role.rights
            if rights is None:
                problems.append(_no_role(grant.role.key))
            elif rights.grant_path(verb, path):
                return Decision(allowed=True, reason=grant.reason)
        return _denied(problems)

    def rules_for(self, user: User, namespace: str) -> Rules:
        """Return everything that roles grant to a user in a namespace."""
        self._informer.pull()
        rules = Rules(is_incomplete=node_name(user) is not None)
        if rules.is_incomplete:
            rules.problems.append(_UNRESOLVED)
        for grant in self._index.grants(user, namespace):
            if grant.role.rights is None:
                rules.problems.append(_no_role(grant.role.key))
            else:
                rules.rules += grant.role.rights.rules
        return rules

    def rules_of(self, kind: str, namespace: str, name: str) -> list[Obj]:
        """Return the rules of a role that a binding names."""
        self._informer.pull()
        rights = self._index.rights(kind, namespace, name)
        if rights is None:
            plural = "clusterroles" if kind == "ClusterRole" else "roles"
            raise not_found(plural, "rbac.authorization.k8s.io", name)
        return list(rights.rules)


def _denied(problems: list[str]) -> Decision:
    return Decision(allowed=False, reason=f"RBAC: {joined(problems)}" if problems else "")


def _lookup(store: Store, objects: Objects, resource: str, namespace: str, name: str) -> Obj | None:
    record = store.newest(StoreKey(resource, namespace, name))
    return None if record is None else objects.bare(record)


def _no_role(role: tuple[str, str]) -> str:
    namespace, name = role
    kind = "role" if namespace else "clusterrole"
    return str(not_found(kind, "rbac.authorization.k8s.io", name))
