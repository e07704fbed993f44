"""What somebody may have meant who asks about a name that nobody knows.

The same name elsewhere comes first, then names that begin so (a deployment's name is how people
think of its pods), then what is in it (a pool's name, for devices), then names that look alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Final

from sully.client.transport import Key, Kind
from sully.explaining.devices import known
from sully.explaining.kinds import SEEN_PODS
from sully.explaining.world import World
from sully.views.fleet_kinds import CLUSTERS, PLACEMENTS
from sully.views.kinds import CLAIMS, EVICTION_RECORDS, PATCHES, RULES, TAINT_RECORDS

MOST: Final = 4
_MOST_COMPARED: Final = 5000
"""Comparing letters takes time; who has more names than this knows how to list them."""
_KINDS: Final[dict[str, Kind[Any]]] = {
    "pod": SEEN_PODS,
    "claim": CLAIMS,
    "rule": RULES,
    "patch": PATCHES,
    "placement": PLACEMENTS,
    "cluster": CLUSTERS,
}


def meant(world: World, kind: str, key: Key) -> tuple[str, ...]:
    """Return names that there are, the most likely first."""
    names = list(dict.fromkeys(_names(world, kind)))
    here = [each for each in names if each.namespace == key.namespace]
    found = dict.fromkeys(
        (
            *(each for each in names if each.name == key.name),
            *_beginning(here, key.name),
            *_inside(here, key.name),
        )
    )
    if not found:
        elsewhere = (each for each in names if each.namespace != key.namespace)
        found = dict.fromkeys((*_alike(here, key.name), *_beginning(elsewhere, key.name)))
    return tuple(map(str, list(found)[:MOST]))


def _names(world: World, kind: str) -> Iterator[Key]:
    if kind == "device":
        yield from (Key("", str(each)) for each in sorted(known(world)))
        return
    yield from sorted(world.snapshot.of(_KINDS[kind]).keys())
    if kind == "pod":
        for record in world.snapshot.of(EVICTION_RECORDS).values():
            yield Key(record.spec.pod.namespace, record.spec.pod.name)
    if kind == "rule":
        for taint in world.snapshot.of(TAINT_RECORDS).values():
            yield Key("", taint.spec.rule.name)


def _beginning(names: Iterable[Key], text: str) -> list[Key]:
    return [each for each in names if each.name.startswith(text)][:MOST]


def _inside(names: Iterable[Key], text: str) -> list[Key]:
    """Return the devices of a pool or a driver that somebody names."""
    return [each for each in names if text in each.name.split("/")][:MOST]


def _alike(names: list[Key], text: str) -> list[Key]:
    by_name = {each.name: each for each in names[:_MOST_COMPARED]}
    known: dict[str, str] = {}
    for name in by_name:
        for form in _forms(name):
            known.setdefault(form, name)
    close = get_close_matches(text, list(known), n=MOST, cutoff=0.7)
    return [by_name[known[each]] for each in close]


def _forms(name: str) -> Iterator[str]:
    """Yield how people write a name: without its driver, without what was made up for it."""
    yield name
    yield name.split("/", 1)[-1]
    yield from (name.rsplit("-", parts)[0] for parts in (1, 2) if name.count("-") >= parts)
