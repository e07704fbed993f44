"""The pytest plugin: a fixture `sully` with a server of its own for each test.

@pytest.mark.sully(nodes=2, devices_per_node=4)
def test_my_controller(sully):
    client = new_client_from_config(str(sully.kubeconfig))

pytest finds it by the entry point of the package. Nothing of Sully is imported until a test asks
for the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sully.testing.server import Server

MARKER = "sully(nodes=0, devices_per_node=8, feature_gates=''): options of the fixture `sully`"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def sully(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A Kubernetes API server with a scheduler and controllers; KUBECONFIG names its kubeconfig."""
    from sully.testing.server import serve

    marker = request.node.get_closest_marker("sully")
    with serve(**(marker.kwargs if marker else {})) as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
        yield server
