"""What a rule grants: the one place that reads `verbs`, `apiGroups`, `resources` and the rest.

`Rights` is a set of rules prepared for frequent checks: a check costs a few lookups, however many
rules there are. See also coverage.py (does one set of rules contain another) and aggregation.py.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from sully.machinery.memo import LONGEST

Obj = dict[str, Any]

ALL = "*"


class ResourceAccess(msgspec.Struct, frozen=True):
    """A resource that a user wants to use, as rules name it."""

    verb: str
    name: str | None  # None: all of them
    places: tuple[str, ...]  # every key of Rights under which a rule for it can be


def resource_access(
    verb: str, group: str, resource: str, subresource: str, name: str
) -> ResourceAccess:
    """Prepare a check; it can then be used with many rights."""
    short = len(group) + len(resource) + len(subresource) <= LONGEST
    places = _cached_places if short else _places
    return ResourceAccess(verb, name, places(group, resource, subresource))


def every(verb: str, group: str, resource: str, name: str | None) -> ResourceAccess:
    """Prepare the check for a right as a rule writes it: without a name it means all names."""
    places = [f"{group} {resource}", f"* {resource}", f"{group} *", "* *"]
    if "/" in resource:
        part = resource.partition("/")[2]
        places += [f"{group} */{part}", f"* */{part}"]
    return ResourceAccess(verb, name, tuple(places))


def _places(group: str, resource: str, subresource: str) -> tuple[str, ...]:
    whole = f"{resource}/{subresource}" if subresource else resource
    places = [f"{group} {whole}", f"* {whole}", f"{group} *", "* *"]
    if subresource:
        places += [f"{group} */{subresource}", f"* */{subresource}"]
    return tuple(places)


# There are as many as resources, but a client can request others.
_cached_places = lru_cache(maxsize=1024)(_places)


class _Entry(msgspec.Struct, frozen=True):
    verbs: frozenset[str] | None  # None: all
    names: frozenset[str] | None  # None: all


class Rights:
    """What a set of rules grants, prepared for checks."""

    __slots__ = ("_paths", "_places", "rules")

    def __init__(self, rules: Sequence[Obj]) -> None:
        self.rules = rules
        self._places: dict[str, tuple[_Entry, ...]] = {}
        self._paths: list[tuple[str, frozenset[str] | None]] = []
        for rule in rules:
            self._add(rule)

    def _add(self, rule: Obj) -> None:
        verbs = _every(rule.get("verbs"))
        names = frozenset(rule.get("resourceNames") or ()) or None
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                place = f"{group} {resource}"
                self._places[place] = (*self._places.get(place, ()), _Entry(verbs, names))
        self._paths += [(path, verbs) for path in rule.get("nonResourceURLs") or ()]

    def grant(self, access: ResourceAccess) -> bool:
        """Report whether some rule grants a verb on a resource."""
        if self._places.keys().isdisjoint(access.places):
            # Most roles are about something else; this is the quick way to see it.
            return False
        for place in access.places:
            for entry in self._places.get(place, ()):
                if (entry.verbs is None or access.verb in entry.verbs) and (
                    entry.names is None or access.name in entry.names
                ):
                    return True
        return False

    def names(self, access: ResourceAccess) -> bool:
        """Report whether some rule on a resource is for objects with certain names only."""
        if self._places.keys().isdisjoint(access.places):
            return False
        entries = (entry for place in access.places for entry in self._places.get(place, ()))
        return any(entry.names is not None for entry in entries)

    def grant_path(self, verb: str, path: str) -> bool:
        """Report whether some rule grants a method on a path that is not a resource."""
        return any(
            (verbs is None or verb in verbs) and path_covers(pattern, path)
            for pattern, verbs in self._paths
        )


def _every(verbs: Iterable[str] | None) -> frozenset[str] | None:
    requested = frozenset(verbs or ())
    return None if ALL in requested else requested


def path_covers(pattern: str, path: str) -> bool:
    """Report whether a path of a rule, perhaps with a star at its end, covers another path."""
    if pattern in (ALL, path):
        return True
    return pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL))
