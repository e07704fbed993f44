"""The checks of `tools/crashes` find what they are for: each case is a server that lied."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from crashes.checks import Seen, problems
from crashes.journal import Event, Journal, Name, Write, body

A, B = Name("default", "w0-0"), Name("round-1-5-1", "c0")


def listed(*events: Event) -> dict[str, Any]:
    """Return the list that holds these states."""
    items = []
    for event in events:
        item = body(event.name, event.number)
        item["metadata"] |= {
            "namespace": event.name.namespace,
            "resourceVersion": str(event.revision),
        }
        items.append(item)
    return {"metadata": {"resourceVersion": "99"}, "items": items}


def namespaces(*names: str) -> dict[str, Any]:
    return {"items": [{"metadata": {"name": name}} for name in ("default", *names)]}


FIRST = Event("ADDED", A, 11, 1)
SECOND = Event("MODIFIED", A, 12, 2)


@dataclass
class World:
    """A round in which all went well: two writes acknowledged, one in doubt."""

    journal: Journal = field(default_factory=Journal)
    seen: Seen = field(
        default_factory=lambda: Seen(
            before={},
            recorded=[FIRST],
            replayed=[FIRST, SECOND],
            partial={11: [SECOND]},
            listed=listed(SECOND),
            namespaces=namespaces(),
        )
    )

    def __post_init__(self) -> None:
        for event in (FIRST, SECOND):
            write = Write(A, event.kind, event.number)
            self.journal.send(write)
            self.journal.acknowledge(write, event.revision)
        self.journal.send(Write(A, "MODIFIED", 3))


THIRD = Event("MODIFIED", A, 13, 3)


def done(world: World) -> None:
    world.seen.replayed.append(THIRD)
    world.seen.partial[11].append(THIRD)
    world.seen.listed = listed(THIRD)


def test_what_went_well_is_not_a_problem() -> None:
    assert list(problems(World().journal, World().seen)) == []
    also = World()
    done(also)
    assert list(problems(also.journal, also.seen)) == []


def lost(world: World) -> None:
    world.seen.replayed = [FIRST]
    world.seen.partial = {}
    world.seen.listed = listed(FIRST)


def lost_from_the_list(world: World) -> None:
    world.seen.listed = listed()


def half(world: World) -> None:
    world.seen.replayed.append(Event("MODIFIED", A, 13, -1))


def from_nowhere(world: World) -> None:
    world.seen.replayed.append(Event("MODIFIED", A, 13, 77))


def twice(world: World) -> None:
    done(world)
    world.seen.replayed.append(Event("MODIFIED", A, 14, 3))


def another_revision(world: World) -> None:
    world.seen.replayed = [FIRST, Event("MODIFIED", A, 14, 2)]


def with_another_event(world: World) -> None:
    world.seen.recorded = [Event("ADDED", A, 10, 1)]


def told_and_forgotten(world: World) -> None:
    world.seen.recorded = [FIRST, SECOND, THIRD]


def skipped(world: World) -> None:
    world.seen.partial = {10: [SECOND]}


def old_in_the_list(world: World) -> None:
    world.seen.listed = listed(FIRST)


def out_of_order(world: World) -> None:
    world.seen.replayed = [SECOND, FIRST]


def not_deleted(world: World) -> None:
    world.journal.namespaces["round-1-5-1"] = "deleted"
    world.seen.namespaces = namespaces("round-1-5-1")


def namespace_lost(world: World) -> None:
    world.journal.namespaces["round-1-5-1"] = "active"


def orphan(world: World) -> None:
    left = Event("ADDED", B, 14, 5)
    world.seen.before[B] = left
    world.seen.listed = listed(SECOND, left)


CASES: dict[str, tuple[Callable[[World], None], str]] = {
    "an acknowledged write is lost": (lost, "LOST"),
    "an object is not in the list": (lost_from_the_list, "LOST"),
    "half a write": (half, "incomplete object"),
    "a write of nobody": (from_nowhere, "no client requested"),
    "a write in doubt happened twice": (twice, "no client requested"),
    "a write has another revision": (another_revision, "was acknowledged"),
    "an event is reported differently": (with_another_event, "differs from what was seen"),
    "an event was reported and forgotten": (told_and_forgotten, "differs from what was seen"),
    "a watch leaves one out": (skipped, "replay after 10 differs"),
    "the list is old": (old_in_the_list, "the list has"),
    "events out of order": (out_of_order, "came after"),
    "a namespace is still there": (not_deleted, "still exists"),
    "a namespace is lost": (namespace_lost, "LOST namespace"),
    "an object without a namespace": (orphan, "does not exist"),
}


@pytest.mark.parametrize(("breach", "text"), CASES.values(), ids=CASES.keys())
def test_a_breach_is_found(breach: Callable[[World], None], text: str) -> None:
    world = World()
    breach(world)

    assert text in " | ".join(problems(world.journal, world.seen))
