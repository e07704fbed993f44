"""When pods that a budget keeps ask again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.building import machines, planned, put, rule, running
from planning.test_budgets import BUDGET_EFFECT, budget
from planning.test_rehearsal import WEB
from sully.client.transport import Key
from sully.controllers.eviction.controller import REFUSED
from sully.planning.budgets import Gate
from sully.planning.timeline import Timeline
from sully.planning.turnedaway import Rhythm, TurnedAway
from sully.testing.clock import NOON

GATE = Gate(Key("a", "pdb"), ready=True)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


@given(tries=st.integers(1, 12), after=st.integers(0, 500))
def test_who_asks_again_does_so_as_if_refused_all_the_time(tries: int, after: int) -> None:
    ask, refused = NOON + seconds(REFUSED.delay(tries)), tries
    while ask <= NOON + seconds(after):
        refused += 1
        ask += seconds(REFUSED.delay(refused))

    assert Rhythm(NOON, tries).next_ask(NOON + seconds(after)) == (ask, refused)


class Front:
    """A gate with some room, and pods in front of it."""

    def __init__(self) -> None:
        self.room = 0
        self.timeline = Timeline(NOON)
        self.asked: list[tuple[str, float]] = []
        self.away = TurnedAway(self.timeline, self._ask, lambda _: self.room)

    def _ask(self, key: Key) -> None:
        self.away.looked_at(key)
        self.asked.append((key.name, self.timeline.monotonic()))
        self.room -= 1

    def refuse(self, *names: str) -> None:
        for name in names:
            self.away.refused(Key("a", name), GATE)

    def open(self, room: int) -> None:
        self.room += room
        self.away.opened(GATE)

    def pass_(self, until: float) -> None:
        while self.timeline.leap(NOON + seconds(until)):
            pass


@pytest.mark.parametrize(
    ("room", "want"),
    [
        (0, []),
        (1, [("p1", 1.0)]),
        (2, [("p1", 1.0), ("p2", 1.0)]),
        (9, [("p1", 1.0), ("p2", 1.0), ("p3", 1.0)]),
    ],
)
def test_as_many_ask_as_there_is_room(room: int, want: list[tuple[str, float]]) -> None:
    front = Front()
    front.refuse("p1", "p2", "p3")
    front.open(room)
    front.pass_(600)

    assert front.asked == want


def test_room_that_comes_late_is_taken_at_the_next_time_of_whoever_waits() -> None:
    front = Front()
    front.refuse("p1", "p2")
    # They would ask after 1, 3, 7, 15, 31 and 61 seconds, and then every 30.
    front.timeline.at(NOON + seconds(40), lambda: front.open(1))
    front.timeline.at(NOON + seconds(62), lambda: front.open(1))
    front.pass_(600)

    assert front.asked == [("p1", 61.0), ("p2", 91.0)]


def test_a_pod_for_which_nobody_asks_a_budget_any_more_asks_at_its_own_time() -> None:
    front = Front()
    front.away.refused(Key("a", "p1"), GATE, NOON + seconds(4))
    front.pass_(600)

    assert front.asked == [("p1", 7.0)]


def test_however_many_a_budget_keeps_all_leave_in_the_end() -> None:
    number = 60
    objects = [*machines("n1", "n2", devices=number), budget(1)]
    for index in range(number):
        labels = {"app": "web"}
        pod = running(f"p{index}", "n1", f"gpu-{index}", owned_by=WEB, labels=labels, cpu="0.05")
        objects += pod
    plan = planned(objects, put(rule(effect=BUDGET_EFFECT, pool="n1")))

    assert [each.landing.node for each in plan.departures] == ["n2"] * number
    assert plan.departures[-1].after == 61 + 30 * (number - 7)
    assert not plan.stays
