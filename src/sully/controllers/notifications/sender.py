"""Sends notifications to receivers. Publishing never blocks and never fails.

A request is sent only to the configured URL: redirects are not followed, proxies of the
environment are not used, and link-local addresses, where clouds serve credentials, are refused.
URLs and tokens are never logged. Their files are read for each request, so that they can be
rotated.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from sully.client.http.resolver import guarded_resolver
from sully.controllers.notifications.metrics import NotificationMetrics
from sully.domain.notifications.batches import Batch, ReceiverQueue
from sully.domain.notifications.kinds import Notification
from sully.domain.notifications.payloads import payload
from sully.domain.notifications.settings import Receiver, url_problem
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger

log = get_logger("notifications")

ATTEMPTS: Final = 4
SECONDS: Final = 10.0
"""How long one request may take."""
SECRET_MAX: Final = 8192


class SendError(Exception):
    """A receiver did not accept a message; the text has no secret."""


class Notifier:
    """The queues of all receivers, and the tasks that send."""

    def __init__(
        self,
        receivers: Iterable[Receiver],
        metrics: NotificationMetrics,
        clock: Clock,
        backoff: Backoff | None = None,
    ) -> None:
        self._queues = [ReceiverQueue(receiver) for receiver in receivers]
        self._metrics = metrics
        self._clock = clock
        self._backoff = backoff or Backoff(base=1.0, cap=30.0, jitter=0.5)
        self._added = {queue.receiver.name: asyncio.Event() for queue in self._queues}

    def publish(self, kind: str, about: str, message: str) -> None:
        """Queue a notification for every receiver that wants it."""
        notification = Notification(kind, about, message, self._clock.now())
        for queue in self._queues:
            dropped = queue.add(notification)
            if dropped:
                self._metrics.dropped(queue.receiver.name)
            self._added[queue.receiver.name].set()

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for queue in self._queues:
                tasks.create_task(self._serve(queue))

    async def _serve(self, queue: ReceiverQueue) -> None:
        added = self._added[queue.receiver.name]
        while True:
            due = queue.due()
            if due is None:
                added.clear()
                await added.wait()
                continue
            wait = (due - self._clock.now()).total_seconds()
            if wait > 0:
                await self._clock.sleep(wait)
            for batch in queue.take(self._clock.now()):
                await self._send(queue.receiver, batch)

    async def _send(self, receiver: Receiver, batch: Batch) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await post(receiver, payload(receiver, batch))
            except SendError as error:
                fields = {"receiver": receiver.name, "kind": batch.kind, "error": str(error)}
                if attempt == ATTEMPTS:
                    log.warning("notification not sent", **fields)
                    self._metrics.failed(receiver.name)
                    return
                log.debug("notification failed, retrying", attempt=attempt, **fields)
                await self._clock.sleep(self._backoff.delay(attempt))
            else:
                self._metrics.sent(receiver.name, batch.kind)
                return


async def post(receiver: Receiver, body: dict[str, Any]) -> None:
    """Send a body; raise SendError if it was not accepted."""
    import aiohttp

    from sully.client.http.connector import Connector

    headers = {"Content-Type": "application/json", "User-Agent": "sully"}
    url = receiver.url
    if receiver.url_file:
        url = await _secret(receiver.url_file)
        problem = url_problem(url)
        if problem:
            raise SendError(f"the URL in {receiver.url_file} {problem}")
    if receiver.token_file:
        headers["Authorization"] = f"Bearer {await _secret(receiver.token_file)}"
    connector = Connector(ssl=_tls(receiver), resolver=guarded_resolver())
    limit = aiohttp.ClientTimeout(total=SECONDS)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=limit) as session,
            session.post(
                url, data=msgspec.json.encode(body), headers=headers, allow_redirects=False
            ) as answer,
        ):
            status = answer.status
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        # The text of the error may contain the URL, which may be a secret.
        raise SendError(f"request failed: {type(error).__name__}") from None
    if not 200 <= status < 300:
        raise SendError(f"the receiver answered {status}")


async def _secret(path: str) -> str:
    try:
        data = await asyncio.to_thread(lambda: Path(path).read_bytes()[:SECRET_MAX])
        secret = data.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SendError(f"cannot read {path}: {type(error).__name__}") from None
    if not secret or any(character.isspace() for character in secret):
        raise SendError(f"{path} must contain one line without spaces")
    return secret


def _tls(receiver: Receiver) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=receiver.ca_file or None)
    except OSError as error:
        raise SendError(f"cannot use {receiver.ca_file}: {type(error).__name__}") from None
