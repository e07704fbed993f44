"""Every implementation of the store contract, for every test in this folder that asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from etcds import Etcd
from sully.store.base import Store
from sully.store.etcd.store import EtcdStore
from sully.store.memory import MemoryStore
from sully.store.sqlite.store import SqliteStore


@pytest.fixture(params=["memory", "sqlite", pytest.param("etcd", marks=pytest.mark.slow)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    with ExitStack() as stack:
        async with await _open(request.param, tmp_path, stack) as made:
            yield made


async def _open(name: str, directory: Path, stack: ExitStack) -> Store:
    if name == "memory":
        return MemoryStore()
    if name == "sqlite":
        return await SqliteStore.open(directory)
    # One for each test: the suite counts revisions from the first.
    return await EtcdStore.open(stack.enter_context(Etcd()).address)
