"""How fresh a cache is: what confirms it, what does not, and how that ages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from sully.client.informers.freshness import InformerFreshness
from sully.client.transport import UnreachableError
from sully.runtime.clock import Moment
from sully.testing.clock import FakeClock

BOUND = 90.0
BROKEN = UnreachableError("reset")


@dataclass
class Line:
    """The freshness of an informer, with what can happen to it."""

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.freshness = InformerFreshness(self.clock)
        self.events = 0
        self.freshness.on_confirmed(self._confirmed)

    def _confirmed(self) -> None:
        self.events += 1

    def play(self, story: str) -> None:
        for word in story.split():
            if word.isdigit():
                self.clock.advance(int(word))
            else:
                self._happens(word)

    def _happens(self, word: str) -> None:
        steps: dict[str, Callable[[], None]] = {
            "list": lambda: self.freshness.confirmed(Moment.of(self.clock)),
            "bookmark": lambda: self.freshness.confirmed(Moment.of(self.clock)),
            "event": self.freshness.event_received,
            "ends": self.freshness.watch_ended,
            "stalled": lambda: self.freshness.watch_ended(stalled=True),
            "breaks": lambda: self.freshness.failed(BROKEN),
            "opens": self.freshness.watch_opened,
        }
        steps[word]()


CASES: dict[str, tuple[str, bool, float, bool]] = {
    # what happens, whether the copy is fresh, its age, whether it is connected
    "nothing yet": ("", False, float("inf"), True),
    "a list": ("list 90", True, 90, True),
    "a list that is too old": ("list 91", False, 91, True),
    "events of the same watch": ("list 80 event 80 event 80", True, 80, True),
    "a bookmark": ("list 80 bookmark 80", True, 80, True),
    "a watch that ended is not gone": ("list 60 ends opens 20", True, 80, True),
    "its events come late": ("list 60 ends opens 20 event 20", False, 100, True),
    "until a bookmark": ("list 60 ends opens event 5 bookmark 5", True, 5, True),
    "a break": ("list 5 breaks", False, 5, False),
    "it is open again": ("list 5 breaks opens", False, 5, True),
    "events that were missed": ("list 5 breaks opens event", False, 5, True),
    "a bookmark after a break": ("list 5 breaks opens event bookmark", True, 0, True),
    "a list after a break": ("list 5 breaks list 7", True, 7, True),
    "a stall": ("list 5 stalled", False, 5, True),
    "a stall, then an event": ("list 5 stalled opens event", False, 5, True),
    "a stall, then a bookmark": ("list 5 stalled opens bookmark", True, 0, True),
}


@pytest.mark.parametrize(("story", "fresh", "age", "connected"), CASES.values(), ids=CASES.keys())
def test_how_sure_it_is(story: str, fresh: bool, age: float, connected: bool) -> None:
    line = Line()
    line.play(story)

    assert line.freshness.is_fresh(BOUND) == fresh
    assert line.freshness.age == age
    assert (line.freshness.problem is None) == connected
    assert line.events == story.count("list") + story.count("bookmark")


def test_a_machine_that_slept_was_away() -> None:
    class Slept(FakeClock):
        """Its steady clock stood still meanwhile."""

        def monotonic(self) -> float:
            return 0.0

    clock = Slept()
    freshness = InformerFreshness(clock)
    freshness.confirmed(Moment.of(clock))
    clock.advance(timedelta(hours=1).total_seconds())

    assert not freshness.is_fresh(BOUND)
