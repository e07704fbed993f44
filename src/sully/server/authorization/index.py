"""Roles and bindings as the store has them, arranged by subject.

The index changes with every event, so a decision looks only at what the user and the user's groups
were passed. It knows nothing of stores or time: `authorizer.py` feeds it.
"""

from bisect import insort
from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from sully.api.rbac.names import service_account
from sully.api.rbac.rules import Rights
from sully.machinery.memo import LONGEST, Memo
from sully.machinery.serialization.gotext import quote
from sully.server.authorization.attributes import Decision
from sully.server.requests import User

Obj = dict[str, Any]

GROUP = "rbac.authorization.k8s.io/"
ROLES = (f"{GROUP}clusterroles", f"{GROUP}roles")
BINDINGS = (f"{GROUP}clusterrolebindings", f"{GROUP}rolebindings")

ObjectKey = tuple[str, str]  # namespace (empty: the cluster) and name
SubjectKey = tuple[str, str]  # namespace (empty: everywhere) and subject


_MAX_DECISIONS = 4096


class Role(msgspec.Struct):
    """A role that exists, or that bindings only name; they share it and see it change."""

    key: ObjectKey
    rights: Rights | None = None  # None: the role does not exist
    bindings: int = 0


class Grant(msgspec.Struct, frozen=True, eq=False):
    """What one binding grants to one subject."""

    binding: ObjectKey
    role: Role
    reason: str
    """The binding that allows it, in the text of Kubernetes."""

    @classmethod
    def of(cls, key: ObjectKey, role: Role, role_kind: str, subject: str) -> "Grant":
        """Create a grant; the reason is formatted once, since many decisions return it."""
        namespace, name = key
        binding = f"RoleBinding {quote(f'{name}/{namespace}')}"
        if not namespace:
            binding = f"ClusterRoleBinding {quote(name)}"
        description = f"{binding} of {role_kind} {quote(role.key[1])} to {subject}"
        return cls(key, role, f"RBAC: allowed by {description}")


class Index:
    """All roles by their place, and all grants by whom they are for."""

    def __init__(self) -> None:
        self._roles: dict[ObjectKey, Role] = {}
        self._by_subject: dict[SubjectKey, list[Grant]] = {}
        self._bindings: dict[ObjectKey, list[tuple[SubjectKey, Grant]]] = {}
        self.decisions: Memo[Hashable, Decision] = Memo(_MAX_DECISIONS)
        """What was allowed since roles and bindings last changed: controllers repeat themselves."""

    def put_role(self, role: Obj) -> None:
        """Take in a new or changed role."""
        self.decisions.clear()
        self._role(object_key(role)).rights = Rights(role.get("rules") or ())

    def drop_role(self, key: ObjectKey) -> None:
        """Remove a role; bindings to it grant nothing."""
        self.decisions.clear()
        self._role(key).rights = None
        self._forget(key)

    def put_binding(self, binding: Obj) -> None:
        """Take in a new or changed binding."""
        key = object_key(binding)
        self.drop_binding(key)
        grants = list(_grants(binding, self._role(_role_of(binding))))
        for subject_key, grant in grants:
            grant.role.bindings += 1
            insort(self._by_subject.setdefault(subject_key, []), grant, key=_order)
        self._bindings[key] = grants

    def drop_binding(self, key: ObjectKey) -> None:
        """Forget a binding."""
        self.decisions.clear()
        for subject_key, grant in self._bindings.pop(key, ()):
            grants = self._by_subject[subject_key]
            grants.remove(grant)
            if not grants:
                del self._by_subject[subject_key]
            grant.role.bindings -= 1
            self._forget(grant.role.key)

    def _role(self, key: ObjectKey) -> Role:
        return self._roles.setdefault(key, Role(key))

    def _forget(self, key: ObjectKey) -> None:
        role = self._roles[key]
        if role.rights is None and not role.bindings:
            del self._roles[key]

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """Yield what a user has everywhere, then what they have in a namespace."""
        short = len(user.name) + sum(map(len, user.groups)) <= LONGEST
        names = (_cached_names if short else _names)(user.name, user.groups)
        for scope in ("", namespace) if namespace else ("",):
            for name in names:
                yield from self._by_subject.get((scope, name), ())

    def rights(self, kind: str, namespace: str, name: str) -> Rights | None:
        """Return what a role that a binding in this namespace names contains."""
        role = self._roles.get(("" if kind == "ClusterRole" else namespace, name))
        return None if role is None else role.rights


def _names(user: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    return (f"u:{user}", *(f"g:{group}" for group in groups))


_cached_names = lru_cache(maxsize=1024)(_names)


def object_key(obj: Obj) -> ObjectKey:
    """Return where a role or binding is."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _order(grant: Grant) -> ObjectKey:
    return grant.binding


def _role_of(binding: Obj) -> ObjectKey:
    ref = binding["roleRef"]
    return "" if ref["kind"] == "ClusterRole" else object_key(binding)[0], ref["name"]


def _grants(binding: Obj, role: Role) -> Iterator[tuple[SubjectKey, Grant]]:
    key, kind = object_key(binding), binding["roleRef"]["kind"]
    seen = set()
    for subject in binding.get("subjects") or ():
        subject_name, description = _subject(subject, key[0])
        if subject_name not in seen:
            seen.add(subject_name)
            yield (key[0], subject_name), Grant.of(key, role, kind, description)


def _subject(subject: Obj, namespace: str) -> tuple[str, str]:
    kind, name = subject["kind"], subject["name"]
    match kind:
        case "ServiceAccount":
            account_namespace = subject.get("namespace") or namespace
            return (
                f"u:{service_account(account_namespace, name)}",
                f"{kind} {quote(f'{name}/{account_namespace}')}",
            )
        case "Group":
            return f"g:{name}", f"{kind} {quote(name)}"
        case _:
            return f"u:{name}", f"{kind} {quote(name)}"
