"""Requests to receivers, against real ones in this process."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from architecture.project import ROOT
from sully.controllers.notifications.metrics import NotificationMetrics
from sully.controllers.notifications.sender import ATTEMPTS, Notifier, SendError, post
from sully.domain.notifications.kinds import POLICY_STORM, TAINT_SET
from sully.domain.notifications.settings import Receiver, parse_settings
from sully.runtime.backoff import Backoff
from sully.runtime.metrics import Metrics
from sully.testing.clock import FakeClock

GUIDE = ROOT / "docs/guides/notifications.md"


class Inbox:
    """A receiver with given answers, and keeps what it gets."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.bodies: list[Any] = []
        self.headers: list[Any] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        code = self.codes.pop(0) if self.codes else 200
        self.bodies.append(await request.json())
        self.headers.append(request.headers)
        return web.Response(status=code, headers={"Location": self.url} if code == 302 else {})

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_post("/secret-path", self.handle)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/secret-path"
        try:
            yield
        finally:
            await runner.cleanup()


@asynccontextmanager
async def notifying(*receivers: Receiver) -> AsyncIterator[tuple[Notifier, FakeClock, Metrics]]:
    clock, metrics = FakeClock(), Metrics()
    backoff = Backoff(base=1.0, cap=1.0, jitter=0.0)
    notifier = Notifier(receivers, NotificationMetrics(metrics), clock, backoff)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(notifier.run())
        yield notifier, clock, metrics
        running.cancel()


async def until(metrics: Metrics, clock: FakeClock, line: str) -> None:
    """Let time pass until the metrics have a line."""
    while line not in metrics.render().decode().splitlines():
        await asyncio.sleep(0.005)
        clock.advance(1)


async def test_what_is_published_together_arrives_together() -> None:
    inbox = Inbox()
    async with inbox.served():
        ops = Receiver(name="ops", url=inbox.url)
        async with notifying(ops) as (notifier, clock, metrics):
            notifier.publish(TAINT_SET, "a", "one")
            notifier.publish(TAINT_SET, "b", "two")
            await until(
                metrics, clock, 'sully_notifications_sent_total{kind="TaintSet",receiver="ops"} 1.0'
            )
    (body,) = inbox.bodies
    assert [one["about"] for one in body["notifications"]] == ["a", "b"]


async def test_failures_are_retried_and_then_given_up_and_the_next_is_sent() -> None:
    inbox = Inbox(*([503] * ATTEMPTS))
    async with inbox.served():
        ops = Receiver(name="ops", url=inbox.url)
        async with notifying(ops) as (notifier, clock, metrics):
            notifier.publish(TAINT_SET, "a", "one")
            await until(metrics, clock, 'sully_notifications_failed_total{receiver="ops"} 1.0')
            notifier.publish(POLICY_STORM, "p", "storm")
            await until(
                metrics,
                clock,
                'sully_notifications_sent_total{kind="PolicyStorm",receiver="ops"} 1.0',
            )
    assert len(inbox.bodies) == ATTEMPTS + 1


async def test_a_dead_receiver_does_not_delay_another() -> None:
    inbox = Inbox()
    async with inbox.served():
        dead = Receiver(name="dead", url="http://127.0.0.1:1/")
        live = Receiver(name="live", url=inbox.url)
        async with notifying(dead, live) as (notifier, clock, metrics):
            for number in range(1010):
                notifier.publish(TAINT_SET, f"rule-{number}", "set")
            await until(
                metrics,
                clock,
                'sully_notifications_sent_total{kind="TaintSet",receiver="live"} 1.0',
            )
            await until(metrics, clock, 'sully_notifications_failed_total{receiver="dead"} 1.0')
            assert 'sully_notifications_dropped_total{receiver="dead"} 10.0' in (
                metrics.render().decode()
            )
    assert inbox.bodies[0]["count"] == 1000


async def test_secrets_come_from_files(tmp_path: Path) -> None:
    inbox = Inbox()
    async with inbox.served():
        (tmp_path / "url").write_text(f"{inbox.url}\n")
        (tmp_path / "token").write_text("s3cret\n")
        receiver = Receiver(
            name="ops", url_file=str(tmp_path / "url"), token_file=str(tmp_path / "token")
        )
        await post(receiver, {"text": "x"})
    assert inbox.headers[0]["Authorization"] == "Bearer s3cret"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "FileNotFoundError"),
        ("", "one line"),
        ("two words", "one line"),
        ("http://example.com/s3cret", "https"),
        ("https://169.254.169.254/s3cret", "link-local"),
    ],
)
async def test_bad_secrets_are_refused_without_being_shown(
    tmp_path: Path, content: str | None, text: str
) -> None:
    path = tmp_path / "url"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SendError, match=text) as error:
        await post(Receiver(name="ops", url_file=str(path)), {})
    assert "s3cret" not in str(error.value)


async def test_redirects_are_not_followed_and_errors_do_not_name_the_url() -> None:
    inbox = Inbox(302)
    async with inbox.served():
        with pytest.raises(SendError, match="answered 302"):
            await post(Receiver(name="ops", url=inbox.url), {})
    assert len(inbox.bodies) == 1
    with pytest.raises(SendError) as error:
        await post(Receiver(name="ops", url=inbox.url), {})
    assert "secret-path" not in str(error.value)


async def test_a_missing_ca_is_reported() -> None:
    with pytest.raises(SendError, match="cannot use /none"):
        await post(Receiver(name="ops", url="https://localhost:1", ca_file="/none"), {})


def block(language: str) -> str:
    """Return the first block of the guide in a language."""
    match = re.search(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1]


async def test_the_receiver_and_the_file_of_the_guide_work(tmp_path: Path) -> None:
    program = tmp_path / "receiver.py"
    program.write_text(block("python"))
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(program), "0", stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        port = (await process.stdout.readline()).decode().split()[-1]
        document = yaml.safe_load(block("yaml").replace(":9099", f":{port}"))
        receiver = next(one for one in parse_settings(document) if one.url)
        async with notifying(receiver) as (notifier, clock, metrics):
            notifier.publish(TAINT_SET, "DeviceTaintRule/bad", "tainted")
            sent = (
                f'sully_notifications_sent_total{{kind="TaintSet",receiver="{receiver.name}"}} 1.0'
            )
            await until(metrics, clock, sent)
        line = (await process.stdout.readline()).decode()
    finally:
        process.terminate()
        await process.wait()
    assert "DeviceTaintRule/bad: tainted" in line
