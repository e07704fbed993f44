"""What the benchmarks share: a `sully up` of their own, and a client that costs next to nothing.

The client speaks HTTP/1.1 over TLS with as little work as possible, because it runs on the same
cores as the server: what it uses is missing there. api.py measures single requests, devices.py
whole control loops.
"""

import asyncio
import base64
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any, Self

import msgspec
import yaml


class Connection:
    """A small HTTP/1.1 client: keep-alive, JSON, one request at a time."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext) -> None:
        self.place = (host, port, context)

    async def __aenter__(self) -> "Connection":
        host, port, context = self.place
        self.reader, self.writer = await asyncio.open_connection(
            host, port, ssl=context, server_hostname="127.0.0.1", limit=2**25
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    def send(
        self, method: str, path: str, body: bytes = b"", media: str = "application/json"
    ) -> None:
        """Write one request."""
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {media}\r\n"
            f"user-agent: bench\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)

    async def head(self) -> tuple[int, bytes]:
        """Read the head of an answer."""
        raw = await self.reader.readuntil(b"\r\n\r\n")
        return int(raw[9:12]), raw.lower()

    async def call(
        self, method: str, path: str, body: bytes = b"", media: str = "application/json"
    ) -> tuple[int, bytes]:
        """Send a request and read its whole answer."""
        self.send(method, path, body, media)
        code, head = await self.head()
        if b"transfer-encoding: chunked" in head:
            # Large lists are sent in parts.
            return code, b"".join([chunk async for chunk in self._chunks()])
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        return code, await self.reader.readexactly(length)

    async def _chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            yield (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readexactly(2)

    async def create(self, path: str, obj: Any) -> None:
        """Create an object, or end the benchmark."""
        code, answer = await self.call("POST", path, json.dumps(obj).encode())
        if code != 201:
            raise RuntimeError(f"POST {path}: {code} {answer.decode()[:500]}")


def environment() -> dict[str, str]:
    """Return the environment of programs that are measured.

    They may keep compiled modules, as installed programs do: compiling all of them takes longer
    than starting.
    """
    unset = "PYTHONDONTWRITEBYTECODE"
    return {name: value for name, value in os.environ.items() if name != unset}


class Server:
    """A `sully up` in a folder of its own."""

    def __init__(self, store: str, *flags: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="sully-bench-")
        self._command = [sys.executable, "-m", "sully.cli.main", "up", "--listen", "127.0.0.1:0"]
        self._command += ["--data-dir", self.folder.name, "--store", store]
        # As fast as it can: benchmarks measure the evictor, not its default limit.
        self._command += ["--default-evictions-per-second", "0", *flags]
        self._start()

    def _start(self) -> None:
        began = time.perf_counter()
        self.child = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, text=True, env=environment()
        )
        assert self.child.stdout
        for line in self.child.stdout:
            if line.startswith("ready"):
                break
        self.ready = time.perf_counter() - began
        config = yaml.safe_load((Path(self.folder.name) / "kubeconfig").read_text())
        address = config["clusters"][0]["cluster"]["server"].removeprefix("https://")
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self.context = self._context(config)

    def _context(self, config: dict[str, Any]) -> ssl.SSLContext:
        authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
        context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
        user = config["users"][0]["user"]
        pem = Path(self.folder.name) / "bench.pem"
        pem.write_bytes(
            base64.b64decode(user["client-certificate-data"])
            + base64.b64decode(user["client-key-data"])
        )
        context.load_cert_chain(pem)
        return context

    def connect(self) -> Connection:
        """Return a connection to be opened by `async with`."""
        return Connection(self.host, self.port, self.context)

    def memory(self) -> float:
        """Return the resident memory in MiB."""
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def cpu(self) -> float:
        """Return the seconds of processor time used so far, all threads."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def restart(self) -> float:
        """End it, and start it again on its data; return the seconds from start to ready."""
        self.child.terminate()
        self.child.wait()
        self._start()
        return self.ready

    def stop(self) -> None:
        """End it and remove its folder."""
        self.child.terminate()
        self.child.wait()
        self.folder.cleanup()


async def spread(server: Server, connections: int, work: Iterable[tuple[str, Any]]) -> None:
    """Create (path, object) pairs over so many connections, as fast as they go."""
    left = iter(work)

    async def one() -> None:
        async with server.connect() as connection:
            for path, obj in left:
                await connection.create(path, obj)

    await asyncio.gather(*(one() for _ in range(connections)))


class Meta(msgspec.Struct, rename="camel"):
    """The part of metadata that benchmarks read."""

    name: str = ""
    deletion_timestamp: str = ""


class Placed(msgspec.Struct, rename="camel"):
    """The part of a pod's spec that benchmarks read."""

    node_name: str = ""


class Seen(msgspec.Struct):
    """An object as an event shows it."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: Placed = msgspec.field(default_factory=Placed)


class Event(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: Seen


_event = msgspec.json.Decoder(Event)


class Watch(asyncio.Protocol):
    """A watch of one collection that passes on each event as it arrives."""

    def __init__(self, path: str, take: Callable[[Event], None]) -> None:
        self.path, self.take = path, take
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._raw, self._text = bytearray(), bytearray()

    @classmethod
    async def open(
        cls, server: Server, path: str, take: Callable[[Event], None], more: str = ""
    ) -> Self:
        """Start to watch, with `more` in the query; existing objects are not sent."""
        query = (
            "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0"
        ) + more
        loop = asyncio.get_running_loop()
        _transport, watch = await loop.create_connection(
            lambda: cls(f"{path}?{query}", take),
            server.host,
            server.port,
            ssl=server.context,
            server_hostname="127.0.0.1",
        )
        await watch.started
        return watch

    def connection_made(self, transport: Any) -> None:
        """Ask."""
        self.transport = transport
        transport.write(f"GET {self.path} HTTP/1.1\r\nhost: x\r\nuser-agent: b\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        """Take what came: the head once, then chunks."""
        self._raw += data
        if not self.started.done():
            end = self._raw.find(b"\r\n\r\n")
            if end < 0:
                return
            del self._raw[: end + 4]
            self.started.set_result(None)
        while self._chunk():
            pass
        *lines, rest = bytes(self._text).split(b"\n")
        self._text = bytearray(rest)
        for line in lines:
            if line:
                self.take(_event.decode(line))

    def _chunk(self) -> bool:
        """Move one whole chunk from what was sent to what was received."""
        end = self._raw.find(b"\r\n")
        if end < 0:
            return False
        size = int(self._raw[:end], 16)
        if len(self._raw) < end + 4 + size:
            return False
        self._text += self._raw[end + 2 : end + 2 + size]
        del self._raw[: end + 4 + size]
        return size > 0

    def close(self) -> None:
        """Stop watching."""
        self.transport.close()
