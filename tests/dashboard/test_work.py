"""How much a viewer can make the dashboard do at the same time, and what is done with the rest."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from dashboard.page import Browser, dashboard
from sully.cli.dashboard.queries import MAX_EXPRESSIONS
from sully.dashboard.http import HttpError
from sully.dashboard.stream import MAX_STREAMS
from sully.dashboard.work import Work, WorkLimits

READ = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
FLOOD = 60
SELECT = "/api/select?cel=true"


class Gate:
    """Work that ends on demand."""

    def __init__(self) -> None:
        self.begun = 0
        self.started = threading.Event()
        self.open = threading.Event()

    def work(self) -> None:
        self.begun += 1
        self.started.set()
        self.open.wait()


async def _settle() -> None:
    """Let everything run that can."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_flood_of_one_viewer_is_refused_and_others_are_served() -> None:
    async with dashboard() as page:
        viewer = Browser(page.app)
        await viewer.login(token=await page.token("reader", READ))
        admin = await page.signed_in()
        await viewer.get("/api/pending")
        gate = Gate()
        user = next(x for x in page.app.sessions.viewers() if x.user.endswith(":reader"))

        async def held() -> None:
            async with page.app.work.seat(user.owner):
                await user.work.run(gate.work)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(page.app.work.limits.per_user):
                tasks.create_task(held())
            await _settle()
            flood = [tasks.create_task(viewer.get(SELECT)) for _ in range(FLOOD)]
            other = await admin.get("/api/session")
            # The threads of the server are not those of the dashboard.
            await asyncio.to_thread(lambda: None)
            await _settle()
            refused = [x.result() for x in flood if x.done()]
            gate.open.set()
        codes = Counter(x.result().code for x in flood)

    assert other.code == 200
    assert {(x.code, x.headers["retry-after"]) for x in refused} == {(429, "5")}
    assert codes == {200: page.app.work.limits.waiting, 429: FLOOD - page.app.work.limits.waiting}


async def test_the_work_of_a_client_that_is_gone_is_not_done() -> None:
    async with dashboard() as page:
        viewer = await page.signed_in()
        await viewer.get("/api/pending")
        gate = Gate()
        user = page.app.sessions.viewers()[0]
        async with asyncio.TaskGroup() as tasks:
            for _ in range(page.app.work.limits.total):
                tasks.create_task(user.work.run(gate.work))
            flood = [tasks.create_task(viewer.get(SELECT)) for _ in range(FLOOD)]
            await _settle()
            viewer.gone.set()
            responses = await asyncio.gather(*flood)
            gate.open.set()

    assert {answer.code for answer in responses} == {0, 429}


async def test_open_pages_of_a_viewer_are_limited() -> None:
    async with dashboard() as page:
        viewer = await page.signed_in()
        await viewer.get("/api/pending")
        async with asyncio.TaskGroup() as tasks:
            pages = [tasks.create_task(viewer.get("/api/stream")) for _ in range(MAX_STREAMS)]
            await _settle()
            refused = await viewer.get("/api/stream")
            viewer.gone.set()
        again = await viewer.get("/api/stream")

    assert (refused.code, refused.headers["retry-after"]) == (429, "60")
    assert {one.result().code for one in pages} == {again.code} == {200}


async def test_expressions_in_one_request_are_limited() -> None:
    async with dashboard() as page:
        viewer = await page.signed_in()
        few, many, far_too_many = [
            await viewer.get("/api/select?" + "&".join(["cel=true"] * number))
            for number in (MAX_EXPRESSIONS, MAX_EXPRESSIONS + 1, 101)
        ]

    assert few.code == 200
    assert (many.code, many.json) == (400, {"error": "more than 8 expressions (cel)"})
    assert (far_too_many.code, far_too_many.json) == (400, {"error": "more than 100 parameters"})


async def test_work_that_has_begun_keeps_its_seat() -> None:
    work, gate = Work(WorkLimits(per_user=1, total=1, waiting=1)), Gate()

    async def ask() -> None:
        async with work.seat("a"):
            await work.run(gate.work)

    first = asyncio.ensure_future(ask())
    await asyncio.to_thread(gate.started.wait)
    first.cancel()
    second = asyncio.ensure_future(ask())
    await _settle()
    begun = gate.begun
    with pytest.raises(HttpError):
        await ask()
    gate.open.set()
    await second
    with suppress(asyncio.CancelledError):
        await first
    work.close()

    assert (begun, first.cancelled(), gate.begun) == (1, True, 2)


async def test_a_request_does_not_wait_indefinitely() -> None:
    work = Work(WorkLimits(per_user=2, total=1, seconds=0.01))
    async with work.seat("a"):
        with pytest.raises(HttpError) as refused:
            async with work.seat("b"):
                pass
    work.close()

    assert refused.value.code == 429


async def test_what_is_not_ready_takes_no_turn() -> None:
    work, ready = Work(WorkLimits(per_user=1, total=1)), asyncio.Event()
    seen: list[Any] = []

    async def wait() -> None:
        await ready.wait()

    async def later() -> None:
        async with work.seat("a", wait):
            seen.append("later")

    task = asyncio.ensure_future(later())
    await _settle()
    async with work.seat("a"):
        seen.append("now")
    ready.set()
    await task
    work.close()

    assert seen == ["now", "later"]


async def test_closing_forgets_what_has_not_begun() -> None:
    work, gate = Work(WorkLimits(total=1)), Gate()
    tasks = [asyncio.ensure_future(work.run(gate.work)) for _ in range(3)]
    await asyncio.to_thread(gate.started.wait)
    work.close()
    gate.open.set()
    ends = await asyncio.gather(*tasks, return_exceptions=True)

    assert gate.begun == 1
    assert [type(end) for end in ends] == [
        type(None),
        asyncio.CancelledError,
        asyncio.CancelledError,
    ]
