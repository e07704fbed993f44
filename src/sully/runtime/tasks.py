"""Small patterns around tasks.

Tasks start in a `TaskGroup`; what is here never outlives the call that started it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


async def let_others_run() -> None:
    """Let other tasks run; no time passes if there are none."""
    await asyncio.sleep(0)


async def wait_first(*waits: Awaitable[object]) -> None:
    """Return when the first of these is over; the others are cancelled and have ended by then.

    An error of the first one is raised; that of a cancelled one is not.
    """
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        # Also if this task is cancelled, nothing may be left running.
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
