"""A command must not pay for what it does not use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = ("aiohttp", "yarl", "yaml", "structlog", "cryptography", "uvicorn")
MODULES = (
    "sully.client",
    "sully.client.transport",
    "sully.client.kubeconfig.kubeconfig",
    "sully.client.http.transport",
    "sully.client.direct",
    "sully.client.informers.informer",
    "sully.client.events",
    "sully.client.discovery.resources",
    "sully.client.leases",
)


@pytest.mark.parametrize("module", MODULES)
def test_heavy_modules_are_imported_late(module: str) -> None:
    program = f"import sys, {module}; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stdout.decode().strip() == "[]"


def test_types_come_without_the_rules_about_them() -> None:
    program = "import sys, sully.planning.simulation.simulator; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    texts = [text for text in done.stdout.decode().split() if text.startswith("sully.api.")]
    assert "sully.api.resource.types" in texts
    assert [item for item in texts if "strategy" in item or "validation" in item] == []


SPEAKING = """
import os
os.environ["SSL_CERT_FILE"] = "mine"
from sully.client.http.aiohttp_import import import_aiohttp
import_aiohttp()
from aiohttp import connector
print(os.environ["SSL_CERT_FILE"], os.environ.get("SSL_CERT_DIR"))
print(connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509"])
"""


def test_what_speaks_http_is_imported_without_certificates() -> None:
    environment = {name: entry for name, entry in os.environ.items() if name != "SSL_CERT_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", SPEAKING], capture_output=True, check=True, env=environment
    )

    assert done.stdout.decode().split() == ["mine", "None", "0"]
