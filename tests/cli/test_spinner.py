"""A line that is drawn while people wait, and is gone afterwards."""

from __future__ import annotations

import io
from threading import Event

import pytest

from sully.cli.output.spinner import spinner
from sully.testing.patience import PATIENCE

ERASED = "\r\x1b[1A\x1b[2K"
"""How rich removes the line."""


class Screen(io.StringIO):
    """A terminal that records when something was drawn on it."""

    def __init__(self, *, is_terminal: bool = True) -> None:
        super().__init__()
        self._is_terminal = is_terminal
        self.drawn = Event()

    def isatty(self) -> bool:
        return self._is_terminal

    def flush(self) -> None:
        super().flush()
        self.drawn.set()


def test_what_takes_long_is_reported_and_then_taken_back() -> None:
    screen = Screen()

    with spinner(lambda: "planning", screen, after=0):
        assert screen.drawn.wait(PATIENCE)

    assert " planning\n" in screen.getvalue()
    assert screen.getvalue().endswith(ERASED)


def test_it_is_taken_back_also_when_something_fails() -> None:
    screen = Screen()

    def fail() -> None:
        with spinner(lambda: "planning", screen, after=0):
            assert screen.drawn.wait(PATIENCE)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert screen.getvalue().endswith(ERASED)


CASES = {
    "it is soon done": (Screen(), 3600.0),
    "nobody looks": (Screen(is_terminal=False), 0.0),
}


@pytest.mark.parametrize(("screen", "after"), CASES.values(), ids=CASES)
def test_nothing_is_drawn(screen: Screen, after: float) -> None:
    with spinner(lambda: "planning", screen, after=after):
        pass

    assert screen.getvalue() == ""
