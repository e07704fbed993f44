"""Long work lets others run, and not more often than needed."""

from __future__ import annotations

import asyncio

import pytest

from sully.dashboard.slicing import SLICE_SECONDS, in_slices
from sully.testing.clock import FakeClock


@pytest.mark.parametrize(
    ("slices_per_item", "turns"), [(0, 0), (0.6, 4), (1.5, 8), (3, 8)], ids=str
)
async def test_others_have_a_turn_after_each_slice(slices_per_item: float, turns: int) -> None:
    clock, others = FakeClock(), 0
    ends = asyncio.Event()

    async def other() -> None:
        nonlocal others
        while not ends.is_set():
            others += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(other())
        items = []
        async for item in in_slices(range(8), clock, clock.monotonic):
            items.append(item)
            clock.advance(slices_per_item * SLICE_SECONDS)
        ends.set()

    assert items == list(range(8))
    assert others == turns
