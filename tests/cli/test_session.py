"""What a command prints about failures that none of its requests waited for."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
from collections.abc import Awaitable, Iterator
from pathlib import Path
from ssl import SSLCertVerificationError

import pytest
import uvloop

from sully.cli.client.options import parse_timeout
from sully.cli.client.session import Session, call, report_unless_abandoned
from sully.cli.command import Options
from sully.cli.main import main
from sully.client.http.transport import REQUEST_SECONDS

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


def test_a_connection_that_the_server_closed_is_reported_by_its_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def close() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(report_unless_abandoned)
        # As uvloop reports a write to a connection that is closed.
        context = {"message": "Fatal error on transport", "transport": asyncio.Transport()}
        loop.call_exception_handler({**context, "exception": RuntimeError("closed")})

    uvloop.run(close())

    assert caplog.text == ""


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


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Path]:
    """Return a kubeconfig for a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        path = tmp_path / "kubeconfig"
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        path.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "a", "cluster": {"server": url}}],
                    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                    "users": [{"name": "a", "user": {}}],
                    "current-context": "a",
                }
            )
        )
        yield path


@pytest.mark.parametrize("command", [("devices",), ("taint", "device", "*", "a.b/c:None")])
def test_a_server_that_does_not_answer(
    command: tuple[str, ...], silent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*command, "--request-timeout", "50ms", "--kubeconfig", str(silent)])

    assert code == 1
    assert "timed out" in capsys.readouterr().err


TIMEOUTS = {
    "a duration": ("1m30s", 90.0),
    "seconds, as in kubectl": ("5", 5.0),
    "none": ("0", 0.0),
}


@pytest.mark.parametrize(("text", "seconds"), TIMEOUTS.values(), ids=TIMEOUTS.keys())
def test_request_timeouts(text: str, seconds: float) -> None:
    assert parse_timeout(text) == seconds


def test_the_default_timeout_is_that_of_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    main(["devices", "--help"])

    shown = " ".join(capsys.readouterr().out.split())
    assert f"timeout requests. [default: ({REQUEST_SECONDS:g}s)]" in shown
