"""Suggests names for one that does not exist.

The same name elsewhere comes first, then names that begin so (as the pods of a deployment do), then
names with it as a part (the pool of a device), then similar names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Final

from sully.client.transport import Key, Kind
from sully.explain.facts.devices.devices import known_devices
from sully.explain.reader import Reader
from sully.views.fleet_kinds import CLUSTERS, PLACEMENTS
from sully.views.kinds import (
    CLAIMS,
    DEVICE_POLICIES,
    EVICTION_RECORDS,
    MAINTENANCES,
    PATCHES,
    RULES,
    TAINT_RECORDS,
)
from sully.views.snapshot.kinds import NODES, PODS, WORKLOADS

MAX_SUGGESTIONS: Final = 4
_MAX_COMPARED: Final = 5000
"""Comparing letters takes time; clusters with more names than this are searched by listing."""
_KINDS: Final[dict[str, Kind[Any]]] = {
    "pod": PODS,
    "claim": CLAIMS,
    "rule": RULES,
    "patch": PATCHES,
    "node": NODES,
    **{kind.kind.lower(): kind for kind in WORKLOADS},
    "placement": PLACEMENTS,
    "cluster": CLUSTERS,
    "policy": DEVICE_POLICIES,
    "maintenance": MAINTENANCES,
}


def suggest(reader: Reader, kind: str, key: Key) -> tuple[str, ...]:
    """Return names that exist, the most likely first."""
    keys = list(dict.fromkeys(_keys(reader, kind)))
    same_namespace = [x for x in keys if x.namespace == key.namespace]
    likely = dict.fromkeys(
        (
            *(x for x in keys if x.name == key.name),
            *_beginning(same_namespace, key.name),
            *(x for x in same_namespace if key.name in x.name.split("/")),
        )
    )
    if not likely:
        others = (x for x in keys if x.namespace != key.namespace)
        likely = dict.fromkeys((*_similar(same_namespace, key.name), *_beginning(others, key.name)))
    return tuple(map(str, list(likely)[:MAX_SUGGESTIONS]))


def _keys(reader: Reader, kind: str) -> Iterator[Key]:
    if kind == "device":
        yield from (Key("", str(device)) for device in sorted(known_devices(reader)))
        return
    yield from sorted(reader.snapshot.of(_KINDS[kind]).keys())
    if kind == "pod":
        for eviction in reader.snapshot.of(EVICTION_RECORDS).values():
            yield Key(eviction.spec.pod.namespace, eviction.spec.pod.name)
    if kind == "rule":
        for taint in reader.snapshot.of(TAINT_RECORDS).values():
            yield Key("", taint.spec.rule.name)


def _beginning(keys: Iterable[Key], text: str) -> list[Key]:
    return [key for key in keys if key.name.startswith(text)]


def _similar(keys: list[Key], text: str) -> list[Key]:
    by_name = {key.name: key for key in keys[:_MAX_COMPARED]}
    forms: dict[str, str] = {}
    for name in by_name:
        for form in _forms(name):
            forms.setdefault(form, name)
    close = get_close_matches(text, list(forms), n=MAX_SUGGESTIONS, cutoff=0.7)
    return [by_name[forms[form]] for form in close]


def _forms(name: str) -> Iterator[str]:
    """Yield how people write a name: without its driver, without a generated suffix."""
    yield name
    yield name.split("/", 1)[-1]
    yield from (name.rsplit("-", parts)[0] for parts in (1, 2) if name.count("-") >= parts)
