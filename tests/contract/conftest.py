"""Every implementation of the store contract, for every test in this folder that asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sully.store.base import Store
from sully.store.memory import MemoryStore
from sully.store.sqlite import SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else await SqliteStore.open(tmp_path)
    async with made:
        yield made
