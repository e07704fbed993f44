"""A control plane on one store, with what can fail below it."""

from __future__ import annotations

import asyncio
import random
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw

from crashes.server import DiedError, Server
from etcds import Etcd
from faults.backups import Saved
from faults.kinds import Kind, disk_faults, etcd_faults, process_faults
from faults.layer import Fault, Layer, compiled
from faults.powercut import after_power_cut
from faults.proxy import Proxy
from faults.releases import CURRENT
from sully.store.compaction import Retention
from sully.store.etcd.follower import HISTORY
from sully.store.sqlite.database import FORMAT

KILLED, STOPPED, POWER_CUT, POWER_CUT_IN_WRITE = (
    "server: SIGKILL, restart",
    "server: SIGINT, restart",
    "power failure",
    "power failure in a write or flush",
)
_QUIET = ("--log-level", "error")
_LEASES = (
    *("--leader-elect-lease-duration", "4s", "--leader-elect-renew-deadline", "3s"),
    *("--leader-elect-retry-period", "1s"),
)
_AT_START = 0.15
"""The share of starts with an I/O error, and the share of those on data of another format."""
_NEWER_FORMAT = FORMAT + 1
_POWER_CUT_WITHIN = 5.0


class Plane(ABC):
    """One server after the other, on the same data."""

    name: str
    history: int
    """So many writes can be followed by a watch from before them, also after a restart."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.directory = folder / "data"
        self.directory.mkdir(mode=0o700)
        self.layer = Layer(library, self.directory, folder)
        self.release = CURRENT
        """What the next server is."""
        self._server: Server | None = None

    async def __aenter__(self) -> Self:
        """Return it; `start` starts a server."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the server."""
        if self._server is not None:
            await self._server.kill()

    @property
    def server(self) -> Server:
        """Return the server that runs."""
        if self._server is None:
            raise DiedError("there is no server")
        return self._server

    async def start(self) -> Server:
        """Start a server, and wait until it is ready."""
        self._server = await self._launch()
        await self._server.ready()
        return self._server

    async def _launch(self) -> Server:
        return await Server.start(
            self.directory,
            *_QUIET,
            *self._flags(),
            environment={**self.layer.environment, **self.release.environment},
        )

    def last_words(self) -> str:
        """Return what the server printed last."""
        return "".join([*self.server.output][-5:]).strip()

    @abstractmethod
    def _flags(self) -> Sequence[str]: ...

    @abstractmethod
    def kinds(self) -> list[Kind]:
        """Return the faults that the server lives through."""

    async def end(self, rng: random.Random) -> str:
        """End the server at work; return how."""
        await asyncio.sleep(rng.uniform(0, 0.02))
        # Before an upgrade users stop a server.
        name = rng.choice((KILLED, KILLED, STOPPED)) if self.release.is_current else STOPPED
        if name == KILLED:
            await self.server.kill()
        elif code := await self.server.stop():
            raise DiedError(f"the server ended with {code} after SIGINT")
        self.layer.step_clock(0.0)
        return name

    async def back_up(self, file: Path) -> bool:  # noqa: ARG002 - of one store only
        """Save the data of the server at work; report whether that is possible."""
        return False

    async def restore(self, saved: Saved) -> None:
        """Replace the data by a backup, with the release that made it."""
        await asyncio.to_thread(
            saved.release.run,
            *("restore", str(saved.file), "--data-dir", str(self.directory), "--force"),
        )
        for aside in self.directory.parent.glob(f"{self.directory.name}.replaced-*"):
            shutil.rmtree(aside)

    async def faults_at_start(self, rng: random.Random, faults: Counter[str]) -> list[str]:  # noqa: ARG002 - of one store only
        """Start servers that cannot start; return what was wrong with how they ended."""
        return []


class SqlitePlane(Plane):
    """SQLite on a disk that fails."""

    name = "SQLite"
    history = Retention().events

    def __init__(self, folder: Path, library: Path) -> None:
        super().__init__(folder, library)
        self._before: dict[str, bytes] = {}

    def _flags(self) -> Sequence[str]:
        return ()

    async def start(self) -> Server:
        """Start a server on what is there, which counts as flushed."""
        self._before = self.layer.begin()
        return await super().start()

    def kinds(self) -> list[Kind]:
        """Return faults of the disk, the process and its clock."""
        return disk_faults(self.layer) + process_faults(lambda: self.server, self.layer)

    async def end(self, rng: random.Random) -> str:
        """End the server, often with its machine."""
        chosen = rng.random()
        if chosen < 0.35 or not self.release.is_current:
            return await super().end(rng)
        name = POWER_CUT
        if chosen > 0.65 and await self._cut_in_write(rng):
            name = POWER_CUT_IN_WRITE
        await self.server.kill()
        self.layer.request(Fault.NONE)
        self.layer.step_clock(0.0)
        record = self.layer.record.read_bytes()
        self.layer.replace(after_power_cut(self._before, record, rng))
        return name

    async def back_up(self, file: Path) -> bool:
        """Save the data with the release that runs."""
        command = ("backup", "--data-dir", str(self.directory), str(file))
        await asyncio.to_thread(self.release.run, *command)
        return True

    async def _cut_in_write(self, rng: random.Random) -> bool:
        """Let the server die at one of its next writes or flushes."""
        self.layer.request(Fault.POWER_CUT, skip=rng.randrange(30))
        try:
            async with asyncio.timeout(_POWER_CUT_WITHIN):
                await self.server.child.wait()
        except TimeoutError:
            return False
        return True

    async def faults_at_start(self, rng: random.Random, faults: Counter[str]) -> list[str]:
        """Perhaps leave data of another format, or start where it cannot be read."""
        chosen = rng.random()
        if chosen < _AT_START / 2:
            return await self._newer_format(faults)
        if not self.release.is_current:
            return []
        if chosen < _AT_START:
            self._oldest_format()
            faults["data of format 1: upgraded"] += 1
        return await self._unreadable(rng, faults) if chosen > 1 - _AT_START else []

    def _oldest_format(self) -> None:
        """Turn the data into the first format, which has no checksums."""
        self._edit("ALTER TABLE log DROP COLUMN sum", "PRAGMA user_version = 1")

    async def _newer_format(self, faults: Counter[str]) -> list[str]:
        """Start on data of a later release, which is refused by name and stays as it is."""
        self._edit(f"PRAGMA user_version = {_NEWER_FORMAT}")
        faults["data of a newer format: refused"] += 1
        problems = await self._refused(f"format {_NEWER_FORMAT}")
        self._edit(f"PRAGMA user_version = {FORMAT}")
        return problems

    def _edit(self, *statements: str) -> None:
        database = apsw.Connection(str(self.directory / "store.db"))
        for statement in statements:
            database.execute(statement)
        database.close()

    async def _unreadable(self, rng: random.Random, faults: Counter[str]) -> list[str]:
        """Start with I/O errors."""
        self.layer.request(Fault.READ_EIO, skip=rng.randrange(12), count=1000)
        faults["read: I/O error at start"] += 1
        problems = await self._refused("error")
        self.layer.request(Fault.NONE)
        return problems

    async def _refused(self, reason: str) -> list[str]:
        """Start a server that ends with one line, which has the reason, and changes nothing."""
        self.layer.record.unlink(missing_ok=True)
        before = self.layer.files()
        server = await self._launch()
        output, _ = await server.child.communicate()
        text = output.decode(errors="replace").strip()
        problems = []
        if server.child.returncode != 1 or len(text.splitlines()) != 1 or reason not in text:
            problems.append(f"{reason!r} at start: ended with {server.child.returncode}: {text}")
        if self.layer.files().get("store.db") != before.get("store.db"):
            problems.append("a server that did not start changed the database")
        return problems


class EtcdPlane(Plane):
    """Three members of etcd, each behind a proxy."""

    name = "etcd"
    history = HISTORY

    def __init__(self, folder: Path, library: Path) -> None:
        super().__init__(folder, library)
        self._etcd = Etcd(size=3)
        self._proxies: list[Proxy] = []

    async def __aenter__(self) -> Self:
        """Start etcd and the proxies."""
        await asyncio.to_thread(self._etcd.__enter__)
        for member in self._etcd.members:
            proxy = Proxy(member.client)
            await proxy.start()
            self._proxies.append(proxy)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End everything."""
        await super().__aexit__(kind, error, trace)
        for proxy in self._proxies:
            await proxy.stop()
        await asyncio.to_thread(self._etcd.__exit__, None, None, None)

    def _flags(self) -> Sequence[str]:
        endpoints = ",".join(f"127.0.0.1:{proxy.port}" for proxy in self._proxies)
        return ("--store", f"etcd://{endpoints}", *_LEASES)

    def kinds(self) -> list[Kind]:
        """Return faults of members, of the network, of the process and its clock."""
        faults = etcd_faults(self._etcd, self._proxies)
        return faults + process_faults(lambda: self.server, self.layer)


PLANES: dict[str, type[Plane]] = {"sqlite": SqlitePlane, "etcd": EtcdPlane}


def plane(store: str, folder: Path) -> Plane:
    """Return a control plane on a store, in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return PLANES[store](folder, compiled(folder))
