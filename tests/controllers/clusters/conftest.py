import pytest

from controllers.clusters.hubbing import HubWorld


@pytest.fixture(params=[False, True], ids=["sully", "reference"])
def hub(request: pytest.FixtureRequest) -> HubWorld:
    """Return a fresh hub, once as usual and once as OCM."""
    return HubWorld(strict=request.param)
