"""A command must not pay for what it does not use."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("aiohttp", "yarl", "yaml", "structlog", "cryptography", "uvicorn")
MODULES = (
    "sully.client",
    "sully.client.transport",
    "sully.client.kubeconfig",
    "sully.client.http",
    "sully.client.direct",
    "sully.client.informer",
    "sully.client.events",
    "sully.client.discovery",
    "sully.client.leases",
)


@pytest.mark.parametrize("module", MODULES)
def test_heavy_modules_are_imported_late(module: str) -> None:
    program = f"import sys, {module}; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stdout.decode().strip() == "[]"
