"""The SQLite file: one table that is the log of everything that was written.

A row is one change: a value, or NULL for a deletion. The newest row of a key is its current
state, so a write is one insert at the end of a B-tree, and compaction deletes the rows that a
later one superseded. All current state is in memory, where it was replayed at start; the file is
read only once. One connection writes and checkpoints: two that do so at the same time are what
SQLite's WAL-reset bug needs, and the exclusive lock keeps even a curious shell out.

Used by one thread at a time: `store.py` opens it, then `writer.py` owns it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from zlib import crc32

import apsw
import msgspec

from sully.store.backup.copying import Copying
from sully.store.base import FIRST_REVISION, Event
from sully.store.errors import OpenError, UnavailableError
from sully.store.replay import PLACES, ReplayError, Row, Version, replay
from sully.store.state import State

FORMAT = 2
"""The layout of the file; a program that knows only an older one must not touch it."""

_APPLICATION_ID = 0x53756C6C  # "Sull": distinguishes our files from other databases
_OLDEST_SQLITE = (3, 51, 3)  # before it, a WAL reset could corrupt the file
_MAX_ROWS = 64

_SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE log (
    id INTEGER PRIMARY KEY,     -- revision * {PLACES} + place in the transaction
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    created INTEGER NOT NULL,   -- the revision at which the key came into existence
    value BLOB,                 -- NULL: deleted
    sum INTEGER                 -- of all of the above; NULL: written by a program without sums
) STRICT;
-- For people with a shell; the program does not read it.
CREATE VIEW current AS
    SELECT resource, namespace, name, max(id) / {PLACES} AS revision, created, value
    FROM log GROUP BY resource, namespace, name HAVING value IS NOT NULL;
INSERT INTO meta VALUES ('compacted', {FIRST_REVISION});
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {FORMAT};
"""

# The rows of one transaction have ids next to each other, so the range finds them by the
# primary key, and the table needs no index that every write would pay for.
_DELETE = f"""
WITH gone (revision, resource, namespace, name) AS MATERIALIZED (
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?)
)
DELETE FROM log WHERE id IN (
    SELECT log.id FROM gone JOIN log
    ON log.id BETWEEN gone.revision * {PLACES}
        AND gone.revision * {PLACES} + {PLACES - 1}
    WHERE log.name = gone.name AND log.namespace = gone.namespace
        AND log.resource = gone.resource)
"""


def _insert(rows: int) -> str:
    return "INSERT INTO log VALUES " + ",".join(["(?,?,?,?,?,?,?)"] * rows)


# One statement for many rows: each statement gives up the interpreter lock and must win it back
# from a busy event loop. Powers of two keep the number of statements to prepare small.
_INSERTS = {1 << bit: _insert(1 << bit) for bit in range(_MAX_ROWS.bit_length())}


ChecksummedRow = tuple[int, str, str, str, int, bytes | None, int | None]
"""A row of the log as it is in the file."""


def _checksum(row: Row) -> int:
    identity, resource, namespace, name, created, value = row
    head = f"{identity}/{resource}/{namespace}/{name}/{created}/{value is None}"
    return crc32(value or b"", crc32(head.encode()))


def _with_checksum(*row: *Row) -> ChecksummedRow:
    return (*row, _checksum(row))


def _row(event: Event, index: int) -> ChecksummedRow:
    return _with_checksum(
        event.revision * PLACES + index,
        *event.record.key,
        event.record.create_revision,
        None if event.kind == "DELETED" else event.record.value,
    )


def _verified(rows: Iterable[ChecksummedRow]) -> Iterator[Row]:
    """Yield rows that are as they were written: SQLite does not notice a changed byte in one."""
    for row in rows:
        bare, checksum = row[:6], row[6]
        if checksum is not None and checksum != _checksum(bare):
            where = "/".join(part for part in bare[1:4] if part)
            raise ReplayError(f"{where} at {bare[0] // PLACES} is not as it was written")
        yield bare


class Database:
    """An open database file."""

    def __init__(self, path: Path, *, vfs: str | None = None) -> None:
        """Open the file; create the schema if it is new.

        `vfs` names another layer below SQLite than the files of the system, for simulated disks.
        """
        self._path = path
        self._last = 0
        self._suspect = False
        self._untrimmed: list[Version] = []
        """Rows that could not be deleted; those of a key oldest first."""
        _check_library()
        try:
            self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
            try:
                if vfs is not None:
                    # Before the first read, other layers need no shared memory then. Files of the
                    # system get it, so that a full disk is noticed here and not by the first write.
                    self._connection.pragma("locking_mode", "exclusive")
                self._prepare()
            except BaseException:
                self._connection.close()
                raise
        except apsw.Error as error:
            raise unusable(path, "cannot be opened", error) from error

    def verify(self) -> None:
        """Check every page and every index, which takes longer than what `load` checks."""
        try:
            problem = self._connection.execute("PRAGMA integrity_check(1)").get
        except apsw.Error as error:
            raise unusable(self._path, "is damaged", error) from error
        if problem != "ok":
            raise unusable(self._path, "is damaged", ReplayError(str(problem)))

    def load(self) -> State:
        """Return everything in the file, ready to be read."""
        state, leftover = read_state(self._connection, self._path)
        self._last = _integer(self._connection, "SELECT coalesce(max(id), 0) FROM log")
        # A full disk must not prevent reading; the next compaction retries.
        with contextlib.suppress(UnavailableError):
            if leftover:
                self.trim(_compacted(self._connection), leftover)
        return state

    def write(self, transactions: Iterable[Iterable[Event]]) -> int:
        """Make these transactions durable together; return about how many bytes it took."""
        try:
            rows = [
                _row(event, index) for events in transactions for index, event in enumerate(events)
            ]
            self._insert(rows)
        except (apsw.Error, UnicodeError) as error:
            raise self._failed(error) from error
        self._last = rows[-1][0]
        return sum(200 + len(row[5] or b"") for row in rows)

    def trim(self, compacted: int, versions: Sequence[Version]) -> None:
        """Delete rows that a later one superseded before this revision, and note the revision."""
        # With those of an attempt that failed: a deletion that is trimmed without all states before
        # it would bring its object back.
        self._untrimmed.extend(versions)
        row_ids = msgspec.json.encode([(revision, *key) for revision, key in self._untrimmed])
        try:
            with self._connection:
                # The deletions may include the newest row, whose revision must not be
                # reused: therefore both are one transaction.
                self._connection.execute(
                    "UPDATE meta SET value = max(value, ?) WHERE name = 'compacted'", (compacted,)
                )
                self._connection.execute(_DELETE, (row_ids.decode(),))
        except apsw.Error as error:
            raise self._failed(error) from error
        self._untrimmed.clear()

    def copy(self, path: Path) -> Copying:
        """Begin to copy everything into an empty file."""
        try:
            return Copying(self._connection, path)
        except apsw.Error as error:
            raise _copy_error(path, error) from error

    def copy_more(self, copying: Copying, path: Path) -> bool:
        """Copy a little more; return whether that was the end of it."""
        try:
            return copying.step()
        except apsw.Error as error:
            copying.abandon()
            raise _copy_error(path, error) from error

    def checkpoint(self) -> None:
        """Move what the write-ahead log holds into the database file."""
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Close the file; SQLite checkpoints and removes the write-ahead log."""
        self._connection.close()

    def _prepare(self) -> None:
        connection = self._connection
        version = format_of(connection, self._path)
        connection.pragma("locking_mode", "exclusive")
        connection.pragma("journal_mode", "wal")
        # Without a flush at every commit, a power failure can lose acknowledged writes.
        connection.pragma("synchronous", "full")
        connection.pragma("fullfsync", True)  # only where a flush alone does not reach the disk
        # The writer thread does it when no write waits.
        connection.pragma("wal_autocheckpoint", 0)
        connection.pragma("cache_size", -2 * 1024)
        if version == 1:
            with connection:
                connection.execute("ALTER TABLE log ADD COLUMN sum INTEGER")
                connection.pragma("user_version", FORMAT)
        if version is None:
            with connection:
                for _ in connection.execute(_SCHEMA):
                    raise AssertionError("the schema yields no rows")

    def _insert(self, rows: list[ChecksummedRow]) -> None:
        if len(rows) in _INSERTS and not self._suspect:
            # A lone statement is a transaction already.
            self._connection.execute(_INSERTS[len(rows)], tuple(chain.from_iterable(rows)))
            return
        with self._connection:
            if self._suspect:
                # What failed before was reported as not written, so it must not exist.
                self._connection.execute("DELETE FROM log WHERE id > ?", (self._last,))
            while rows:
                count = min(_MAX_ROWS, 1 << (len(rows).bit_length() - 1))
                bindings = tuple(chain.from_iterable(rows[:count]))
                self._connection.execute(_INSERTS[count], bindings)
                rows = rows[count:]
        self._suspect = False

    def _failed(self, error: Exception) -> UnavailableError:
        self._suspect = True
        return UnavailableError(f"cannot write {self._path}: {_reason(error)}")


def format_of(connection: apsw.Connection, path: Path) -> int | None:
    """Return the format of a file, None if it is empty; raise if this program must not use it."""
    if _integer(connection, "SELECT count(*) FROM sqlite_schema") == 0:
        return None
    if _integer(connection, "PRAGMA application_id") != _APPLICATION_ID:
        raise OpenError(f"{path} is not a store of Sully: give another --data-dir, or move it away")
    version = _integer(connection, "PRAGMA user_version")
    if version > FORMAT:
        raise OpenError(
            f"{path} has format {version}, this program knows formats up to {FORMAT}:"
            " use the newer program that wrote it"
        )
    return version


def read_state(connection: apsw.Connection, path: Path) -> tuple[State, list[Version]]:
    """Check and return everything in a file, with the rows that could be trimmed."""
    try:
        problem = connection.execute("PRAGMA quick_check(1)").get
        if problem != "ok":
            raise ReplayError(str(problem))
        has_sums = _integer(connection, "PRAGMA user_version") > 1
        columns = "*" if has_sums else "*, NULL"
        rows = connection.execute(f"SELECT {columns} FROM log ORDER BY id")
        return replay(_verified(rows), _compacted(connection))
    except (apsw.Error, ReplayError) as error:
        raise unusable(path, "is damaged", error) from error


def _compacted(connection: apsw.Connection) -> int:
    return _integer(connection, "SELECT value FROM meta WHERE name = 'compacted'")


def _integer(connection: apsw.Connection, statement: str) -> int:
    value = connection.execute(statement).get
    if not isinstance(value, int):
        raise ReplayError(f"no answer to {statement}")
    return value


def unusable(path: Path, what: str, error: Exception) -> OpenError:
    """Return the error for a file that cannot be used, with what to do."""
    # SQLite writes its findings on lines of their own.
    reason = " ".join(_reason(error).split())
    if isinstance(error, apsw.FullError | apsw.IOError):
        # The file may be as good as ever.
        return OpenError(
            f"{path} cannot be used: {reason}. Nothing was changed."
            f" Free space on the disk of {path.parent}, or check the disk if it has space"
        )
    return OpenError(
        f"{path} {what}: {reason}. Nothing was changed."
        f" Restore a backup with 'sully restore', or move {path.name} and {path.name}-wal away"
        " to start with an empty store"
    )


def _copy_error(path: Path, error: apsw.Error) -> UnavailableError:
    return UnavailableError(f"cannot copy the database to {path}: {_reason(error)}")


def _check_library() -> None:
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < _OLDEST_SQLITE:
        raise OpenError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt its log;"
            f" at least {'.'.join(map(str, _OLDEST_SQLITE))} is needed"
        )


def _reason(error: Exception) -> str:
    """Return the text of SQLite with its code: a full disk differs from a broken one."""
    code = int(getattr(error, "extendedresult", 0))
    name = apsw.mapping_extended_result_codes.get(code) or apsw.mapping_result_codes.get(code)
    return f"{error} ({name})" if code else str(error)
