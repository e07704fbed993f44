"""What holds of placements is shown twice: as usual, and as OCM does it."""

import pytest


@pytest.fixture(params=[False, True], ids=["sully", "reference"])
def strict(request: pytest.FixtureRequest) -> bool:
    """Run a test in both modes; one that is about a mode names it itself."""
    return bool(request.param)
