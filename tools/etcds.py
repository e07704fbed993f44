"""Real etcd clusters, started and killed by tests: on loopback, or a member on each machine.

The program is Debian's, fetched into `.cache` by tools/fetch-etcd on first use. Data lies in
memory where the system has such a folder: what is tested here is not the disk.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sully.store.etcd.address import Address, Tls
from sully.testing.network import Host

ROOT = Path(__file__).parent.parent
PROGRAM = ROOT / ".cache/etcd/etcd"
CONTROL = PROGRAM.with_name("etcdctl")
_V3 = {"ETCDCTL_API": "3"}
_SCRATCH = Path("/dev/shm")
_STARTS_WITHIN = 120.0


@dataclass(frozen=True)
class Files:
    """A folder with `ca.pem`, and `server` and `client` as `.pem` and `.key`."""

    folder: Path

    @property
    def tls(self) -> Tls:
        """Return what a client needs of it."""
        at = self.folder
        return Tls(at / "ca.pem", at / "client.pem", at / "client.key")


@dataclass
class Member:
    """One of them, running or not."""

    name: str
    client: int
    peer: int
    directory: Path
    host: Host | None = None
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Return where others find it."""
        return self.host.address("back") if self.host else "127.0.0.1"

    @property
    def endpoint(self) -> str:
        """Return where clients find it."""
        return f"{self.address}:{self.client}"

    @property
    def peer_url(self) -> str:
        """Return where the other members find it."""
        return f"http://{self.address}:{self.peer}"


@dataclass
class Etcd:
    """A cluster; use it in a `with` block."""

    size: int = 1
    hosts: Sequence[Host] = ()
    """Machines for the members, one each; without them all are here."""
    tls: Files | None = None
    snapshot: Path | None = None
    """What `etcdctl snapshot save` wrote: they begin with it, not with nothing."""
    flags: Sequence[str] = ()
    """Further flags for each member."""
    folder: Path | None = _SCRATCH if _SCRATCH.is_dir() else None
    members: list[Member] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        """Start all members."""
        subprocess.run([ROOT / "tools/fetch-etcd", PROGRAM.relative_to(ROOT)], cwd=ROOT, check=True)
        directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(dir=self.folder)))
        ports = [self._stack.enter_context(reserved_port()) for _ in range(2 * self.size)]
        hosts: Sequence[Host | None] = self.hosts or [None] * self.size
        self.members = [
            Member(f"m{n}", ports[2 * n], ports[2 * n + 1], directory / f"m{n}", hosts[n])
            for n in range(self.size)
        ]
        self._stack.callback(self._stop)
        for member in self.members:
            if self.snapshot:
                self._restore(member, self.snapshot)
            self.start(member)
        for member in self.members:
            self.await_healthy(member)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End them, and forget what they kept."""
        self._stack.close()

    @property
    def address(self) -> Address:
        """Return where the store finds them."""
        tls = self.tls.tls if self.tls else Tls()
        return Address(tuple(member.endpoint for member in self.members), tls=tls)

    @property
    def _peers(self) -> str:
        return ",".join(f"{member.name}={member.peer_url}" for member in self.members)

    def control(self, *args: str | Path, user: str = "") -> str:
        """Run etcdctl on the first of them, perhaps as NAME:PASSWORD; return what it prints."""
        command: list[str | Path] = [CONTROL, "--endpoints", self.members[0].endpoint]
        command += ["--user", user] if user else []
        done = subprocess.run([*command, *args], env=_V3, capture_output=True, text=True)
        assert done.returncode == 0, f"etcdctl {args[0]}: {done.stderr}"
        return done.stdout

    def _restore(self, member: Member, snapshot: Path) -> None:
        where: list[str | Path] = ["--name", member.name, "--data-dir", member.directory]
        where += ["--initial-cluster", self._peers]
        where += ["--initial-advertise-peer-urls", member.peer_url]
        self.control("snapshot", "restore", snapshot, *where)

    def start(self, member: Member) -> None:
        """Run a member that does not."""
        scheme = "https" if self.tls else "http"
        own, peer = f"{scheme}://{member.endpoint}", member.peer_url
        command: list[str | Path] = [
            *(PROGRAM, "--name", member.name, "--data-dir", member.directory),
            *("--listen-client-urls", own, "--advertise-client-urls", own),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", self._peers, "--log-level", "error", "--log-outputs", "stderr"),
            *("--logger", "zap", "--max-request-bytes", str(4 << 20)),
            # A single member waits for no other.
            *("--heartbeat-interval", "10" if self.size == 1 else "50"),
            *("--election-timeout", "100" if self.size == 1 else "500"),
            *self.flags,
        ]
        if self.tls:
            at = self.tls.folder
            command += ["--client-cert-auth", "--trusted-ca-file", at / "ca.pem"]
            command += ["--cert-file", at / "server.pem", "--key-file", at / "server.key"]
        if member.host:
            command = [*member.host.within(*map(str, command))]
        with open(member.directory.with_suffix(".log"), "ab") as log:
            member.process = subprocess.Popen(command, stdout=log, stderr=log)

    def await_healthy(self, member: Member) -> None:
        """Wait until a member serves, together with a majority."""
        end = time.monotonic() + _STARTS_WITHIN
        while not self.healthy(member):
            log = member.directory.with_suffix(".log").read_text()
            assert member.process is not None
            assert member.process.poll() is None, f"etcd ended: {log}"
            assert time.monotonic() < end, f"etcd did not start: {log}"
            time.sleep(0.01)

    def healthy(self, member: Member) -> bool:
        """Report whether a member serves."""
        if self.tls:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", member.client)) == 0
        try:
            with urllib.request.urlopen(f"http://{member.endpoint}/health", timeout=2) as answer:
                return b'"true"' in answer.read()
        except OSError:
            return False

    def kill(self, member: Member) -> None:
        """Kill a member."""
        if member.process is not None:
            member.process.kill()
            member.process.wait()
            member.process = None

    def freeze(self, member: Member) -> None:
        """Stop a member without a word, as a lost network does."""
        assert member.process is not None
        member.process.send_signal(signal.SIGSTOP)
        # It may continue for a moment: long enough to answer.
        os.waitid(os.P_PID, member.process.pid, os.WSTOPPED)

    def thaw(self, member: Member) -> None:
        """Let it continue."""
        assert member.process is not None
        member.process.send_signal(signal.SIGCONT)

    def fill(self, member: Member) -> None:
        """Let etcd refuse what takes space, as it does when the database of a member is full."""
        self._raise_alarm(member, "ACTIVATE")

    def free(self, member: Member) -> None:
        """Let it accept that again."""
        self._raise_alarm(member, "DEACTIVATE")

    def _raise_alarm(self, member: Member, action: str) -> None:
        # etcdctl cannot activate one.
        ident = self._post(member, "status")["header"]["member_id"]
        self._post(member, "alarm", action=action, memberID=ident, alarm="NOSPACE")

    def _post(self, member: Member, method: str, **body: str) -> Any:
        url = f"http://{member.endpoint}/v3/maintenance/{method}"
        with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=10) as answer:
            return json.loads(answer.read())

    def _stop(self) -> None:
        for member in self.members:
            self.kill(member)


@contextmanager
def reserved_port() -> Iterator[int]:
    """Yield a port of loopback that no other process gets meanwhile.

    A socket that is bound and does not listen keeps it: the system gives the port to nobody who
    asks for any, and yet lets a program listen there that asks for this one and, as this socket,
    for SO_REUSEADDR, as etcd does. Were it free until etcd listens, or while a member is dead, two
    clusters could have the same one, and the tests of one would find what those of another wrote.
    """
    with socket.socket() as reservation:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reservation.bind(("127.0.0.1", 0))
        yield reservation.getsockname()[1]
