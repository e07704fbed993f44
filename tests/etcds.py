"""Real etcd clusters on loopback, started and killed by tests.

The program is Debian's, fetched into `.cache` by tools/fetch-etcd on first use. Data lies in
memory where the system has such a folder: what is tested here is not the disk.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from sully.store.etcd.address import Address, Tls

ROOT = Path(__file__).parent.parent
PROGRAM = ROOT / ".cache/etcd/etcd"
_SCRATCH = Path("/dev/shm")
_STARTS_WITHIN = 30.0


@dataclass(frozen=True)
class Files:
    """A folder with `ca.pem`, and `server` and `client` as `.pem` and `.key`."""

    folder: Path

    @property
    def tls(self) -> Tls:
        at = self.folder
        return Tls(at / "ca.pem", at / "client.pem", at / "client.key")


@dataclass
class Member:
    name: str
    client: int
    peer: int
    directory: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.client}"


@dataclass
class Etcd:
    """A cluster; use it in a `with` block."""

    size: int = 1
    tls: Files | None = None
    folder: Path | None = _SCRATCH if _SCRATCH.is_dir() else None
    members: list[Member] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        subprocess.run([ROOT / "tools/fetch-etcd", PROGRAM.relative_to(ROOT)], cwd=ROOT, check=True)
        directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(dir=self.folder)))
        ports = _free_ports(2 * self.size)
        self.members = [
            Member(f"m{n}", ports[2 * n], ports[2 * n + 1], directory / f"m{n}")
            for n in range(self.size)
        ]
        self._stack.callback(self._stop)
        for member in self.members:
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
        self._stack.close()

    @property
    def address(self) -> Address:
        tls = self.tls.tls if self.tls else Tls()
        return Address(tuple(member.endpoint for member in self.members), tls=tls)

    def start(self, member: Member) -> None:
        scheme = "https" if self.tls else "http"
        peers = ",".join(f"{each.name}=http://127.0.0.1:{each.peer}" for each in self.members)
        own = f"{scheme}://127.0.0.1:{member.client}"
        peer = f"http://127.0.0.1:{member.peer}"
        command = [
            *(PROGRAM, "--name", member.name, "--data-dir", member.directory),
            *("--listen-client-urls", own, "--advertise-client-urls", own),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", peers, "--log-level", "error", "--log-outputs", "stderr"),
            *("--logger", "zap", "--max-request-bytes", str(4 << 20)),
            # One member alone waits for nobody.
            *("--heartbeat-interval", "10" if self.size == 1 else "50"),
            *("--election-timeout", "100" if self.size == 1 else "500"),
        ]
        if self.tls:
            at = self.tls.folder
            command += ["--client-cert-auth", "--trusted-ca-file", at / "ca.pem"]
            command += ["--cert-file", at / "server.pem", "--key-file", at / "server.key"]
        with open(member.directory.with_suffix(".log"), "ab") as log:
            member.process = subprocess.Popen(command, stdout=log, stderr=log)

    def await_healthy(self, member: Member) -> None:
        end = time.monotonic() + _STARTS_WITHIN
        while not self._healthy(member):
            log = member.directory.with_suffix(".log").read_text()
            assert member.process is not None
            assert member.process.poll() is None, f"etcd ended: {log}"
            assert time.monotonic() < end, f"etcd did not start: {log}"
            time.sleep(0.01)

    def _healthy(self, member: Member) -> bool:
        if self.tls:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", member.client)) == 0
        try:
            with urllib.request.urlopen(f"http://{member.endpoint}/health", timeout=2) as answer:
                return b'"true"' in answer.read()
        except OSError:
            return False

    def kill(self, member: Member) -> None:
        if member.process is not None:
            member.process.kill()
            member.process.wait()
            member.process = None

    def freeze(self, member: Member) -> None:
        """Stop a member without a word, as a lost network does."""
        assert member.process is not None
        member.process.send_signal(signal.SIGSTOP)

    def thaw(self, member: Member) -> None:
        assert member.process is not None
        member.process.send_signal(signal.SIGCONT)

    def _stop(self) -> None:
        for member in self.members:
            self.kill(member)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
