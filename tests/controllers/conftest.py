import pytest

from controllers.owners import config_map
from controllers.world import Obj, World


@pytest.fixture
def world() -> World:
    """Return a fresh server with a clock that stands still."""
    return World()


@pytest.fixture
async def owner(world: World) -> Obj:
    """Return a config map, the only one, that others can belong to."""
    await world.namespace("a")
    return await config_map(world, "owner")
