"""Whether rules contain other rules: nobody may give away what they do not have.

Rules are broken into the smallest ones (one verb on one thing); each of those must be contained in
a single rule of the giver. What is missing is described in the words of Kubernetes.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sully.api.rbac.rules import ALL, path_covers
from sully.machinery.gotext import quote

Obj = dict[str, Any]

_PARTS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def missing(owned: Sequence[Obj], wanted: Iterable[Obj]) -> list[Obj]:
    """Return the smallest rules among those wanted that no owned rule contains."""
    return [
        small
        for rule in wanted
        for small in break_down(rule)
        if not any(contains(own, small) for own in owned)
    ]


def break_down(rule: Obj) -> Iterator[Obj]:
    """Go through a rule verb by verb and thing by thing."""
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


def contains(own: Obj, small: Obj) -> bool:
    """Say whether a rule contains one of the smallest."""
    names, wanted_names = own.get("resourceNames"), small.get("resourceNames")
    return (
        _has(own, small, "verbs")
        and _has(own, small, "apiGroups")
        and _has_resources(own.get("resources") or (), small.get("resources") or ())
        and (not names or (bool(wanted_names) and set(wanted_names or ()) <= set(names)))
        and _has_paths(own.get("nonResourceURLs") or (), small.get("nonResourceURLs") or ())
    )


def _has(own: Obj, small: Obj, part: str) -> bool:
    owned = own.get(part) or ()
    return ALL in owned or set(small.get(part) or ()) <= set(owned)


def _has_resources(owned: Sequence[str], wanted: Sequence[str]) -> bool:
    if ALL in owned:
        return True
    return all(
        each in owned or ("/" in each and f"*/{each.partition('/')[2]}" in owned) for each in wanted
    )


def _has_paths(owned: Sequence[str], wanted: Sequence[str]) -> bool:
    return all(any(path_covers(own, each) for own in owned) for each in wanted)


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


def quoted(words: Iterable[str]) -> str:
    """Write a list of strings as Go does."""
    return "[" + " ".join(quote(word) for word in words) + "]"
