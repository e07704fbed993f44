"""One server for all attacks of a module: what one leaves behind shows with the next."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from hostile.target import Target
from sully.testing.cluster import process

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Run a server."""
    with process("--log-level", "error") as up:
        yield Target(up, tmp_path_factory.mktemp("attackers"))


@pytest.fixture
def namespace(target: Target) -> str:
    """Create a namespace for one test."""
    name = f"attacked-{next(_NUMBERS)}"
    target.admin.post("/api/v1/namespaces", {"metadata": {"name": name}}).ok()
    return name
