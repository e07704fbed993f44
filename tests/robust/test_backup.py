"""`sully backup` and `sully restore`: of a server at work, of a stopped one, of bad archives."""

import asyncio
import os
import shutil
import stat
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
import yaml

from crashes.server import Connection, Server
from e2e.raw import Raw
from robust.conftest import KEPT, config_map
from robust.programs import files, overwrite, sully
from sully.store.backup.restore import REVISIONS_SKIPPED
from sully.testing.cluster import process

pytestmark = pytest.mark.slow
PATH = "/api/v1/namespaces/default/configmaps"
QUIET = ("--log-level", "error")


class Pair:
    """Two objects written in turn: the second never gets ahead of the first."""

    def __init__(self, number: int) -> None:
        self.warm = asyncio.Event()
        self.names = (f"first-{number}", f"second-{number}")
        self.acknowledged = 0

    async def write(self, connection: Connection, stop: asyncio.Event) -> None:
        for name in self.names:
            assert (await connection.call("POST", PATH, config_map(name, "0")))[0] == 201
        while not stop.is_set():
            text = str(self.acknowledged + 1)
            for name in self.names:
                code, _ = await connection.call("PUT", f"{PATH}/{name}", config_map(name, text))
                assert code == 200
            self.acknowledged += 1
            if self.acknowledged == 10:
                self.warm.set()


async def back_up_at_work(directory: Path, file: Path, pairs: list[Pair]) -> list[int]:
    """Back up while everyone writes; return what was acknowledged before it began."""
    server = await Server.start(directory, *QUIET)
    try:
        await server.ready()
        stop = asyncio.Event()
        async with server.connect() as connection, asyncio.TaskGroup() as tasks:
            for pair in pairs:
                tasks.create_task(pair.write(connection, stop))
            for pair in pairs:
                await pair.warm.wait()
            before = [pair.acknowledged for pair in pairs]
            done = await asyncio.to_thread(sully, "backup", "--data-dir", directory, file)
            assert done.returncode == 0, done.stderr
            after = [pair.acknowledged for pair in pairs]
            stop.set()
        # Writers were not held up until the end of it.
        assert all(new > old for new, old in zip(after, before, strict=True))
        return before
    finally:
        await server.kill()


def test_a_backup_of_a_server_at_work_is_one_moment(used: Path, tmp_path: Path) -> None:
    pairs = [Pair(number) for number in range(4)]
    before = asyncio.run(back_up_at_work(used, tmp_path / "saved", pairs))
    assert sully("restore", tmp_path / "saved", "--data-dir", tmp_path / "again").returncode == 0

    with process(*QUIET, data_dir=tmp_path / "again") as up:
        items = Raw.admin(up.kubeconfig, tmp_path).request("GET", PATH).json()["items"]
    texts = {item["metadata"]["name"]: item["data"].get("text") for item in items}

    for pair, least in zip(pairs, before, strict=True):
        first, second = (int(texts[name]) for name in pair.names)
        assert second >= least
        assert first - second in (0, 1)
    assert sum(name.startswith("kept-") for name in texts) == KEPT


def test_the_restored_server_lets_old_users_in_and_old_watches_not(
    used: Path, tmp_path: Path
) -> None:
    old = yaml.safe_load((used / "kubeconfig").read_text())
    assert sully("backup", "--data-dir", used, tmp_path / "saved").returncode == 0
    done = sully("restore", tmp_path / "saved", "--data-dir", tmp_path / "again")
    assert done.returncode == 0, done.stderr

    with process(*QUIET, data_dir=tmp_path / "again") as up:
        old["clusters"][0]["cluster"]["server"] = up.url
        (tmp_path / "old").write_text(yaml.safe_dump(old))
        raw = Raw.admin(tmp_path / "old", tmp_path)
        listed = raw.request("GET", PATH).json()
        gone = raw.request("GET", f"{PATH}?watch=1&resourceVersion=20&timeoutSeconds=1")

    assert int(listed["metadata"]["resourceVersion"]) > REVISIONS_SKIPPED
    assert b'"code":410' in gone.body
    objects = [item for item in listed["items"] if item["metadata"]["name"].startswith("kept-")]
    assert len(objects) == KEPT
    # What did not change keeps its version, so nobody's copy is stale.
    assert all(int(item["metadata"]["resourceVersion"]) < 1000 for item in objects)


def test_files_are_private(used: Path, tmp_path: Path) -> None:
    os.umask(os.umask(0o022))
    assert sully("backup", "--data-dir", used, tmp_path / "saved").returncode == 0
    assert sully("restore", tmp_path / "saved", "--data-dir", tmp_path / "again").returncode == 0

    paths = [tmp_path / "saved", *(tmp_path / "again").iterdir()]
    assert {path.name for path in paths} > {"saved", "store.db", "ca.crt", "ca.key"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    assert stat.S_IMODE((tmp_path / "again").stat().st_mode) == 0o700


def test_what_is_there_is_not_replaced_unasked(used: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    assert sully("backup", "--data-dir", used, saved).returncode == 0
    again = sully("backup", "--data-dir", used, saved)
    assert (again.returncode, "--force" in again.stderr) == (1, True)
    nowhere = sully("backup", "--data-dir", used, tmp_path / "absent" / "saved")
    assert (nowhere.returncode, nowhere.stderr.count("\n")) == (1, 1)
    assert f"{tmp_path / 'absent' / 'saved'}: no such file or directory" in nowhere.stderr
    before = files(used)

    refused = sully("restore", saved, "--data-dir", used)
    assert (refused.returncode, "--force" in refused.stderr) == (1, True)
    assert files(used) == before

    forced = sully("restore", saved, "--data-dir", used, "--force")
    assert forced.returncode == 0, forced.stderr
    assert files(used.with_name("data.replaced-1")) == before
    assert "data.replaced-1" in forced.stdout


def test_a_directory_in_use_is_not_replaced(used: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    assert sully("backup", "--data-dir", used, saved).returncode == 0
    with process(*QUIET, data_dir=used):
        refused = sully("restore", saved, "--data-dir", used, "--force")

    assert refused.returncode == 1
    assert "is in use by process" in refused.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "saved"]


def flip(file: Path) -> None:
    overwrite(file, 4096 * 5, b"\x55" * 64)


def flip_key(file: Path) -> None:
    data = file.read_bytes()
    at = data.index(b"BEGIN PRIVATE KEY") + 40
    overwrite(file, at, b"AAAA" if data[at : at + 4] != b"AAAA" else b"BBBB")


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def garbage(file: Path) -> None:
    file.write_bytes(b"hello, world" * 1000)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def other_archive(file: Path) -> None:
    with tarfile.open(file, "w") as archive:
        archive.addfile(tarfile.TarInfo("notes.txt"), BytesIO())


def smuggle(file: Path) -> None:
    with tarfile.open(file, "a") as archive:
        archive.addfile(tarfile.TarInfo("../outside"), BytesIO())


def absent(file: Path) -> None:
    file.unlink()


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a flipped page": (flip, "store.db is not as it was saved"),
    "a flipped key": (flip_key, "is not as it was saved"),
    "cut short": (cut, "truncated"),
    "garbage": (garbage, "is not a backup"),
    "empty": (empty, "is not a backup"),
    "another archive": (other_archive, "is not a backup of `sully backup`"),
    "a file that does not belong": (smuggle, "unexpected file '../outside'"),
    "absent": (absent, "No such file"),
}


@pytest.mark.parametrize(("damage", "text"), DAMAGE.values(), ids=DAMAGE.keys())
def test_a_bad_archive_changes_nothing(
    saved_once: Path, tmp_path: Path, damage: Callable[[Path], None], text: str
) -> None:
    saved = Path(shutil.copy(saved_once, tmp_path / "saved"))
    damage(saved)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine").write_text("mine")

    refused = sully("restore", saved, "--data-dir", tmp_path / "data", "--force")

    assert refused.returncode == 1
    assert str(saved) in refused.stderr
    assert text in refused.stderr
    assert files(tmp_path / "data") == {"mine": b"mine"}
    assert {path.name for path in tmp_path.iterdir()} <= {"data", "saved"}


@pytest.fixture(scope="session")
def saved_once(used_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a good archive."""
    file = tmp_path_factory.mktemp("saved") / "saved"
    assert sully("backup", "--data-dir", used_once, file).returncode == 0
    return file


def test_a_store_in_memory_has_nothing_to_back_up(tmp_path: Path) -> None:
    with process("--store", "memory", *QUIET, data_dir=tmp_path / "data"):
        refused = sully("backup", "--data-dir", tmp_path / "data", tmp_path / "saved")

    assert refused.returncode == 1
    assert "there is nothing to back up" in refused.stderr
    assert not (tmp_path / "saved").exists()
