"""Roles and bindings as the store has them, arranged by who they are for.

The index changes with every event, so a decision looks only at what the user and the user's groups
were given. It knows nothing of stores or time: `authorizer.py` feeds it.
"""

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sully.api.rbac.names import service_account
from sully.api.rbac.rules import Rights
from sully.machinery.gotext import quote
from sully.machinery.memo import LONGEST
from sully.server.requests import User

Obj = dict[str, Any]

GROUP = "rbac.authorization.k8s.io/"
ROLES = (f"{GROUP}clusterroles", f"{GROUP}roles")
BINDINGS = (f"{GROUP}clusterrolebindings", f"{GROUP}rolebindings")

Place = tuple[str, str]  # namespace (empty: the cluster) and name
Given = tuple[str, str]  # namespace in which it holds (empty: everywhere), and to whom


@dataclass(slots=True)
class Role:
    """A role that exists, or that bindings only name; they share it and see it change."""

    at: Place
    rights: Rights | None = None  # None: there is no such role
    bindings: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Grant:
    """What one binding gives to one subject."""

    binding: Place
    role: Role
    reason: str
    """Where the right comes from, in the words of Kubernetes."""

    @classmethod
    def of(cls, at: Place, role: Role, role_kind: str, subject: str) -> "Grant":
        """Make a grant; the reason is written once, since every decision for a user gives it."""
        namespace, name = at
        binding = f"RoleBinding {quote(f'{name}/{namespace}')}"
        if not namespace:
            binding = f"ClusterRoleBinding {quote(name)}"
        words = f"{binding} of {role_kind} {quote(role.at[1])} to {subject}"
        return cls(at, role, f"RBAC: allowed by {words}")


class Index:
    """All roles by their place, and all grants by whom they are for."""

    def __init__(self) -> None:
        self._roles: dict[Place, Role] = {}
        self._given: dict[Given, list[Grant]] = {}
        self._bindings: dict[Place, list[tuple[Given, Grant]]] = {}

    def put_role(self, role: Obj) -> None:
        """Take in a new or changed role."""
        self._role(place(role)).rights = Rights(role.get("rules") or ())

    def drop_role(self, at: Place) -> None:
        """Forget a role; bindings to it give nothing any more."""
        self._role(at).rights = None
        self._forget(at)

    def put_binding(self, binding: Obj) -> None:
        """Take in a new or changed binding."""
        at = place(binding)
        self.drop_binding(at)
        made = list(_grants(binding, self._role(_role_of(binding))))
        for given, grant in made:
            grant.role.bindings += 1
            insort(self._given.setdefault(given, []), grant, key=_order)
        self._bindings[at] = made

    def drop_binding(self, at: Place) -> None:
        """Forget a binding."""
        for given, grant in self._bindings.pop(at, ()):
            grants = self._given[given]
            grants.remove(grant)
            if not grants:
                del self._given[given]
            grant.role.bindings -= 1
            self._forget(grant.role.at)

    def _role(self, at: Place) -> Role:
        return self._roles.setdefault(at, Role(at))

    def _forget(self, at: Place) -> None:
        role = self._roles[at]
        if role.rights is None and not role.bindings:
            del self._roles[at]

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """Yield what a user has everywhere, then what they have in a namespace."""
        given = self._given
        short = len(user.name) + sum(map(len, user.groups)) <= LONGEST
        names = (_remembered_names if short else _names)(user.name, user.groups)
        for where in ("", namespace) if namespace else ("",):
            for name in names:
                yield from given.get((where, name), ())

    def rights(self, kind: str, namespace: str, name: str) -> Rights | None:
        """Return what a role that a binding in this namespace names contains."""
        role = self._roles.get(("" if kind == "ClusterRole" else namespace, name))
        return None if role is None else role.rights


def _names(user: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    return (f"u:{user}", *(f"g:{group}" for group in groups))


_remembered_names = lru_cache(maxsize=1024)(_names)


def place(obj: Obj) -> Place:
    """Return where a role or binding is."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _order(grant: Grant) -> Place:
    return grant.binding


def _role_of(binding: Obj) -> Place:
    ref = binding["roleRef"]
    return "" if ref["kind"] == "ClusterRole" else place(binding)[0], ref["name"]


def _grants(binding: Obj, role: Role) -> Iterator[tuple[Given, Grant]]:
    at, kind = place(binding), binding["roleRef"]["kind"]
    seen = set()
    for subject in binding.get("subjects") or ():
        who, words = _subject(subject, at[0])
        if who not in seen:
            seen.add(who)
            yield (at[0], who), Grant.of(at, role, kind, words)


def _subject(subject: Obj, namespace: str) -> tuple[str, str]:
    kind, name = subject["kind"], subject["name"]
    match kind:
        case "ServiceAccount":
            home = subject.get("namespace") or namespace
            return f"u:{service_account(home, name)}", f"{kind} {quote(f'{name}/{home}')}"
        case "Group":
            return f"g:{name}", f"{kind} {quote(name)}"
        case _:
            return f"u:{name}", f"{kind} {quote(name)}"
