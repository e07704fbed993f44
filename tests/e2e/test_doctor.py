"""`sully doctor` on a control plane that runs."""

from __future__ import annotations

import json

import pytest

from e2e.raw import Raw
from manifests import slice_
from sully.testing.cluster import Process
from sully.testing.forkserver import run

pytestmark = pytest.mark.e2e
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
STALE = slice_("doctor-stale", "doctor-gone", driver="doctor.example.com", generation=4, count=2)


def test_a_stale_driver_is_found(plane: Process, raw: Raw, namespace: str) -> None:
    assert raw.request("POST", SLICES, STALE).code == 201, namespace

    done = run("doctor", "-o", "json", "--kubeconfig", str(plane.kubeconfig))

    assert done.returncode == 1, done.stdout + done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    for name in ("server health", "version", "certificate of the kubeconfig"):
        assert checks[name]["state"] == "ok", checks[name]
    # The server sends the time; how far apart both are depends on how busy the machine is.
    assert "sends no time" not in checks["clock"]["message"]
    driver, pool = (
        checks["driver doctor.example.com"],
        checks["pool doctor.example.com/doctor-gone"],
    )
    assert driver["message"] == "has slices of nodes that do not exist: doctor-gone"
    assert pool["message"] == "is incomplete: 1 of 2 slices of generation 4"
