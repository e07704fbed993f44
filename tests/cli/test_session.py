"""What a command prints about failures that none of its requests waited for."""

from __future__ import annotations

import asyncio
import gc
from ssl import SSLCertVerificationError

import pytest
import uvloop

from sully.cli.client.session import report_unless_abandoned

ABANDONED = {
    "a handshake": (SSLCertVerificationError("certificate verify failed"), False),
    "a connection": (ConnectionRefusedError("refused"), False),
    "a mistake of ours": (KeyError("spec"), True),
}


@pytest.mark.parametrize(("failure", "reported"), ABANDONED.values(), ids=ABANDONED.keys())
def test_what_nobody_waits_for_any_more(
    failure: Exception, reported: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def abandon() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(report_unless_abandoned)
        future = loop.create_future()
        future.set_exception(failure)
        del future
        gc.collect()

    uvloop.run(abandon())

    assert ("never retrieved" in caplog.text) == reported


def test_a_failed_callback_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(report_unless_abandoned)
        done = loop.create_future()

        def broken() -> None:
            loop.call_soon(done.set_result, None)
            raise OSError("disk")

        loop.call_soon(broken)
        await done

    uvloop.run(fail())

    assert "disk" in caplog.text
