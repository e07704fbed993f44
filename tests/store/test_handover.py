from __future__ import annotations

from collections.abc import Callable

import pytest

from sully.store.sqlite.handover import Handover


class Timers:
    """An event loop whose timers fire on demand."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self._next: Callable[[], None] | None = None

    def call_later(self, delay: float, callback: Callable[[int], None], argument: int) -> None:
        assert self._next is None, "one timer at a time is enough"
        self.delays.append(delay)
        self._next = lambda: callback(argument)

    def fire(self) -> None:
        fired, self._next = self._next, None
        assert fired is not None
        fired()

    @property
    def armed(self) -> bool:
        return self._next is not None


@pytest.fixture
def timers() -> Timers:
    return Timers()


@pytest.fixture
def handover(timers: Timers) -> Handover:
    return Handover(timers.call_later)


def test_it_rests_when_all_jobs_are_reported(timers: Timers, handover: Handover) -> None:
    handover.submitted()
    handover.submitted()
    handover.reported(2)

    timers.fire()

    assert not timers.armed
    handover.submitted()
    assert timers.armed


def test_jobs_that_move_change_nothing(timers: Timers, handover: Handover) -> None:
    for _ in range(10):
        handover.submitted()
        handover.submitted()
        handover.reported(1)
        timers.fire()

    assert len(set(timers.delays)) == 1


def test_a_writer_that_does_not_use_its_turn_gets_it_less_often(
    timers: Timers, handover: Handover
) -> None:
    handover.submitted()
    for _ in range(9):
        timers.fire()

    assert timers.delays == pytest.approx(
        [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.064, 0.064, 0.064]
    )


def test_a_writer_that_uses_its_turn_gets_it_more_often(timers: Timers, handover: Handover) -> None:
    handover.submitted()
    for _ in range(3):
        timers.fire()
    handover.posted()
    for _ in range(4):
        timers.fire()

    assert timers.delays[3:] == pytest.approx([0.008, 0.004, 0.002, 0.001, 0.001])
