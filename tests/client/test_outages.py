"""Outages are reported once, and once more when they are over."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from sully.client.informers.outages import Outages
from sully.client.transport import UnreachableError
from sully.machinery.errors import Forbidden, NotFound, ServiceUnavailable
from sully.testing.clock import FakeClock

AWAY, BUSY = UnreachableError("refused"), ServiceUnavailable("no")
DENIED, UNKNOWN = Forbidden("no"), NotFound("no")

Step = tuple[str, Exception | None]
CASES: dict[str, tuple[list[Step], list[bool], list[str]]] = {
    # who fails with what (or works), whether it is reported, what is reported when it is over
    "one": ([("a", AWAY), ("a", None)], [True], ["server is reachable again"]),
    "again and again": ([("a", AWAY)] * 3, [True, False, False], []),
    "all of them": (
        [("a", AWAY), ("b", AWAY), ("c", BUSY), ("a", None), ("c", None), ("b", None)],
        [True, False, False],
        ["server is reachable again"],
    ),
    "some still suffer": ([("a", AWAY), ("b", AWAY), ("a", None)], [True, False], []),
    "two outages": (
        [("a", AWAY), ("a", None), ("b", AWAY), ("b", None)],
        [True, True],
        ["server is reachable again"] * 2,
    ),
    "each has its own refusal": (
        [("a", DENIED), ("b", DENIED), ("a", UNKNOWN), ("b", DENIED), ("b", None)],
        [True, True, True, False],
        ["recovered"],
    ),
    "an outage beside a refusal that lasts": (
        [("a", DENIED), ("b", AWAY), ("b", None)],
        [True, True],
        ["server is reachable again"],
    ),
    "from one to the other": (
        [("a", AWAY), ("a", DENIED), ("a", None)],
        [True, True],
        ["recovered"],
    ),
    "nobody suffers": ([("a", None)], [], []),
}


@pytest.mark.parametrize(("steps", "first", "reported"), CASES.values(), ids=CASES.keys())
def test_what_is_reported_first(steps: list[Step], first: list[bool], reported: list[str]) -> None:
    outages, result = Outages(FakeClock()), []
    with capture_logs() as lines:
        for who, error in steps:
            if error is None:
                outages.recovered(who, who)
            else:
                result.append(outages.failed(who, error))

    assert result == first
    assert [line["event"] for line in lines] == reported


def test_a_cancelled_call_does_not_hide_the_next_outage() -> None:
    outages = Outages(FakeClock())
    outages.failed("a", AWAY)
    outages.forget("a")

    assert outages.failed("b", AWAY)


def test_who_has_nothing_to_ask_any_more_does_not_end_an_outage() -> None:
    outages = Outages(FakeClock())
    with capture_logs() as lines:
        first = [outages.failed("a", AWAY)]
        outages.cleared("a")
        first.append(outages.failed("b", AWAY))
        outages.server_answered()
        during = list(lines)
        outages.recovered("b", "b")

    assert (first, during) == ([True, False], [])
    assert [line["event"] for line in lines] == ["server is reachable again"]


def test_a_word_of_the_server_ends_an_outage_that_nobody_suffers_from() -> None:
    outages = Outages(FakeClock())
    with capture_logs() as lines:
        outages.failed("a", AWAY)
        outages.cleared("a")
        outages.server_answered()
        outages.server_answered()
        again = outages.failed("a", AWAY)

    assert [line["event"] for line in lines] == ["server is reachable again"]
    assert again


async def test_the_first_who_is_answered_calls_the_others() -> None:
    outages = Outages(FakeClock())
    for who in "ab":
        outages.failed(who, AWAY)
    outages.failed("c", DENIED)
    waiting = asyncio.ensure_future(outages.wait_answered())
    await asyncio.sleep(0)
    outages.recovered("c", "c")
    await asyncio.sleep(0)
    assert not waiting.done()
    outages.recovered("a", "a")

    await waiting


def test_how_long_it_lasted() -> None:
    clock = FakeClock()
    outages = Outages(clock)
    outages.failed("a", AWAY)
    clock.advance(12)
    with capture_logs() as lines:
        outages.recovered("a", "a")

    assert lines[0]["after"] == 12
