"""Servers that are not ours: our stand-in everywhere, real Kubernetes where its programs are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube.control_plane import VARIABLE, control_plane, missing
from kube.process import Foreign, foreign

STAND_IN, REAL = "stand-in", "kubernetes"
SERVERS = [
    pytest.param(STAND_IN, marks=pytest.mark.e2e),
    pytest.param(REAL, marks=[pytest.mark.e2e, pytest.mark.kube]),
]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a real control plane, unless there is one or it is asked for.

    `make kube` asks for it, and then lists what it skips.
    """
    asked = "kube" in (config.option.markexpr or "")
    if asked or VARIABLE in os.environ:
        return
    left_out = [item for item in items if item.get_closest_marker("kube")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[Foreign]:
    """Run a real control plane for all tests of a run; skip without its programs."""
    if reason := missing():
        pytest.skip(reason)
    with control_plane(Path(os.environ[VARIABLE])) as there:
        yield there


@pytest.fixture(scope="module")
def stand_in() -> Iterator[Foreign]:
    """Run the server of server.py."""
    with foreign() as there:
        yield there


@pytest.fixture(params=SERVERS)
def there(request: pytest.FixtureRequest) -> Foreign:
    """Return each server in turn."""
    name = "kubernetes" if request.param == REAL else "stand_in"
    result: Foreign = request.getfixturevalue(name)
    return result
