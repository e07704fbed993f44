"""A copy that is ahead of its cache: answers of the server count immediately, old events do not."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

import fleets
from sully.api.cluster.types import (
    PlacementDecision,
)
from sully.client.informers.cache import Cache
from sully.client.transport import WatchEvent
from sully.views.fleet_kinds import DECISIONS
from sully.views.mutation_cache import MutationCache


def decision(version: int, *clusters: str, uid: str = "one") -> PlacementDecision:
    made = fleets.decision("d", *clusters)
    metadata = replace(made.metadata, uid=uid, resource_version=str(version))
    return replace(made, metadata=metadata)


def watch_event(type_: Any, obj: PlacementDecision) -> WatchEvent[PlacementDecision]:
    return WatchEvent(type_, obj, obj.metadata.resource_version)


CREATED, FILLED = decision(1), decision(2, "a")
OTHER = decision(9, "b", uid="two")


class Scene:
    """A cache, a copy ahead of it, and what the copy reported."""

    def __init__(self) -> None:
        self.cache = Cache(DECISIONS)
        self.ahead = MutationCache(self.cache)
        self.notified: list[int] = []
        self.ahead.on_change(lambda _, new: self.notified.append(_version(new)))

    def now(self) -> list[int]:
        return [_version(item) for item in self.ahead.values()]


def _version(obj: PlacementDecision | None) -> int:
    return 0 if obj is None else int(obj.metadata.resource_version)


def test_an_answer_counts_before_its_event() -> None:
    scene = Scene()
    scene.ahead.mutated(CREATED)
    scene.ahead.mutated(FILLED)
    assert scene.now() == [2]
    scene.cache.change(watch_event("ADDED", CREATED))
    assert scene.now() == [2]
    scene.cache.change(watch_event("MODIFIED", FILLED))
    assert scene.now() == [2]
    assert scene.notified == [1, 2]


def test_an_event_counts_where_nothing_was_written() -> None:
    scene = Scene()
    scene.cache.replace([CREATED])
    scene.cache.change(watch_event("MODIFIED", FILLED))
    scene.cache.change(watch_event("DELETED", FILLED))
    assert scene.now() == []
    assert scene.notified == [1, 2, 0]


def test_an_answer_after_the_end_is_too_late() -> None:
    scene = Scene()
    scene.cache.change(watch_event("ADDED", CREATED))
    scene.cache.change(watch_event("DELETED", CREATED))
    scene.ahead.mutated(FILLED)
    assert scene.now() == []


def test_what_was_deleted_does_not_return_with_old_events() -> None:
    scene = Scene()
    scene.cache.change(watch_event("ADDED", CREATED))
    scene.ahead.deleted(CREATED)
    scene.cache.change(watch_event("MODIFIED", FILLED))
    assert scene.now() == []
    scene.cache.change(watch_event("DELETED", FILLED))
    scene.cache.change(watch_event("ADDED", OTHER))
    assert scene.now() == [9]


def test_the_end_of_a_namesake_is_not_the_end() -> None:
    scene = Scene()
    scene.cache.change(watch_event("ADDED", CREATED))
    scene.ahead.mutated(OTHER)
    scene.cache.change(watch_event("DELETED", CREATED))
    assert scene.now() == [9]


ANSWERS = ("answer created", "answer filled")
EVENTS = ("event created", "event filled")


def in_order(steps: tuple[str, ...]) -> bool:
    """Keep the orders that can be: answers come in turn, and so do events."""
    return all([step for step in steps if step in line] == list(line) for line in (ANSWERS, EVENTS))


@pytest.mark.parametrize(
    "steps", [*filter(in_order, permutations((*ANSWERS, *EVENTS)))], ids=", ".join
)
def test_answers_and_events_in_any_order(steps: tuple[str, ...]) -> None:
    scene = Scene()
    for step in steps:
        kind, what = step.split()
        obj = CREATED if what == "created" else FILLED
        if kind == "answer":
            scene.ahead.mutated(obj)
        else:
            scene.cache.change(watch_event("MODIFIED", obj))
    assert scene.now() == [2]
    assert scene.notified == [1, 2]
