"""The audit log: writes, rejections and impersonated requests, one JSON line each.

A thread writes the lines (events.py defines what they contain), so that a slow disk does not delay
responses; entries that it cannot keep up with are dropped, counted and reported.

Requests of clients that are not authenticated have a separate, rate-limited file: they
must not push other entries out of the log.
"""

import contextlib
import sys
import threading
from collections import deque
from pathlib import Path
from typing import IO, Protocol, Self

from sully.machinery.errors import ApiError
from sully.runtime.clock import Clock, SystemClock
from sully.runtime.files import open_private
from sully.runtime.ids import Ids
from sully.runtime.log import get_logger
from sully.runtime.ratelimit import TokenBucket
from sully.server.audit.events import DECISION, AuditEvent, bounded, line
from sully.server.requests import Request

_log = get_logger("audit")
MAX_BYTES = 64 << 20
MAX_BACKUPS = 4
UNAUTHENTICATED_BYTES = 8 << 20
UNAUTHENTICATED_BACKUPS = 1
UNAUTHENTICATED_RATE, UNAUTHENTICATED_BURST = 10.0, 100
"""Entries per second of all unauthenticated clients together."""
REPORT_SECONDS = 60.0
"""Seconds between two log lines about suppressed entries."""
MAX_QUEUED = 20_000
_BATCH_SECONDS = 0.1
_BATCH = 16
_FAILED = 400
_ALLOWED, _FORBIDDEN = {DECISION: "allow"}, {DECISION: "forbid"}


class RotatingFile:
    """Appends to a file, which it renames when it is full, or to the standard output."""

    def __init__(self, path: Path | None, *, max_bytes: int, max_backups: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._max_backups = max_backups
        self._file: IO[bytes] | None = None

    def open(self) -> IO[bytes]:
        """Open the file if it is not open; raises OSError."""
        if self._file is None:
            # As private as the data directory.
            self._file = sys.stdout.buffer if self._path is None else open_private(self._path)
        return self._file

    def append(self, data: bytes) -> None:
        """Write whole lines; raises OSError."""
        file = self.open()
        if self._path is not None and file.tell() and file.tell() + len(data) > self._max_bytes:
            self._rename(self._path)
            file = self.open()
        file.write(data)
        file.flush()

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None and self._path is not None:
            file.close()

    def _rename(self, path: Path) -> None:
        self.close()
        for number in range(self._max_backups - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                _numbered(path, number).replace(_numbered(path, number + 1))
        path.replace(_numbered(path, 1))


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


class AuditLog:
    """Writes entries to a file, or to the standard output."""

    def __init__(
        self,
        path: Path | None,
        *,
        max_bytes: int = MAX_BYTES,
        max_backups: int = MAX_BACKUPS,
        max_queued: int = MAX_QUEUED,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._max_queued = max_queued
        self._file = RotatingFile(path, max_bytes=max_bytes, max_backups=max_backups)
        self._unauthenticated = self._file if path is None else _unauthenticated_file(path)
        self._bucket = TokenBucket(UNAUTHENTICATED_RATE, UNAUTHENTICATED_BURST, self._clock)
        self._queue: deque[AuditEvent] = deque()
        self._dropped = 0
        self._suppressed = 0
        self._reported: float | None = None
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._failed = False
        self._file.open()
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def write(self, entry: AuditEvent) -> None:
        """Queue an entry; never blocks."""
        if not entry.authenticated and not self._bucket.take():
            self._suppressed += 1
        elif len(self._queue) >= self._max_queued:
            self._dropped += 1
        else:
            self._queue.append(bounded(entry))
        if not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Write queued entries, and stop."""
        self._stopping.set()
        self._wake.set()
        self._thread.join()
        self._report_suppressed()
        self._file.close()
        self._unauthenticated.close()

    def _run(self) -> None:
        while not self._stopping.is_set() or self._queue:
            self._wake.wait(REPORT_SECONDS if self._suppressed else None)
            # Writing each line separately would cost the event loop far more.
            self._stopping.wait(_BATCH_SECONDS)
            self._wake.clear()
            while self._queue:
                # A few at a time: each write lets the event loop continue.
                self._append([self._queue.popleft() for _ in range(self._batch_size())])
            dropped, self._dropped = self._dropped, 0
            if dropped:
                _log.error("audit entries dropped", count=dropped)
            if self._is_time_to_report():
                self._report_suppressed()

    def _batch_size(self) -> int:
        return min(len(self._queue), _BATCH)

    def _append(self, entries: list[AuditEvent]) -> None:
        try:
            for file, authenticated in ((self._file, True), (self._unauthenticated, False)):
                lines = [line(entry) for entry in entries if entry.authenticated is authenticated]
                if lines:
                    file.append(b"".join(lines))
        except OSError as error:
            if not self._failed:
                _log.error("failed to write audit log", error=str(error), dropped=len(entries))
            self._failed = True
        else:
            self._failed = False

    def _is_time_to_report(self) -> bool:
        last = self._reported
        return last is None or self._clock.monotonic() >= last + REPORT_SECONDS

    def _report_suppressed(self) -> None:
        count, self._suppressed = self._suppressed, 0
        if count:
            self._reported = self._clock.monotonic()
            _log.warning("audit entries of unauthenticated requests suppressed", count=count)


def _unauthenticated_file(path: Path) -> RotatingFile:
    separate = path.with_name(f"{path.stem}-unauthenticated{path.suffix}")
    return RotatingFile(
        separate, max_bytes=UNAUTHENTICATED_BYTES, max_backups=UNAUTHENTICATED_BACKUPS
    )


class AuditSink(Protocol):
    """Takes the entries of requests."""

    def write(self, entry: AuditEvent) -> None:
        """Take an entry; never block."""
        ...


class DelayedEntries:
    """The entries of writes that are committed together, until it is known what became of them."""

    def __init__(self, log: AuditSink) -> None:
        self._log = log
        self._entries: list[AuditEvent] = []

    def write(self, entry: AuditEvent) -> None:
        """Keep an entry."""
        self._entries.append(entry)

    def committed(self) -> None:
        """Write all entries."""
        for entry in self._entries:
            self._log.write(entry)

    def rejected(self) -> None:
        """Write only the entry of the write that was rejected: the others had no effect."""
        for entry in self._entries:
            if entry.code >= _FAILED:
                self._log.write(entry)

    def failed(self, error: ApiError) -> None:
        """Write all entries with an error: it may be unknown whether they had an effect."""
        for entry in self._entries:
            entry.code, entry.reason = error.code, error.reason
        self.committed()


class RequestAudit:
    """Audits one request of a caller in this process: a block that is entered once."""

    __slots__ = (
        "_clock",
        "_ids",
        "_log",
        "_received",
        "_request",
        "allowed",
        "code",
        "name",
        "verb",
    )

    def __init__(self, log: AuditSink, clock: Clock, ids: Ids, request: Request, verb: str) -> None:
        self._log = log
        self._clock = clock
        self._ids = ids
        self._request = request
        self._received = clock.now()
        self.verb = verb
        self.allowed = False
        self.code = 500
        self.name = ""
        """Of the object, where the request has none."""

    def __enter__(self) -> Self:
        """Return the entry to be."""
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Write the entry, also after an error."""
        reason = ""
        if isinstance(error, ApiError):
            self.code, reason = error.code, error.reason
        request = self._request
        entry = AuditEvent(
            id=self._ids.uid(),
            verb=self.verb,
            uri="",
            received=self._received,
            ended=self._clock.now(),
            code=self.code,
            reason=reason,
            user=request.user,
            target=request.target,
            name=self.name,
            agent=request.user_agent,
            annotations=_ALLOWED if self.allowed else _FORBIDDEN,
        )
        self._log.write(entry)
