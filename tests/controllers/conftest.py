import pytest

from controllers.world import World


@pytest.fixture
def world() -> World:
    """Return a fresh server with a clock that stands still."""
    return World()
