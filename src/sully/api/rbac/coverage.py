"""Whether rules contain other rules: no user may grant permissions that they do not have.

Rules are broken down into the smallest ones (one verb on one resource); each of those must be
contained in a single rule of the user. What is missing is described as Kubernetes does.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sully.api.rbac.rules import Rights, every
from sully.machinery.serialization.gotext import quote

Obj = dict[str, Any]

_PARTS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def missing(owned: Sequence[Obj], requested: Iterable[Obj]) -> list[Obj]:
    """Return the smallest rules of those requested that no owned rule contains."""
    rights = Rights(owned)
    return [small for rule in requested for small in break_down(rule) if not _covers(rights, small)]


def combinations(rules: Iterable[Obj]) -> int:
    """Count the smallest rules of some rules, without creating them."""
    return sum(
        len(rule.get("verbs") or ())
        * (
            len(rule.get("apiGroups") or ())
            * len(rule.get("resources") or ())
            * max(1, len(rule.get("resourceNames") or ()))
            + len(rule.get("nonResourceURLs") or ())
        )
        for rule in rules
    )


def break_down(rule: Obj) -> Iterator[Obj]:
    """Yield a rule for each verb and each resource or path of a rule."""
    names = rule.get("resourceNames") or (None,)
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in rule.get("verbs") or ():
                for name in names:
                    small: Obj = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                    yield small if name is None else small | {"resourceNames": [name]}
    for path in rule.get("nonResourceURLs") or ():
        for verb in rule.get("verbs") or ():
            yield {"nonResourceURLs": [path], "verbs": [verb]}


def _covers(rights: Rights, small: Obj) -> bool:
    """Report whether the rules contain one of the smallest rules."""
    (verb,) = small["verbs"]
    if paths := small.get("nonResourceURLs"):
        return rights.grant_path(verb, paths[0])
    (group,), (resource,) = small["apiGroups"], small["resources"]
    names = small.get("resourceNames")
    return rights.grant(every(verb, group, resource, names[0] if names else None))


def described(rules: Iterable[Obj]) -> list[str]:
    """Describe rules, those that differ only in their verbs as one, in order."""
    return sorted({_described(rule) for rule in compacted(rules)})


def compacted(rules: Iterable[Obj]) -> list[Obj]:
    """Join rules about one and the same resource into one; leave the others as they are."""
    others: list[Obj] = []
    simple: dict[tuple[str, str, str | None], Obj] = {}
    for rule in rules:
        key = _simple_key(rule)
        if key is None:
            others.append(rule)
        elif key in simple:
            verbs = simple[key]["verbs"]
            verbs += [verb for verb in rule["verbs"] if verb not in verbs]
        else:
            simple[key] = rule | {"verbs": list(rule["verbs"])}
    return [*others, *simple.values()]


def _simple_key(rule: Obj) -> tuple[str, str, str | None] | None:
    groups, resources, names = (
        rule.get(part) or [] for part in ("apiGroups", "resources", "resourceNames")
    )
    if len(groups) != 1 or len(resources) != 1 or len(names) > 1 or rule.get("nonResourceURLs"):
        return None
    return groups[0], resources[0], names[0] if names else None


def _described(rule: Obj) -> str:
    parts = [f"{title}:{quoted(rule[part])}" for title, part in _PARTS if rule.get(part)]
    return "{" + ", ".join(parts) + "}"


def quoted(items: Iterable[str]) -> str:
    """Write a list of strings as Go does."""
    return "[" + " ".join(quote(word) for word in items) + "]"
