"""The audit log: who wrote what, and what became of it; one JSON line a write.

Lines look like audit.k8s.io/v1 events at the level Metadata. They tell names and verdicts, never
bodies or messages: those may quote what was in a Secret. A thread of its own writes them, so that
a slow disk does not hold up answers; what it cannot keep up with is dropped, counted and told.
"""

import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import IO

import msgspec

from sully.machinery.codec import to_json
from sully.machinery.errors import ApiError
from sully.machinery.strategy import Obj
from sully.machinery.timestamps import format_micro_time
from sully.runtime.clock import Clock
from sully.runtime.ids import Ids
from sully.runtime.log import get_logger
from sully.server.authentication.reviews import user_info
from sully.server.requests import Request, Target, User

_log = get_logger("audit")
MAX_BYTES = 64 << 20
KEPT = 4
DECISION = "authorization.k8s.io/decision"
REASON = "authorization.k8s.io/reason"
_WAITING = 20_000
_GATHER_SECONDS = 0.1
_AT_ONCE = 16


class Entry(msgspec.Struct):
    """One write, as it ended."""

    id: str
    verb: str
    uri: str
    received: datetime
    ended: datetime
    code: int
    reason: str = ""
    user: User | None = None  # None: nobody knows
    acting: User | None = None  # whom the user impersonated
    target: Target | None = None
    name: str = ""  # of the object, where the path has none
    agent: str = ""
    source: str = ""
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)


class AuditLog:
    """Writes entries to a file, which it turns over by size, or to the standard output."""

    def __init__(self, path: Path | None, *, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._kept = kept
        self._waiting: deque[Entry] = deque()
        self._dropped = 0
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._failed = False
        self._file = self._open()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def write(self, entry: Entry) -> None:
        """Take an entry; never waits."""
        if len(self._waiting) >= _WAITING:
            self._dropped += 1
            return
        self._waiting.append(entry)
        if not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Write what waits, and end."""
        self._ending.set()
        self._wake.set()
        self._thread.join()
        if self._path is not None:
            self._file.close()

    def _open(self) -> IO[bytes]:
        if self._path is None:
            return sys.stdout.buffer
        # Whoever may not read the data directory may not read who did what in it.
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "ab")

    def _run(self) -> None:
        while not self._ending.is_set() or self._waiting:
            self._wake.wait()
            # To write each line at once would cost the thread that answers far more.
            self._ending.wait(_GATHER_SECONDS)
            self._wake.clear()
            while self._waiting:
                # A few at a time: each write lets the thread that answers go on.
                some = range(min(len(self._waiting), _AT_ONCE))
                self._append([line(self._waiting.popleft()) for _ in some])
            dropped, self._dropped = self._dropped, 0
            if dropped:
                _log.error("audit entries dropped", count=dropped)

    def _append(self, lines: list[bytes]) -> None:
        data = b"".join(lines)
        try:
            self._turn_over(len(data))
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            if not self._failed:
                _log.error("the audit log cannot be written", error=str(error), lost=len(lines))
            self._failed = True
        else:
            self._failed = False

    def _turn_over(self, more: int) -> None:
        if self._path is None or self._file.tell() + more <= self._max_bytes:
            return
        if self._file.tell() == 0:
            return
        self._file.close()
        for number in range(self._kept - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                _numbered(self._path, number).replace(_numbered(self._path, number + 1))
        self._path.replace(_numbered(self._path, 1))
        self._file = self._open()


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


class Note:
    """Watches one write of a caller in this process."""

    def __init__(self, log: AuditLog, clock: Clock, ids: Ids, request: Request) -> None:
        self._log = log
        self._clock = clock
        self._ids = ids
        self._request = request
        self.allowed = False
        self._code = 500
        self._name = ""
        self._verb = ""
        self._received = clock.now()

    def taken(self, verb: str) -> "Note":
        """Return the note as a block that writes down how it ended."""
        self._verb = verb
        return self

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Write it down, whatever the end was."""
        reason = ""
        if isinstance(error, ApiError):
            self._code, reason = error.code, error.reason
        self._log.write(self._entry(self._verb, self._received, reason))

    def answered(self, verb: str, obj: Obj) -> None:
        """Note a success."""
        self._code = 201 if verb == "create" else 200
        self._name = obj.get("metadata", {}).get("name", "")

    def _entry(self, verb: str, received: datetime, reason: str) -> Entry:
        request = self._request
        return Entry(
            id=self._ids.uid(),
            verb=verb,
            uri="",
            received=received,
            ended=self._clock.now(),
            code=self._code,
            reason=reason,
            user=request.user,
            target=request.target,
            name=self._name,
            agent=request.user_agent,
            annotations={DECISION: "allow" if self.allowed else "forbid"},
        )


def line(entry: Entry) -> bytes:
    """Write an entry as one line."""
    event: Obj = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": entry.id,
        "stage": "ResponseComplete",
        # A caller in this process has no address to write down.
        **({"requestURI": entry.uri} if entry.uri else {}),
        "verb": entry.verb,
        "user": {} if entry.user is None else user_info(entry.user),
    }
    if entry.acting is not None:
        event["impersonatedUser"] = user_info(entry.acting)
    if entry.source:
        event["sourceIPs"] = [entry.source]
    if entry.agent:
        event["userAgent"] = entry.agent
    if entry.target is not None:
        event["objectRef"] = _reference(entry.target, entry.name)
    event["responseStatus"] = _status(entry)
    event["requestReceivedTimestamp"] = format_micro_time(entry.received)
    event["stageTimestamp"] = format_micro_time(entry.ended)
    if entry.annotations:
        event["annotations"] = dict(entry.annotations)
    return to_json(event) + b"\n"


def _reference(target: Target, name: str) -> Obj:
    found = {
        "resource": target.resource.plural,
        "namespace": target.namespace,
        "name": target.name or name,
        "apiGroup": target.resource.group,
        "apiVersion": target.version,
        "subresource": target.subresource,
    }
    return {key: value for key, value in found.items() if value}


def _status(entry: Entry) -> Obj:
    status: Obj = {"metadata": {}}
    if entry.code >= 400:
        status["status"] = "Failure"
        if entry.reason:
            status["reason"] = entry.reason
    return status | {"code": entry.code}
