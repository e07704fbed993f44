"""A `sully up` that may be killed at any time, and connections to it."""

import asyncio
import json
import os
import re
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yarl

from sully.client.http.connector import Connector
from sully.client.kubeconfig.access import tls_context
from sully.client.kubeconfig.kubeconfig import load_kubeconfig

READY_SECONDS = 300.0
_LINES = 100
CLOSED = (aiohttp.ClientError, ConnectionError, asyncio.IncompleteReadError, TimeoutError)
"""What a client sees when a server dies under it."""


class DiedError(Exception):
    """The server ended, but was not killed."""


class Server:
    """One process on one data directory."""

    def __init__(self, child: asyncio.subprocess.Process, directory: Path, began: float) -> None:
        self.child = child
        self.directory = directory
        self.ready_after = 0.0
        self.url = ""
        self.output: deque[str] = deque(maxlen=_LINES)
        """What it printed last."""
        self._began = began
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, directory: Path, *flags: str, environment: Mapping[str, str] | None = None
    ) -> "Server":
        """Start the process, with an addition to its environment; `ready` waits for it."""
        command = [sys.executable, "-m", "sully.cli.main", "up", "--data-dir", str(directory)]
        if "--listen" not in flags:
            command += ["--listen", "127.0.0.1:0"]
        began = time.perf_counter()
        child = await asyncio.create_subprocess_exec(
            *command,
            *flags,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            # Ctrl-C is for the driver, which ends its servers itself.
            start_new_session=True,
        )
        return cls(child, directory, began)

    async def ready(self) -> None:
        """Wait until it prints that it is ready."""
        assert self.child.stdout is not None
        async with asyncio.timeout(READY_SECONDS):
            while line := (await self.child.stdout.readline()).decode(errors="replace"):
                self.output.append(line)
                if found := re.search(r"https://\S+", line):
                    self.url = self.url or found[0]
                if line.startswith("ready after"):
                    self.ready_after = time.perf_counter() - self._began
                    self._reading = asyncio.create_task(self._read(self.child.stdout))
                    return
        raise DiedError("sully up ended before it was ready:\n" + "".join(self.output))

    async def _read(self, stdout: asyncio.StreamReader) -> None:
        """Read what it prints: a server whose output nobody reads stops at a full pipe."""
        while line := await stdout.readline():
            self.output.append(line.decode(errors="replace"))

    async def kill(self) -> None:
        """End it as a power cut would, as far as the process is concerned."""
        if self.child.returncode is None:
            self.child.send_signal(signal.SIGKILL)
        await self._ended()

    async def _ended(self) -> None:
        if self._reading is None:
            await self.child.communicate()
        else:
            await asyncio.gather(self._reading, self.child.wait())

    async def suspend(self, seconds: float) -> None:
        """Let it do nothing for a while; it only notices by its clock."""
        self.child.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.child.send_signal(signal.SIGCONT)

    async def stop(self) -> int:
        """End it as a user would; return its exit code."""
        self.child.send_signal(signal.SIGINT)
        await self._ended()
        return self.child.returncode or 0

    def memory(self) -> float:
        """Return its resident memory in MiB."""
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def connect(self) -> AbstractAsyncContextManager["Connection"]:
        """Connect as the admin."""
        return connected(self.directory / "kubeconfig")


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator["Connection"]:
    """Connect as the user of a kubeconfig."""
    access = load_kubeconfig([kubeconfig], required=True).access()
    context = tls_context(access, await access.credentials.current())
    connector = Connector(ssl=context, limit=0)
    limits = aiohttp.ClientTimeout(total=300)
    async with aiohttp.ClientSession(connector=connector, timeout=limits) as session:
        # aiohttp repeats a DELETE or PUT whose connection was closed before the response. A journal
        # has to know of a request that was perhaps done.
        session._retry_connection = False
        yield Connection(session, access.server)


class Connection:
    """Requests to one server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def call(
        self, method: str, path: str, body: object = None, media: str = "application/json"
    ) -> tuple[int, Any]:
        """Send a request; return the code and the content of the whole answer."""
        data = None if body is None else json.dumps(body)
        headers = {} if body is None else {"content-type": media}
        url = yarl.URL(self.url + path, encoded=True)
        while True:
            async with self.session.request(method, url, data=data, headers=headers) as answer:
                raw = await answer.read()
            if answer.status != 429:
                return answer.status, json.loads(raw)
            # A limit on requests did its work, and the request did nothing.
            await asyncio.sleep(0.1)

    async def get(self, path: str) -> dict[str, Any]:
        """Read what must be there."""
        code, found = await self.call("GET", path)
        if code != 200 or not isinstance(found, dict):
            raise DiedError(f"GET {path} answered {code}: {found}")
        return found

    async def watch(
        self, path: str, query: Mapping[str, str]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the events of a watch, until it ends or the server dies."""
        limits = aiohttp.ClientTimeout(total=None)
        async with self.session.get(
            self.url + path, params={"watch": "1", **query}, timeout=limits
        ) as answer:
            if answer.status != 200:
                raise DiedError(f"the watch of {path} answered {answer.status}")
            while line := await answer.content.readline():
                if line.endswith(b"\n"):
                    yield json.loads(line)
