"""The disk after a power failure has all that was flushed, and any part of the rest."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from faults.layer import FILES, Fault, Layer, LayerError, compiled
from faults.powercut import SECTOR, Step, after_power_cut, steps

DATABASE, LOG = FILES


def recorded(*entries: tuple[str, str, int, bytes]) -> bytes:
    heads = (
        struct.pack("<BB6xQQ", ord(kind), FILES.index(file), offset, len(data)) + data
        for kind, file, offset, data in entries
    )
    return b"".join(heads)


def outcomes(before: dict[str, bytes], record: bytes) -> set[tuple[tuple[str, bytes], ...]]:
    """Return everything that may be on the disk."""
    results = (after_power_cut(before, record, random.Random(seed)) for seed in range(200))
    return {tuple(sorted(files.items())) for files in results}


def test_what_was_flushed_is_there() -> None:
    record = recorded(("W", LOG, 0, b"one"), ("S", LOG, 0, b""), ("W", LOG, 5, b"two"))

    assert outcomes({}, record) == {((LOG, b"one"),), ((LOG, b"one\0\0two"),)}


def test_files_are_flushed_one_by_one() -> None:
    record = recorded(("W", DATABASE, 0, b"b"), ("W", LOG, 0, b"l"), ("S", LOG, 0, b""))

    result = outcomes({DATABASE: b"a"}, record)

    assert result == {((DATABASE, old), (LOG, b"l")) for old in (b"a", b"b")}


def test_writes_are_torn_and_in_any_order() -> None:
    big = b"x" * SECTOR * 2
    record = recorded(("W", LOG, 0, big), ("W", LOG, len(big), b"end"))

    sizes = {len(dict(files).get(LOG, b"")) for files in outcomes({}, record)}

    assert sizes == {0, SECTOR, len(big), len(big) + 3}


def test_a_failed_flush_forgets_what_it_did_not_write() -> None:
    record = recorded(("W", LOG, 0, b"one"), ("F", LOG, 0, b""), ("S", LOG, 0, b""))

    assert outcomes({LOG: b""}, record) == {((LOG, b""),), ((LOG, b"one"),)}


def test_deleted_and_truncated_files() -> None:
    record = recorded(
        ("U", LOG, 0, b""), ("T", DATABASE, 1, b""), ("S", DATABASE, 0, b""), ("W", LOG, 0, b"new")
    )

    result = outcomes({LOG: b"old", DATABASE: b"abc"}, record)

    assert result == {((DATABASE, b"a"),), ((DATABASE, b"a"), (LOG, b"new"))}


def test_the_last_entry_may_be_incomplete() -> None:
    whole = recorded(("W", LOG, 0, b"one"), ("W", LOG, 3, b"two"))

    for end in range(len(whole)):
        result = list(steps(whole[:end]))
        assert result == [Step("W", LOG, 0, b"one"), Step("W", LOG, 3, b"two")][: len(result)]


def test_without_a_compiler_it_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LayerError, match="install gcc"):
        compiled(tmp_path)


PROGRAM = """
import os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
def attempt(call, *arguments):
    try:
        return call(file, *arguments)
    except OSError as error:
        return error.strerror
print(attempt(os.pwrite, b"1234", 0), attempt(os.pwrite, b"1234", 0), attempt(os.pwrite, b"5", 4))
print(attempt(os.fsync), attempt(os.fsync), time.time() > 4e9)
"""
EXPECTED = {
    Fault.WRITE_EIO: "4 Input/output error 1\nNone None",
    Fault.WRITE_ENOSPC: "4 No space left on device 1\nNone None",
    Fault.WRITE_SHORT: "4 2 1\nNone None",
    Fault.WRITE_TORN: "4 2 No space left on device\nNone None",
    Fault.SYNC_EIO: "4 4 1\nNone Input/output error",
    Fault.POWER_CUT: "",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return compiled(tmp_path_factory.mktemp("layer"))
    except LayerError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize("fault", EXPECTED, ids=lambda fault: fault.name)
def test_calls_fail_as_requested(fault: Fault, library: Path, tmp_path: Path) -> None:
    layer = Layer(library, tmp_path, tmp_path)
    layer.begin()
    layer.request(fault, skip=1)
    layer.step_clock(4e9)

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROGRAM, tmp_path / DATABASE],
        env=os.environ | layer.environment,
        capture_output=True,
        text=True,
        check=False,
    )

    expected = EXPECTED[fault]
    assert done.stdout.strip() == (f"{expected} True" if expected else "")
    assert layer.injected == 1
    first = next(steps(layer.record.read_bytes()))
    assert first == Step("W", DATABASE, 0, b"1234")
