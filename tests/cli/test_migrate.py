"""`sully migrate`: there and back, and what it refuses."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from etcds import Etcd
from sully.store.base import Delete, Put, Store, StoreKey
from sully.store.errors import ConflictError
from sully.store.etcd.address import parse_address
from sully.store.etcd.store import EtcdStore
from sully.store.memory import MemoryStore
from sully.store.migration import MigrationError, compare, everything
from sully.store.sqlite.store import SqliteStore

pytestmark = pytest.mark.slow
KEYS = [
    StoreKey("pods", "default", "a"),
    StoreKey("pods", "other", "a"),
    StoreKey("nodes", "", "n"),
    StoreKey("g.io/things", "x", "system:y"),
]


@pytest.fixture(scope="module")
def etcd() -> Iterator[Etcd]:
    with Etcd() as made:
        yield made


@pytest.fixture
def address(etcd: Etcd, request: pytest.FixtureRequest) -> str:
    return f"etcd://{etcd.members[0].endpoint}/{request.node.name}"


async def fill(store: Store) -> None:
    for n, key in enumerate(KEYS):
        await store.commit([Put(key, bytes(400_000 * n))])
    for n in range(250):
        await store.commit([Put(StoreKey("pods", "many", f"{n:03}"), f"{n}".encode())])
    await store.commit([Delete(KEYS[0])])


@pytest.fixture
async def directory(tmp_path: Path) -> Path:
    async with await SqliteStore.open(tmp_path / "data") as store:
        await fill(store)
    return tmp_path / "data"


async def contents(store: Store) -> tuple[dict[StoreKey, bytes], int]:
    async with store:
        return await everything(store), store.revision


def migrate(source: str, target: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sully.cli.main", "migrate", "--from", source, "--to", target]
    return subprocess.run(command, capture_output=True, text=True)


def test_there_and_back(directory: Path, address: str, tmp_path: Path) -> None:
    back = tmp_path / "back"
    for source, target in ((f"sqlite:{directory}", address), (address, f"sqlite:{back}")):
        done = migrate(source, target)
        assert "253 objects of 3 resources copied and compared" in done.stdout, done.stderr

    async def all_three() -> list[tuple[dict[StoreKey, bytes], int]]:
        return [
            await contents(await SqliteStore.open(directory)),
            await contents(await EtcdStore.open(parse_address(address))),
            await contents(await SqliteStore.open(back)),
        ]

    first, second, third = asyncio.run(all_three())
    assert len(first[0]) == 253
    assert first[0] == second[0] == third[0]
    # What one store numbered is never numbered again by the next.
    assert first[1] < second[1] < third[1]


async def test_a_version_of_the_old_store_is_a_conflict_in_the_new(
    directory: Path, address: str
) -> None:
    async with await SqliteStore.open(directory) as old:
        known = await old.get(KEYS[1])
    assert known is not None
    done = await asyncio.to_thread(migrate, f"sqlite:{directory}", address)
    assert done.returncode == 0, done.stderr
    async with await EtcdStore.open(parse_address(address)) as new:
        with pytest.raises(ConflictError):
            await new.commit([Put(KEYS[1], b"", expect=known.revision)])


REFUSED = {
    "no such kind of store": ("memory", "sqlite:x", 2, "invalid store"),
    "no directory": ("sqlite:", "etcd://h", 2, "invalid store"),
    "the same": ("sqlite:x", "sqlite:x", 2, "are the same store"),
    "no members": ("sqlite:x", "etcd:///p", 2, "invalid store"),
    "nothing there": ("sqlite:{tmp}/none", "sqlite:{tmp}/new", 1, "there is nothing to copy"),
    "not empty": ("sqlite:{data}", "{full}", 1, "the target must be empty"),
    "a database is there": ("{full}", "sqlite:{data}", 1, "move it away first"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(
    case: str,
    directory: Path,
    tmp_path: Path,
    etcd: Etcd,
) -> None:
    full = f"etcd://{etcd.members[0].endpoint}/full"

    async def write() -> None:
        async with await EtcdStore.open(parse_address(full)) as store:
            await store.commit([Put(KEYS[0], b"")])

    asyncio.run(write())
    source, target, code, text = REFUSED[case]
    names = {"tmp": tmp_path, "data": directory, "full": full}

    done = migrate(source.format(**names), target.format(**names))

    assert done.returncode == code
    assert text in done.stderr


DIFFERENCES = {
    "missing": ([Put(KEYS[0], b"1")], [], "pods/default/a is missing in the target"),
    "more": ([], [Put(KEYS[0], b"1")], "pods/default/a is in the target only"),
    "other": ([Put(KEYS[0], b"1")], [Put(KEYS[0], b"2")], "pods/default/a differs in the target"),
}


@pytest.mark.parametrize(("old", "new", "text"), DIFFERENCES.values(), ids=DIFFERENCES)
async def test_every_difference_is_found(old: list[Put], new: list[Put], text: str) -> None:
    stores = [MemoryStore(), MemoryStore()]
    for store, ops in zip(stores, (old, new), strict=True):
        await store.commit([Put(KEYS[2], b"same")])
        if ops:
            await store.commit(ops)

    with pytest.raises(MigrationError, match=text):
        await compare(*stores)
