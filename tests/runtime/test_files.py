"""Private files: what others put in the way is neither followed nor used."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sully.runtime.files import create_private, open_private, scratch_name, write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Return a file that an attacker would like to see overwritten."""
    path = tmp_path / "elsewhere"
    path.write_bytes(b"theirs")
    return path


@pytest.mark.parametrize("before", [None, b"old"], ids=["new", "replaced"])
def test_write_private(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "key"
    if before is not None:
        path.write_bytes(before)
        path.chmod(0o644)

    old = os.umask(0)
    try:
        write_private(path, b"secret")
    finally:
        os.umask(old)

    assert path.read_bytes() == b"secret"
    assert mode(path) == 0o600
    assert os.listdir(tmp_path) == ["key"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path, elsewhere: Path) -> None:
    path = tmp_path / "key"
    path.symlink_to(elsewhere)

    write_private(path, b"secret")

    assert not path.is_symlink()
    assert elsewhere.read_bytes() == b"theirs"


def test_nobody_can_guess_the_name_of_what_is_prepared(tmp_path: Path) -> None:
    names = {scratch_name(tmp_path / "key") for _ in range(100)}

    assert len(names) == 100
    assert all(name.parent == tmp_path for name in names)


def test_create_private_refuses_what_is_there(tmp_path: Path, elsewhere: Path) -> None:
    link, dangling = tmp_path / "link", tmp_path / "dangling"
    link.symlink_to(elsewhere)
    dangling.symlink_to(tmp_path / "nothing")

    for path in (elsewhere, link, dangling):
        with pytest.raises(FileExistsError):
            create_private(path)
    assert not (tmp_path / "nothing").exists()


def test_open_private_follows_no_link(tmp_path: Path, elsewhere: Path) -> None:
    link = tmp_path / "audit.log"
    link.symlink_to(elsewhere)

    with pytest.raises(OSError, match="symbolic links"):
        open_private(link)


def test_open_private_closes_a_file_to_others(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"one\n")
    path.chmod(0o644)

    with open_private(path) as file:
        file.write(b"two\n")

    assert path.read_bytes() == b"one\ntwo\n"
    assert mode(path) == 0o600


def test_devices_keep_their_mode() -> None:
    before = mode(Path("/dev/null"))

    open_private(Path("/dev/null")).close()

    assert mode(Path("/dev/null")) == before
