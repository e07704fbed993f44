"""A full disk: writes are refused with a reason, reads continue; space is all it needs again."""

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from e2e.raw import Answer, Raw
from robust.conftest import config_map
from robust.programs import up_fails
from sully.testing.cluster import Process, process

pytestmark = pytest.mark.slow
PATH = "/api/v1/namespaces/default/configmaps"
LARGE = "x" * (600 << 10)

Full = Callable[[Process], AbstractContextManager[None]]


@contextmanager
def no_larger_files(up: Process) -> Iterator[None]:
    """Let no file of the server grow beyond what it has about now."""
    before = resource.prlimit(up.child.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(up.child.pid, resource.RLIMIT_FSIZE, (256 << 10, before[1]))
    try:
        yield
    finally:
        resource.prlimit(up.child.pid, resource.RLIMIT_FSIZE, before)


@contextmanager
def no_space(up: Process) -> Iterator[None]:
    """Fill the file system that the server is on."""
    ballast = up.data_dir / "ballast"
    with ballast.open("wb", buffering=0) as file:
        size = 1 << 20
        while size >= 1:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2
    try:
        yield
    finally:
        ballast.unlink()


def _mounted(folder: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Return a directory, on a small file system of its own where we may make one."""
    folder = tmp_path / "data"
    folder.mkdir()
    mounted = os.geteuid() == 0 and _mounted(folder)
    yield folder
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


def ways(folder: Path) -> list[Full]:
    """Return the ways in which that disk can be full."""
    return [no_larger_files, no_space] if folder.is_mount() else [no_larger_files]


def write(raw: Raw, name: str, text: str) -> Answer:
    return raw.request("POST", PATH, config_map(name, text))


def test_a_full_disk_refuses_writes_and_nothing_else(small: Path, tmp_path: Path) -> None:
    written = ["before"]
    with process("--log-level", "error", data_dir=small) as up:
        raw = Raw.admin(up.kubeconfig, tmp_path)
        assert write(raw, "before", "1").code == 201
        for number, full in enumerate(ways(small)):
            with full(up):
                refused = write(raw, f"refused-{number}", LARGE)
                status = refused.json()
                assert refused.code == 503
                assert (status["kind"], status["reason"]) == ("Status", "ServiceUnavailable")
                # It may follow a write of a controller that failed for the same reason.
                assert "the write could not be stored: " in status["message"]
                assert "cannot write" in status["message"]
                assert raw.request("GET", f"{PATH}/before").code == 200
                assert raw.request("GET", f"{PATH}/refused-{number}").code == 404
                assert raw.request("GET", "/readyz").code == 200
            assert write(raw, f"after-{number}", LARGE).code == 201
            written.append(f"after-{number}")
        assert up.stop() == 0

    if small.is_mount():
        with no_space(up):
            text = up_fails(small)
        assert "Free space on the disk" in text or "No space left" in text
        assert str(small) in text

    with process("--log-level", "error", data_dir=small) as up:
        items = Raw.admin(up.kubeconfig, tmp_path).request("GET", PATH).json()["items"]
        names = {item["metadata"]["name"] for item in items} - {"kube-root-ca.crt"}
        assert names == set(written)
