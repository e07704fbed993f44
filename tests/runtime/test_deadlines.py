"""A time limit that travels with the task."""

import asyncio
from math import inf

from sully.runtime.deadlines import seconds_left, within


async def asked() -> float:
    return seconds_left()


async def test_what_a_block_begins_knows_its_limit() -> None:
    with within(60):
        inside = asyncio.ensure_future(asked())
        with within(10):
            shorter = seconds_left()
        with within(3600):
            # Nobody gets more than the one who called.
            longer = seconds_left()
    outside = seconds_left()

    assert 50 < await inside <= 60
    assert 0 < shorter <= 10
    assert 50 < longer <= 60
    assert outside == inf


def test_the_time_can_be_over() -> None:
    with within(0):
        assert seconds_left() <= 0
