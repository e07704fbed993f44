"""A control plane as users run it, and a namespace for every test."""

import itertools
from pathlib import Path

import pytest

from e2e.beside import Planes
from e2e.raw import KeptRaw, Raw
from sully.testing.cluster import Process

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def plane(where: str, planes: Planes) -> Process:
    """Return the control plane of all tests."""
    return planes.of(where)


@pytest.fixture(scope="session")
def raw(plane: Process, tmp_path_factory: pytest.TempPathFactory) -> Raw:
    """Return the admin's access without a library."""
    return KeptRaw.admin(plane.kubeconfig, tmp_path_factory.mktemp("admin"))


@pytest.fixture
def kubeconfig(plane: Process) -> Path:
    """Return the file that every client is given."""
    return plane.kubeconfig


@pytest.fixture
def namespace(raw: Raw) -> str:
    """Make a namespace."""
    name = f"client-{next(_NUMBERS):04}"
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert raw.request("POST", "/api/v1/namespaces", made).code == 201
    return name
