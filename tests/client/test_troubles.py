"""Outages are told of once, and once more when they are over."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from sully.client.informers.outages import Troubles
from sully.client.transport import UnreachableError
from sully.machinery.errors import Forbidden, NotFound, ServiceUnavailable
from sully.testing.clock import FakeClock

AWAY, BUSY = UnreachableError("refused"), ServiceUnavailable("no")
DENIED, UNKNOWN = Forbidden("no"), NotFound("no")

Step = tuple[str, Exception | None]
CASES: dict[str, tuple[list[Step], list[bool], list[str]]] = {
    # who fails with what (or works), what of that is news, what is said when it is over
    "one": ([("a", AWAY), ("a", None)], [True], ["the server answers again"]),
    "again and again": ([("a", AWAY)] * 3, [True, False, False], []),
    "all of them": (
        [("a", AWAY), ("b", AWAY), ("c", BUSY), ("a", None), ("c", None), ("b", None)],
        [True, False, False],
        ["the server answers again"],
    ),
    "some still suffer": ([("a", AWAY), ("b", AWAY), ("a", None)], [True, False], []),
    "two outages": (
        [("a", AWAY), ("a", None), ("b", AWAY), ("b", None)],
        [True, True],
        ["the server answers again"] * 2,
    ),
    "each has its own refusal": (
        [("a", DENIED), ("b", DENIED), ("a", UNKNOWN), ("b", DENIED), ("b", None)],
        [True, True, True, False],
        ["works again"],
    ),
    "an outage beside a refusal that lasts": (
        [("a", DENIED), ("b", AWAY), ("b", None)],
        [True, True],
        ["the server answers again"],
    ),
    "from one to the other": (
        [("a", AWAY), ("a", DENIED), ("a", None)],
        [True, True],
        ["works again"],
    ),
    "nobody suffers": ([("a", None)], [], []),
}


@pytest.mark.parametrize(("steps", "news", "said"), CASES.values(), ids=CASES.keys())
def test_what_is_news(steps: list[Step], news: list[bool], said: list[str]) -> None:
    troubles, found = Troubles(FakeClock()), []
    with capture_logs() as lines:
        for who, error in steps:
            if error is None:
                troubles.over(who, who)
            else:
                found.append(troubles.began(who, error))

    assert found == news
    assert [line["event"] for line in lines] == said


def test_who_leaves_does_not_hide_the_next_outage() -> None:
    troubles = Troubles(FakeClock())
    troubles.began("a", AWAY)
    troubles.forget("a")

    assert troubles.began("b", AWAY)


def test_who_has_nothing_to_ask_any_more_does_not_end_an_outage() -> None:
    troubles = Troubles(FakeClock())
    with capture_logs() as lines:
        news = [troubles.began("a", AWAY)]
        troubles.relieved("a")
        news.append(troubles.began("b", AWAY))
        troubles.heard()
        during = list(lines)
        troubles.over("b", "b")

    assert (news, during) == ([True, False], [])
    assert [line["event"] for line in lines] == ["the server answers again"]


def test_a_word_of_the_server_ends_an_outage_that_nobody_suffers_from() -> None:
    troubles = Troubles(FakeClock())
    with capture_logs() as lines:
        troubles.began("a", AWAY)
        troubles.relieved("a")
        troubles.heard()
        troubles.heard()
        again = troubles.began("a", AWAY)

    assert [line["event"] for line in lines] == ["the server answers again"]
    assert again


async def test_the_first_who_is_answered_calls_the_others() -> None:
    troubles = Troubles(FakeClock())
    for who in "ab":
        troubles.began(who, AWAY)
    troubles.began("c", DENIED)
    waiting = asyncio.ensure_future(troubles.answered())
    await asyncio.sleep(0)
    troubles.over("c", "c")
    await asyncio.sleep(0)
    assert not waiting.done()
    troubles.over("a", "a")

    await waiting


def test_how_long_it_lasted() -> None:
    clock = FakeClock()
    troubles = Troubles(clock)
    troubles.began("a", AWAY)
    clock.advance(12)
    with capture_logs() as lines:
        troubles.over("a", "a")

    assert lines[0]["after"] == 12
