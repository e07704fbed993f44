"""`sully dashboard` as far as it needs no browser: its port and its hosts."""

from __future__ import annotations

import io
import json
import re
import socket
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path

import aiohttp
import pytest

from cli.commandlines import parsed
from dashboard.page import Page, dashboard
from sully.cli.command import CommandError
from sully.cli.run.dashboard import announce_link
from sully.cli.run.dashboard import dashboard as command
from sully.dashboard.serving import serving
from sully.runtime.log import configure


async def _get(page: Page, listening: socket.socket, path: str, host: str) -> tuple[int, str]:
    port = listening.getsockname()[1]
    async with (
        serving(page.app, listening),
        aiohttp.ClientSession() as client,
        client.get(f"http://127.0.0.1:{port}{path}", headers={"Host": host}) as answer,
    ):
        return answer.status, await answer.text()


@pytest.mark.parametrize(("host", "code"), [("127.0.0.1:1", 200), ("evil.example:1", 421)])
async def test_it_is_served_for_its_own_hosts(host: str, code: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with dashboard(hosts=["127.0.0.1:1"]) as page:
            status, text = await _get(page, listening, "/dashboard/", host)

    assert status == code
    assert ("<title>Sully</title>" in text) == (code == 200)


async def test_connections_without_requests_lock_nobody_out() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=300) as listening, ExitStack() as idle:
        async with dashboard(hosts=["127.0.0.1:1"]) as page:
            for _ in range(250):
                idle.enter_context(socket.create_connection(listening.getsockname()))
            status, _ = await _get(page, listening, "/dashboard/", "127.0.0.1:1")

    assert status == 200


def test_a_port_that_is_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(CommandError) as failed:
            command.callback(parsed("dashboard", "--port", port))  # type: ignore[misc]  # it has one

    assert str(failed.value) == (
        f"cannot listen on 127.0.0.1:{port}: address already in use\n  use another --port"
    )


@pytest.mark.parametrize("opens_browser", [True, False])
def test_a_json_log_has_the_link_only_if_no_browser_is_opened(*, opens_browser: bool) -> None:
    out = io.StringIO()
    configure("json", stream=out)

    announce_link(
        "https://cluster", "http://127.0.0.1:1/dashboard/#code=x", opens_browser=opens_browser
    )

    logged = json.loads(out.getvalue())
    assert logged["server"] == "https://cluster"
    assert ("#code=x" in out.getvalue()) != opens_browser


def test_the_page_asks_for_all_its_modules_together() -> None:
    folder = Path(str(files("sully.dashboard") / "static"))
    page = (folder / "index.html").read_text()

    named = re.findall(r'<link rel="modulepreload" href="(.*)">', page)

    assert named == sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.js")
        if path.name != "main.js"
    )
