from __future__ import annotations

import asyncio

import pytest

from sully.runtime.tasks import wait_first


async def forever(log: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        log.append("ended")


async def test_the_others_have_ended_when_the_first_is_over() -> None:
    log: list[str] = []

    await wait_first(forever(log), asyncio.sleep(0), forever(log))

    assert log == ["ended", "ended"]


async def test_an_error_of_the_first_is_raised() -> None:
    async def fail() -> None:
        raise LookupError("gone")

    log: list[str] = []
    with pytest.raises(LookupError):
        await wait_first(forever(log), fail())
    assert log == ["ended"]


async def test_nothing_is_left_behind_by_a_cancelled_wait() -> None:
    log: list[str] = []
    waiting = asyncio.ensure_future(wait_first(forever(log), forever(log)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert log == ["ended", "ended"]
