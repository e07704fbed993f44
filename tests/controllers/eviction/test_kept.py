"""Who is woken when a budget has room, line by line."""

from __future__ import annotations

import pytest

from sully.client.transport import Key
from sully.controllers.eviction.kept import Gate, Lines

GATE = Gate(Key("a", "pdb"), ready=True)
OTHER = Gate(Key("a", "pdb"), ready=False)


class Front:
    """Three pods in front of a gate."""

    def __init__(self) -> None:
        self.woken: list[str] = []
        self.lines = Lines(lambda key: self.woken.append(key.name))
        for name in ("p1", "p2", "p3"):
            self.refuse(name)

    def refuse(self, name: str, gate: Gate = GATE) -> None:
        self.lines.add(Key("a", name), (gate,))

    def stays(self, name: str) -> None:
        self.lines.stays(Key("a", name))

    def left(self, name: str) -> None:
        self.lines.left(Key("a", name))

    def open(self, room: int, gate: Gate = GATE) -> list[str]:
        """Make room; return who was woken since the last time."""
        self.lines.open(gate, room)
        found, self.woken[:] = [*self.woken], ()
        return found


@pytest.mark.parametrize("room", range(5))
def test_as_many_are_woken_as_there_is_room(room: int) -> None:
    assert Front().open(room) == ["p1", "p2", "p3"][:room]


def test_another_gate_is_for_others() -> None:
    front = Front()
    front.refuse("p4", OTHER)

    assert front.open(9, OTHER) == ["p4"]
    assert front.open(9) == ["p1", "p2", "p3"]


def test_who_asks_by_itself_keeps_its_place() -> None:
    front = Front()
    front.refuse("p1")

    assert front.open(1) == ["p1"]


def test_who_found_no_gate_gets_its_place_later() -> None:
    front = Front()
    front.lines.add(Key("a", "p0"), ())
    front.refuse("p0")

    assert front.open(9) == ["p1", "p2", "p3", "p0"]


def test_who_was_woken_in_vain_goes_to_the_end() -> None:
    front = Front()
    front.open(1)
    front.refuse("p1")

    assert front.open(9) == ["p2", "p3", "p1"]


def test_who_left_took_its_room_and_who_stays_leaves_it_to_the_next() -> None:
    front = Front()
    assert front.open(1) == ["p1"]
    front.left("p1")
    assert front.woken == []

    assert front.open(1) == ["p2"]
    front.stays("p2")

    assert front.woken == ["p3"]


def test_who_waits_for_nothing_any_more_is_not_woken() -> None:
    front = Front()
    front.stays("p1")
    front.left("p2")

    assert front.open(9) == ["p3"]
