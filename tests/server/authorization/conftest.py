from collections.abc import AsyncIterator

import pytest_asyncio

from server.authorization.world import World


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    """Return a server of its own with the default roles."""
    async with World.running() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[World]:
    """Return a server for tests that only ask."""
    async with World.running() as running:
        yield running
