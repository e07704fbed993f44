"""Files that are not as they should be: `sully up` reports which and what to do."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from robust.programs import files, overwrite, up_fails
from sully.store.directory import DataDirectory
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.slow
RESTORE = "sully restore"


def flipped(directory: Path) -> None:
    value = (directory / "store.db").read_bytes().index(b"x" * 100)
    overwrite(directory / "store.db", value, b"y")


def flipped_page(directory: Path) -> None:
    overwrite(directory / "store.db", 4096 * 2, b"\xff" * 300)


def cut(directory: Path) -> None:
    os.truncate(directory / "store.db", (directory / "store.db").stat().st_size // 2)


def emptied(directory: Path) -> None:
    os.truncate(directory / "store.db", 0)


def garbage(directory: Path) -> None:
    (directory / "store.db").write_bytes(os.urandom(20_000))


def foreign(directory: Path) -> None:
    (directory / "store.db").unlink()
    import sqlite3

    with sqlite3.connect(directory / "store.db") as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()


def a_directory(directory: Path) -> None:
    (directory / "store.db").unlink()
    (directory / "store.db").mkdir()


def bad_key(directory: Path) -> None:
    (directory / "ca.key").write_text("no key")


def no_certificate(directory: Path) -> None:
    (directory / "ca.crt").write_bytes(b"")


CASES: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "one changed byte in an object": (flipped, "store.db is damaged", RESTORE),
    "changed bytes in a page": (flipped_page, "store.db", RESTORE),
    "cut short": (cut, "store.db", RESTORE),
    "emptied": (emptied, "store.db is empty", RESTORE),
    "garbage": (garbage, "store.db", RESTORE),
    "another program's database": (foreign, "store.db is not a store of Sully", "--data-dir"),
    "a directory in its place": (a_directory, "store.db: Is a directory", "must own it"),
    "a key that is none": (bad_key, "ca.key", RESTORE),
    "an empty certificate": (no_certificate, "ca.crt", RESTORE),
}


@pytest.mark.parametrize(("damage", "message", "advises"), CASES.values(), ids=CASES.keys())
def test_damage_is_named(
    used: Path, damage: Callable[[Path], None], message: str, advises: str
) -> None:
    damage(used)
    before = files(used)

    text = up_fails(used)

    assert message in text
    assert str(used) in text
    assert advises in text
    assert files(used) == before


def test_a_log_without_its_database_is_not_thrown_away(used: Path) -> None:
    (used / "store.db-wal").write_bytes(b"what could not be moved yet")
    for path in used.glob("*.key"):
        path.unlink()
    emptied(used)

    assert "store.db is empty" in up_fails(used)
    assert (used / "store.db-wal").read_bytes() == b"what could not be moved yet"


def test_who_does_as_advised_restarts(used: Path) -> None:
    emptied(used)
    (used / "store.db").unlink()

    directory = DataDirectory(used)

    assert directory.database().stat().st_size == 0
    directory.release()


@pytest.fixture
def reachable() -> Iterator[Path]:
    """Return a directory that anyone may enter; pytest's own are the user's alone."""
    with tempfile.TemporaryDirectory(prefix="sully-") as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


UNPRIVILEGED = """
import os, sys
# While they may still be read.
import uvloop, sully.cli.run.up.args, sully.cli.run.up.command, sully.cli.run.up.serving
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
from sully.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


CLOSED = "restricted the data directory to its owner"
STAYS_OPEN = "data directory is accessible to other users"
"""What is in the log before the failure: an owner closes a directory, nobody else can."""


def unprivileged_up_fails(directory: Path, *, warned: str) -> str:
    """Start a server as nobody: permissions do not bind the superuser.

    It warns of this and of nothing else, and fails with one line, which is returned.
    """
    done = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED, "up", "--data-dir", directory, "--listen", "[::1]:0"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    *log, failure = done.stderr.splitlines()
    assert len(log) == bool(warned), done.stderr
    assert all("[warning" in line and warned in line for line in log), done.stderr
    return failure


def test_a_directory_that_cannot_be_written_is_named(reachable: Path) -> None:
    place = reachable / "data"
    place.mkdir()
    place.chmod(0o555)

    # The directory of another user that cannot be used needs no further word.
    text = unprivileged_up_fails(place, warned="" if os.geteuid() == 0 else CLOSED)

    assert f"cannot use the data directory {place}: Permission denied" in text


def test_a_file_of_another_user_is_named(reachable: Path) -> None:
    place = reachable / "data"
    place.mkdir()
    for name, mode in (("lock", 0o666), ("store.db", 0o400)):
        (place / name).touch()
        (place / name).chmod(mode)
    if os.geteuid() != 0:
        (place / "store.db").chmod(0o000)
    place.chmod(0o777)

    text = unprivileged_up_fails(place, warned=STAYS_OPEN if os.geteuid() == 0 else CLOSED)

    assert f"cannot write {place / 'store.db'}: Permission denied" in text
    assert "must own it" in text
