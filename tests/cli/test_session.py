"""What a command prints about failures that none of its requests waited for."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable
from pathlib import Path
from ssl import SSLCertVerificationError

import pytest
import uvloop

from sully.cli.client.session import Session, call, report_unless_abandoned
from sully.cli.command import Options
from sully.cli.main import main

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


def test_a_process_collects_garbage_again_after_a_command(tmp_path: Path) -> None:
    file = tmp_path / "empty.json"
    file.write_text('{"kind": "List", "listedKinds": ["resourceslices.resource.k8s.io"]}')
    seen: list[bool] = []

    def work(_: Session) -> Awaitable[int]:
        seen.append(gc.isenabled())
        return asyncio.sleep(0, 0)

    assert main(["devices", "--snapshot", str(file)]) == 0
    assert gc.isenabled()
    try:
        call(Options(snapshot=(str(file),)), "devices", work)
        assert seen == [False]
    finally:
        gc.enable()
