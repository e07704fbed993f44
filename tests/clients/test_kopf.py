"""A kopf operator, started as its author would start it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clients.waiting import until
from e2e.raw import Raw
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.e2e
OPERATOR = Path(__file__).with_name("mirror_operator.py")


@pytest.fixture
def operator(kubeconfig: Path, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """Run the operator on one namespace; return its output."""
    log = tmp_path / "kopf.log"
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "-n", namespace, str(OPERATOR)]
    environment = os.environ | {"KUBECONFIG": str(kubeconfig)}
    with log.open("w") as output:
        child = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        try:
            yield log
        finally:
            child.terminate()
            assert child.wait(timeout=PATIENCE) in (0, -15), log.read_text()


def test_an_operator_does_its_work(operator: Path, raw: Raw, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"

    def data(name: str) -> Any:
        answer = raw.request("GET", f"{maps}/{name}")
        return answer.json().get("data") if answer.code == 200 else None

    def annotation() -> Any:
        result = raw.request("GET", f"{maps}/a").json()["metadata"].get("annotations") or {}
        return result.get("mirror.example/copied")

    made = {"metadata": {"name": "a", "labels": {"mirror": "yes"}}, "data": {"x": "1"}}
    assert raw.request("POST", maps, made).code == 201
    until(lambda: data("a-copy") == {"x": "1"}, f"the copy; {operator.read_text()}")
    until(lambda: annotation() == "1", "the note on the original")

    change = {"data": {"y": "2"}}
    patched = raw.request("PATCH", f"{maps}/a", change, "application/merge-patch+json")
    assert patched.code == 200
    until(lambda: data("a-copy") == {"x": "1", "y": "2"}, "the copy follows")
    until(lambda: annotation() == "2", "the note follows")

    deleted = raw.request("DELETE", f"{maps}/a")
    assert deleted.code == 200
    until(lambda: raw.request("GET", f"{maps}/a").code == 404, "the finalizer is removed")
    assert data("a-copy") is None

    def reasons() -> set[str]:
        events = raw.request("GET", f"/api/v1/namespaces/{namespace}/events").json()["items"]
        return {event["reason"] for event in events}

    # kopf posts events beside its work.
    until(lambda: "Copied" in reasons(), "the event")
    assert "Traceback" not in operator.read_text()


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BACKUPS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "backups.mirror.example.com"},
    "spec": {
        "group": "mirror.example.com",
        "scope": "Namespaced",
        "names": {"plural": "backups", "kind": "Backup"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"copies": {"type": "integer", "default": 2}},
                            },
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture
def backups(raw: Raw, namespace: str) -> Iterator[str]:
    """Return the path of the kind; delete its definition afterwards.

    After the operator, for kopf fails if it is slow: its watch of the kind ends a second after the
    definition, and the next one gets 404.
    """
    path = f"/apis/mirror.example.com/v1/namespaces/{namespace}/backups"
    yield path
    name = BACKUPS["metadata"]["name"]  # type: ignore[index] # a literal of mixed types
    assert raw.request("DELETE", f"{DEFINITIONS}/{name}").code == 200
    until(lambda: raw.request("GET", path).code == 404, "the kind is gone")


def test_an_operator_handles_a_kind_of_its_own(backups: str, operator: Path, raw: Raw) -> None:
    made = {
        "apiVersion": "mirror.example.com/v1",
        "kind": "Backup",
        "metadata": {"name": "a"},
        "spec": {},
    }

    def reported() -> Any:
        status = raw.request("GET", f"{backups}/a").json().get("status") or {}
        return (status.get("back_up") or {}).get("copies")

    # The operator runs already: it notices the definition, and then the objects.
    assert raw.request("POST", DEFINITIONS, BACKUPS).code == 201
    until(lambda: raw.request("GET", backups).code == 200, "the kind is served")
    assert raw.request("POST", backups, made).code == 201
    until(lambda: reported() == 2, f"the status; {operator.read_text()}")

    change = {"spec": {"copies": 3}}
    patched = raw.request("PATCH", f"{backups}/a", change, "application/merge-patch+json")
    assert patched.code == 200
    until(lambda: reported() == 3, "the status follows")
    assert "Traceback" not in operator.read_text()
