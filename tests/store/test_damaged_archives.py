"""Archives with random damage, and hostile ones: an error, and the directory stays as it was."""

from __future__ import annotations

import asyncio
import os
import shutil
import tarfile
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sully.store.backup.archive import ARCHIVE_FORMAT, BackupError, back_up_stopped, write_archive
from sully.store.backup.restore import restore
from sully.store.base import Put, StoreKey
from sully.store.sqlite.database import FORMAT
from sully.store.sqlite.store import SqliteStore

EXAMPLES = int(os.environ.get("SULLY_FUZZ_EXAMPLES", "25"))
"""`make robust` tries more."""
MINE = {"mine": b"mine", "store.db": b"not a database"}


async def _fill(folder: Path) -> None:
    async with await SqliteStore.open(folder) as store:
        for number in range(20):
            await store.commit([Put(StoreKey("pods", "default", f"pod-{number}"), b"{}" * 50)])


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("archive")
    asyncio.run(_fill(folder / "data"))
    (folder / "data" / "ca.key").write_bytes(b"a key")
    target = folder / "saved"
    with back_up_stopped(folder / "data") as copy:
        now = datetime(2030, 1, 1, tzinfo=UTC)
        write_archive(target, copy, folder / "data", now=now, program="sully")
    return target.read_bytes()


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _restored(content: bytes) -> dict[str, bytes] | None:
    """Restore an archive over a directory; return what is in it, or None if it was refused."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        data, saved = folder / "data", folder / "saved"
        data.mkdir(mode=0o700)
        for file, text in MINE.items():
            (data / file).write_bytes(text)
        saved.write_bytes(content)
        try:
            restore(saved, data, force=True)
        except BackupError:
            assert _files(data) == MINE
            assert {path.name for path in folder.iterdir()} == {"data", "saved"}
            return None
        result = _files(data)
        shutil.rmtree(data)
        return result


@settings(max_examples=EXAMPLES)
@given(
    edits=st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from(("flip", "cut", "insert", "zero")), st.binary()),
        min_size=1,
        max_size=4,
    )
)
def test_damage_is_refused_or_makes_no_difference(
    archive: bytes, edits: list[tuple[float, str, bytes]]
) -> None:
    content = bytearray(archive)
    for place, kind, data in edits:
        at = int(place * len(content))
        match kind:
            case "flip":
                content[at : at + 1] = bytes(byte ^ 0x41 for byte in content[at : at + 1])
            case "cut":
                del content[at:]
            case "insert":
                content[at:at] = data
            case _:
                content[at : at + 512] = bytes(len(content[at : at + 512]))

    result = _restored(bytes(content))

    assert result is None or result.keys() >= {"store.db", "ca.key"}
    assert result is None or result["ca.key"] == b"a key"


def _tar(manifest: object, members: dict[str, bytes], *, pax: bool = True) -> bytes:
    buffer = BytesIO()
    form = tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for name, content in {"manifest.json": msgspec.json.encode(manifest), **members}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, BytesIO(content))
    return buffer.getvalue()


def _manifest(files: dict[str, str], form: int = ARCHIVE_FORMAT) -> dict[str, object]:
    created = "2030-01-01T00:00:00Z"
    return {
        "format": form,
        "revision": 1,
        "created": created,
        "program": "sully",
        "files": files,
    }


_NAMES = st.one_of(
    st.sampled_from(("store.db", "../x", "/etc/passwd", "lock", ".", "..", "a\0b", "x/y", "")),
    st.text(max_size=20),
)


@settings(max_examples=EXAMPLES)
@given(
    files=st.dictionaries(_NAMES, st.sampled_from(("", "0" * 64)), max_size=4),
    members=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
        st.binary(max_size=50),
        max_size=4,
    ),
    form=st.integers(-1, 9),
)
def test_hostile_archives_are_refused(
    files: dict[str, str], members: dict[str, bytes], form: int
) -> None:
    assert _restored(_tar(_manifest({"store.db": "", **files}, form), members)) is None


def test_a_newer_archive_is_refused_by_its_format() -> None:
    with TemporaryDirectory() as name:
        saved = Path(name) / "saved"
        saved.write_bytes(_tar(_manifest({"store.db": ""}, ARCHIVE_FORMAT + 1), {}))

        with pytest.raises(BackupError, match="use the newer program"):
            restore(saved, Path(name) / "data")

        assert not (Path(name) / "data").exists()


def test_a_store_of_a_newer_format_is_refused(archive: bytes) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "saved").write_bytes(archive)
        restore(folder / "saved", folder / "data")
        with closing(apsw.Connection(str(folder / "data" / "store.db"))) as database:
            database.pragma("user_version", FORMAT + 1)
            database.pragma("journal_mode", "delete")
        store = (folder / "data" / "store.db").read_bytes()
        files = {"store.db": sha256(store).hexdigest()}
        newer = _tar(_manifest(files), {"store.db": store})
        (folder / "newer").write_bytes(newer)

        with pytest.raises(BackupError, match=f"format {FORMAT + 1}.*use the newer program"):
            restore(folder / "newer", folder / "other")

        assert not (folder / "other").exists()
    assert _restored(newer) is None


def _link() -> bytes:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("manifest.json")
        member.type, member.linkname = tarfile.LNKTYPE, "nowhere"
        archive.addfile(member)
    return buffer.getvalue()


HOSTILE = {
    "a manifest that is not text": _tar(_manifest({"a key": ""}), {}).replace(
        b"a key", b"a\xffkey"
    ),
    "a manifest that is a link": _link(),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_manifest_that_cannot_be_read_is_refused(content: bytes) -> None:
    assert _restored(content) is None
