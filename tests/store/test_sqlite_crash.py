"""A process that dies without warning loses nothing that it had acknowledged."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from sully.store.base import Record
from sully.store.sqlite.store import SqliteStore

SCRIPT = Path(__file__).with_name("crash_writer.py")


def write_until_killed(directory: Path, lines: int) -> tuple[dict[int, int], int]:
    """Return the newest acknowledged round of each writer, and the newest revision."""
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(directory)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process:
        printed = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        printed += process.stdout.readlines()
    rounds: dict[int, int] = {}
    revision = 0
    for line in printed:
        # The last line may be cut; it was acknowledged all the same, but cannot be read.
        if line.endswith("\n"):
            writer, number, revision = map(int, line.split())
            rounds[writer] = number
    return rounds, revision


def by_namespace(records: list[Record]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.key.namespace, []).append(record)
    return groups


@pytest.mark.slow
async def test_acknowledged_writes_survive_kill_9(tmp_path: Path) -> None:
    rng = random.Random()
    for _ in range(4):
        acknowledged, revision = write_until_killed(tmp_path, rng.randint(1, 400))
        async with await SqliteStore.open(tmp_path) as store:
            pods = by_namespace((await store.list("pods")).records)
            markers = by_namespace((await store.list("markers")).records)

            assert store.revision >= revision
            for writer, number in acknowledged.items():
                values = {record.value for record in pods[f"w{writer}"]}
                assert len(values) == 1, "part of a transaction is there"
                result = int(values.pop())
                assert result >= number, "an acknowledged write is lost"
                assert [record.key.name for record in markers[f"w{writer}"]] == [str(result)]
