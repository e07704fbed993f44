"""The server under attack: identities for attackers, raw connections, and what is measured.

    up = target.user("mallory")            a tenant with a client certificate
    up.call("GET", "/api/v1/nodes")        one request, one answer
    with up.connect() as connection: ...   bytes of one's own

`Target.bystander` measures how long other clients wait while a block runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from sully.server.net.tls import Authority
from sully.testing.cluster import Process
from sully.testing.patience import PATIENCE

Obj = dict[str, Any]
T = TypeVar("T")
"""After this a test is stuck."""
_LONGEST = 600.0
"""Long enough for work with a budget of processor time, on a machine with a load of 25."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status code, the head and the body; no answer has code 0."""

    code: int
    body: bytes
    head: str = ""

    @property
    def json(self) -> Any:
        """Return the body's content."""
        return json.loads(self.body)

    def ok(self) -> Any:
        """Return the object, which must be there."""
        assert self.code in (200, 201), (self.code, self.body[:600])
        return self.json


class Caller:
    """One identity; without a certificate it is anonymous."""

    def __init__(self, url: str, context: ssl.SSLContext, token: str = "") -> None:
        self.url = url
        self._context = context
        self._token = token

    def connect(self, *, receive_buffer: int = 0) -> ssl.SSLSocket:
        """Open a connection; a small receive buffer makes a client that hardly reads."""
        place = urlsplit(self.url)
        plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            if receive_buffer:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            plain.settimeout(PATIENCE)
            plain.connect((place.hostname, place.port))
            return self._context.wrap_socket(plain, server_hostname=place.hostname)
        except BaseException:
            plain.close()
            raise

    def head(self, method: str, path: str, headers: Mapping[str, str] | None = None) -> bytes:
        """Write the head of a request, without the empty line that ends it."""
        lines = [f"{method} {path} HTTP/1.1", "host: x"]
        if self._token:
            lines.append(f"authorization: Bearer {self._token}")
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        return "".join(f"{line}\r\n" for line in lines).encode("latin-1")

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        media: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request on a connection of its own; bytes go as they are."""
        data = body if isinstance(body, bytes) else b"" if body is None else _json(body)
        sent = {"connection": "close", **(headers or {})}
        if body is not None:
            sent |= {"content-type": media, "content-length": str(len(data))}
        with self.connect() as connection:
            # It may refuse before it has read everything; then the answer is there already.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
                connection.sendall(self.head(method, path, sent) + b"\r\n" + data)
            raw = receive(connection)
        code, rest = parse(raw)
        return Answer(code, _dechunked(raw, rest), raw.partition(b"\r\n\r\n")[0].decode("latin-1"))

    def begin(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        receive_buffer: int = 0,
    ) -> ssl.SSLSocket:
        """Send the beginning of a request, or all of it, on a connection that stays open."""
        connection = self.connect(receive_buffer=receive_buffer)
        connection.sendall(self.head(method, path, headers) + b"\r\n" + body)
        return connection

    def get(self, path: str) -> Answer:
        return self.call("GET", path)

    def post(self, path: str, body: object) -> Answer:
        return self.call("POST", path, body)

    def put(self, path: str, body: object) -> Answer:
        return self.call("PUT", path, body)

    def merge(self, path: str, body: object) -> Answer:
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str) -> Answer:
        return self.call("DELETE", path)


def receive(connection: ssl.SSLSocket) -> bytes:
    """Read to the end."""
    chunks: list[bytes] = []
    while True:
        try:
            chunk = connection.recv(1 << 16)
        except (ConnectionResetError, ssl.SSLError):
            chunk = b""
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


def parse(answer: bytes) -> tuple[int, bytes]:
    """Split an answer into its code and its body; no answer has code 0."""
    if not answer:
        return 0, b""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body


def _json(body: object) -> bytes:
    return json.dumps(body).encode()


def _dechunked(raw: bytes, rest: bytes) -> bytes:
    if b"transfer-encoding: chunked" not in raw.partition(b"\r\n\r\n")[0].lower():
        return rest
    chunks = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size.partition(b";")[0] or b"0", 16)
        chunks.append(rest[:length])
        rest = rest[length + 2 :]
        if not length:
            break
    return b"".join(chunks)


def eventually(condition: Callable[[], T], what: str = "") -> T:
    """Wait for something that the server does by itself: return the first thing that is true."""
    end = time.monotonic() + _LONGEST
    while not (result := condition()):
        assert time.monotonic() < end, f"not after {_LONGEST} s: {what or condition}"
        time.sleep(0.1)  # each look is a request on a connection of its own
    return result


@dataclass(slots=True)
class Delays:
    """How long a bystander waited for its answers, in seconds."""

    answers: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    """Processor time of the server that each answer had to wait for (`Load.kept_waiting`)."""
    failures: list[str] = field(default_factory=list)
    descriptors: int = 0
    """The most that the server had open after an answer."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def await_answers(self, count: int) -> None:
        """Wait until the bystander has this many more answers."""
        with self.changed:
            target = len(self.answers) + count
            assert self.changed.wait_for(lambda: len(self.answers) >= target, PATIENCE), (
                self.failures
            )

    @property
    def longest(self) -> float:
        return max(self.answers, default=0.0)

    @property
    def usual_work(self) -> float:
        """Return the processor time that nine of ten answers took at most."""
        return sorted(self.work)[len(self.work) * 9 // 10] if self.work else 0.0

    @property
    def most_work(self) -> float:
        """Return the longest delay in processor time, which other load does not lengthen."""
        return max(self.work, default=0.0)


@dataclass(frozen=True, slots=True)
class Turns:
    """Seconds that a thread has run, and that it could have run and had no processor."""

    ran: float
    waited: float

    @classmethod
    def of(cls, process: int, thread: int) -> Turns:
        ran, waited, _ = Path(f"/proc/{process}/task/{thread}/schedstat").read_text().split()
        return cls(int(ran) / 1e9, int(waited) / 1e9)


@dataclass(frozen=True, slots=True)
class Load:
    """What the server has done so far."""

    everything: float
    """Processor time of all threads."""
    loop: Turns

    def kept_waiting(self, before: Load, asker_waited: float) -> float:
        """Return the processor time of the server that an answer had to wait for.

        What other threads do while the loop has no processor delays nobody, and neither does what
        is done after the answer, while who asked has none: both only happen on a busy machine.
        """
        loop = self.loop.ran - before.loop.ran
        others = self.everything - before.everything - loop
        beside = max(0.0, others - (self.loop.waited - before.loop.waited))
        return max(0.0, loop + beside - asker_waited)


class Target:
    """A running server, and a way to be anybody on it."""

    def __init__(self, up: Process, scratch: Path) -> None:
        self.up = up
        self.url = up.url
        self._scratch = scratch
        self._authority = Authority.open(up.data_dir, datetime.now(UTC))
        self.admin = self.user("attacks-admin", "system:masters")
        self.anonymous = Caller(self.url, self.trusting())

    def user(self, name: str, *groups: str) -> Caller:
        """Return a caller with a client certificate."""
        pair = self._authority.client(name, list(groups), datetime.now(UTC))
        pem = self._scratch / f"{name.replace(':', '_')}-{len(groups)}.pem"
        pem.write_bytes(pair.certificate + pair.key)
        context = self.trusting()
        context.load_cert_chain(pem)
        return Caller(self.url, context)

    def node(self, name: str) -> Caller:
        """Return the kubelet of a node."""
        return self.user(f"system:node:{name}", "system:nodes")

    def bearer(self, token: str) -> Caller:
        """Return the caller of a token."""
        return Caller(self.url, self.trusting(), token)

    def account(self, namespace: str, name: str) -> Caller:
        """Return a service account by a fresh token; creates the account if it is missing."""
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.admin.post(accounts, {"metadata": {"name": name}})
        made = self.admin.post(f"{accounts}/{name}/token", {"spec": {}}).ok()
        return self.bearer(made["status"]["token"])

    def tenant(self, namespace: str, user: str = "") -> Caller:
        """Return an admin of one namespace, created if it is missing, and of nothing else."""
        name = user or f"admin-of-{namespace}"
        self.admin.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        made = self.admin.post(
            f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
            {
                "metadata": {"name": f"{name}-admin"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "admin",
                },
                "subjects": [
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}
                ],
            },
        )
        assert made.code in (201, 409), made.body[:600]
        return self.user(name)

    def metric(self, line: str) -> float:
        """Return one number of /metrics by its name and labels, 0 if it is not there."""
        page = self.admin.get("/metrics").body.decode()
        rows = [row for row in page.splitlines() if row.startswith(f"{line} ")]
        return float(rows[0].rpartition(" ")[2]) if rows else 0.0

    def wait_for(self, what: Callable[[], bool]) -> None:
        """Wait until something holds; fails when it never does."""
        deadline = time.monotonic() + PATIENCE
        while not what():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.05)

    # -- what is measured -------------------------------------------------------------------------

    def memory(self) -> float:
        """Return the resident memory in MiB."""
        return self._status("VmRSS:")

    def peak_memory(self) -> float:
        """Return the most resident memory since `forget_peak`, in MiB."""
        return self._status("VmHWM:")

    def forget_peak(self) -> None:
        Path(f"/proc/{self.up.child.pid}/clear_refs").write_text("5")

    def descriptors(self) -> int:
        """Return how many files and connections the server has open."""
        return len(os.listdir(f"/proc/{self.up.child.pid}/fd"))

    def load(self) -> Load:
        """Return what the server has done so far."""
        server = self.up.child.pid
        return Load(self.processor_time(), Turns.of(server, server))

    def processor_time(self) -> float:
        """Return the processor time of all threads of the server, in seconds."""
        used = 0
        for task in Path(f"/proc/{self.up.child.pid}/task").iterdir():
            # A thread may end meanwhile.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                used += int((task / "schedstat").read_text().split()[0])
        return used / 1e9

    def _status(self, name: str) -> float:
        text = Path(f"/proc/{self.up.child.pid}/status").read_text()
        return int(text.split(name)[1].split()[0]) / 1024

    def eventually(self, find: Callable[[], T | None]) -> T:
        """Wait until something is there."""
        pause, end = threading.Event(), time.monotonic() + PATIENCE
        while time.monotonic() < end:
            result = find()
            if result:
                return result
            pause.wait(0.05)
        raise AssertionError("it never came")

    def audited(self, matches: Callable[[Obj], bool], name: str = "audit.log") -> list[Obj]:
        """Wait until the audit log has entries that match; return them."""
        return self.eventually(lambda: [e for e in self.audit_events(name) if matches(e)])

    def audit_events(self, name: str = "audit.log") -> list[Obj]:
        """Return what is in the audit log now, as far as whole lines are written."""
        path = self.up.data_dir / name
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    @contextmanager
    def bystander(self, path: str = "/healthz") -> Iterator[Delays]:
        """Ask for a path again and again, as the admin, while the block runs."""
        delays, stop = Delays(), threading.Event()

        def ask() -> None:
            while not stop.is_set():
                try:
                    self._ask_until(path, stop, delays)
                except OSError as error:
                    delays.failures.append(repr(error))

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        try:
            yield delays
        finally:
            stop.set()
            asking.join(PATIENCE)

    def _ask_until(self, path: str, stop: threading.Event, delays: Delays) -> None:
        request = self.admin.head("GET", path) + b"\r\n"
        asker = os.getpid(), threading.get_native_id()
        with self.admin.connect() as connection:
            while not stop.is_set():
                began, waited = time.monotonic(), Turns.of(*asker).waited
                before = self.load()
                connection.sendall(request)
                first = connection.recv(1 << 16)
                if not first:
                    return
                now = self.load()
                delays.work.append(now.kept_waiting(before, Turns.of(*asker).waited - waited))
                with delays.changed:
                    delays.answers.append(time.monotonic() - began)
                    delays.changed.notify_all()
                delays.descriptors = max(delays.descriptors, self.descriptors())
                if parse(first)[0] != 200:
                    delays.failures.append(first[:200].decode("latin-1"))
                stop.wait(0.02)

    def trusting(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self._authority.pair.certificate.decode())
