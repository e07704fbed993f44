"""What holds of placements is shown twice: as usual, and as OCM does it."""

import pytest

from controllers.placement import placing


@pytest.fixture(params=[False, True], ids=["sully", "reference"], autouse=True)
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test in both modes; one that is about a mode reports it itself."""
    monkeypatch.setattr(placing, "strict_run", request.param)
