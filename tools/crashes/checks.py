"""What must be true after a restart, given the journal and what a watcher saw before.

Each check yields the problems; a round without any passed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from crashes.journal import Event, Journal, Name, Write, name_of, number_of, revision_of


@dataclass(slots=True)
class Seen:
    """What clients saw before the kill, and what they see after the restart."""

    before: dict[Name, Event]
    """The state at the beginning of the round."""
    recorded: list[Event]
    """The watch until the kill."""
    replayed: list[Event]
    """The watch from the beginning of the round, after the restart."""
    partial: dict[int, list[Event]] = field(default_factory=dict)
    """Watches from later revisions, after the restart."""
    listed: dict[str, Any] = field(default_factory=dict)
    namespaces: dict[str, Any] = field(default_factory=dict)


def problems(journal: Journal, seen: Seen) -> Iterator[str]:
    """Yield everything that is wrong."""
    yield from _order(seen.replayed)
    yield from _replay(seen)
    yield from _writes(journal, seen)
    yield from _state(seen)
    yield from _namespaces(journal, seen)


def _order(events: Sequence[Event]) -> Iterator[str]:
    for one, two in pairwise(events):
        if two.revision < one.revision:
            yield f"watch: revision {two.revision} came after {one.revision}"
    for event in events:
        if event.number < 0:
            yield f"incomplete object: {event}"


def _replay(seen: Seen) -> Iterator[str]:
    prefix = seen.replayed[: len(seen.recorded)]
    if prefix != seen.recorded:
        yield f"replay differs from what was seen: {_difference(seen.recorded, prefix)}"
    for revision, events in seen.partial.items():
        want = [event for event in seen.replayed if event.revision > revision]
        if events != want:
            yield f"replay after {revision} differs: {_difference(want, events)}"


def _difference(want: Sequence[Event], got: Sequence[Event]) -> str:
    for number, (one, two) in enumerate(zip(want, got, strict=False)):
        if one != two:
            return f"event {number} was {one}, is {two}"
    return f"{len(want)} events were there, {len(got)} are"


def _writes(journal: Journal, seen: Seen) -> Iterator[str]:
    reported: dict[Name, list[Event]] = {}
    for event in seen.replayed:
        reported.setdefault(event.name, []).append(event)
    for name in reported.keys() | journal.acknowledged.keys() | journal.in_doubt.keys():
        certain = journal.acknowledged.get(name, [])
        yield from _writes_of(
            name, certain, journal.in_doubt.get(name), reported.get(name, []), journal
        )


def _writes_of(
    name: Name,
    certain: list[Write],
    doubtful: Write | None,
    reported: list[Event],
    journal: Journal,
) -> Iterator[str]:
    """Compare the history of one object with what was requested, in order."""
    for write, event in zip(certain, reported, strict=False):
        if not _matches(write, event):
            yield f"{name}: {write} was acknowledged, {event} happened"
            return
    if len(reported) < len(certain):
        yield f"LOST {name}: {certain[len(reported)]} was acknowledged"
        return
    rest = reported[len(certain) :]
    if rest and doubtful is not None and _matches(doubtful, rest[0]):
        rest = rest[1:]
    # An object is deleted with its namespace.
    if rest and journal.namespaces.get(name.namespace) in ("deleting", "deleted"):
        rest = rest[1:] if rest[0].kind == "DELETED" else rest
    if rest:
        yield f"{name}: no client requested {rest[0]}"


def _matches(write: Write, event: Event) -> bool:
    same = (write.kind, write.number) == (event.kind, event.number)
    return same and write.revision in (0, event.revision)


def _state(seen: Seen) -> Iterator[str]:
    """Check that the list is the result of the history, with the same revisions."""
    want = dict(seen.before)
    for event in seen.replayed:
        if event.kind == "DELETED":
            want.pop(event.name, None)
        else:
            want[event.name] = event
    listed = {name_of(item): item for item in seen.listed["items"]}
    top = revision_of(seen.listed)
    for name in want.keys() | listed.keys():
        if name not in listed:
            yield f"LOST {name}: {want[name]} is not in the list"
        elif name not in want:
            yield f"{name} is in the list and in no history"
        elif (revision_of(listed[name]), number_of(listed[name])) != want[name][2:]:
            yield f"{name}: the list has {listed[name]['metadata']}, the history {want[name]}"
        elif revision_of(listed[name]) > top:
            yield f"{name}: its revision is above that of the list, {top}"


def _namespaces(journal: Journal, seen: Seen) -> Iterator[str]:
    existing = {item["metadata"]["name"] for item in seen.namespaces["items"]}
    for name, state in journal.namespaces.items():
        if state == "active" and name not in existing:
            yield f"LOST namespace {name}: its creation was acknowledged"
        if state == "deleted" and name in existing:
            yield f"namespace {name} still exists: its deletion was acknowledged"
    for item in seen.listed["items"]:
        if item["metadata"]["namespace"] not in existing:
            yield f"{name_of(item)} is in a namespace that does not exist"
