"""The receiver of signals over HTTP: `POST /signals`, and `POST /alertmanager` for its webhook.

Every request needs a bearer token. A request can be repeated: a signal that is known is answered as
a duplicate.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sully.client.transport import TRANSIENT
from sully.domain.health.signal_bodies import BodyError, Parsed, parse_alerts, parse_signals
from sully.domain.health.signals import REFUSED
from sully.machinery.errors import ApiError
from sully.monitor.signals import Outcome, SignalRecorder
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger

if TYPE_CHECKING:
    from aiohttp import web

SIGNALS, ALERTMANAGER = "/signals", "/alertmanager"
BODY_MAX = 4 * 1024 * 1024
Check = Callable[[str, str], Awaitable[int]]
"""Takes the Authorization header and the path; returns 200 or the code of a rejection."""
_REFUSALS = {401: "Unauthorized", 403: "Forbidden", 503: "cannot check the token"}
_log = get_logger("signals")


class Receiver:
    """Answers the requests of senders."""

    def __init__(
        self,
        recorder: SignalRecorder,
        check: Check,
        *,
        clock: Clock,
        expire_after: timedelta | None = None,
    ) -> None:
        self._recorder = recorder
        self._check = check
        self._clock = clock
        self._expire_after = expire_after

    async def answer(
        self, path: str, authorization: str, read: Callable[[], Awaitable[bytes]]
    ) -> tuple[int, Any]:
        """Return the code and the JSON of the answer to one request.

        `read` returns its body, and is called only if the sender may send one.
        """
        code = await self._check(authorization, path)
        if code != 200:
            return code, {"message": _REFUSALS.get(code, "refused")}
        try:
            signals = self._parsed(path, await read())
        except BodyError as error:
            return 400, {"message": f"invalid body: {error}"}
        try:
            outcomes = await self._recorder.record(signals)
        except (ApiError, *TRANSIENT) as error:
            # Senders repeat a request after this code, and all of it can be repeated.
            _log.warning("signals not recorded", error=str(error), signals=len(signals))
            return 503, {"message": f"not recorded: {error}"}
        self._report(path, outcomes)
        refused = any(result in REFUSED for result, _ in outcomes)
        # Alertmanager would log an error for a whole group of alerts.
        code = 422 if refused and path == SIGNALS else 200
        return code, {"results": [_shown(outcome) for outcome in outcomes]}

    def _parsed(self, path: str, body: bytes) -> list[Parsed]:
        now = self._clock.now()
        if path == SIGNALS:
            return parse_signals(body, now=now)
        return parse_alerts(body, now=now, expire_after=self._expire_after)

    def _report(self, path: str, outcomes: list[Outcome]) -> None:
        for result, message in outcomes:
            if result in REFUSED:
                _log.warning("signal refused", path=path, result=str(result), message=message)
        _log.info("signals received", path=path, signals=len(outcomes))


def _shown(outcome: Outcome) -> dict[str, str]:
    result, message = outcome
    return {"result": str(result), **({"message": message} if message else {})}


@asynccontextmanager
async def receiving(
    receiver: Receiver, host: str, port: int, tls: ssl.SSLContext | None
) -> AsyncIterator[int]:
    """Listen as long as the block lasts; yields the port."""
    from aiohttp import web

    async def handle(request: web.Request) -> web.Response:
        authorization = request.headers.get("Authorization", "")
        code, answer = await receiver.answer(request.path, authorization, request.read)
        return web.json_response(answer, status=code)

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    app = web.Application(client_max_size=BODY_MAX)
    for path in (SIGNALS, ALERTMANAGER):
        app.router.add_post(path, handle)
    app.router.add_get("/healthz", health)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
