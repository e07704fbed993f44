"""kube-scheduler of Kubernetes, unmodified, schedules pods with claims on `sully up`.

It needs the program: `KUBEBUILDER_ASSETS` names the folder with it, as for envtest.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from e2e.cluster import DRIVER, Cluster, deployment, devices, rule, template
from sully.testing.cluster import Process, process
from sully.testing.patience import PATIENCE

pytestmark = [pytest.mark.e2e, pytest.mark.kube]
ASSETS = "KUBEBUILDER_ASSETS"
NODES = ("--simulated-nodes", "3", "--devices-per-node", "2", "--simulated-start-seconds", "0")


@pytest.fixture
def kube_scheduler() -> Path:
    """Return the program, or skip with what to do about it."""
    folder = os.environ.get(ASSETS, "")
    program = Path(folder, "kube-scheduler")
    if not folder or not program.exists():
        pytest.skip(f"no kube-scheduler: set {ASSETS} to a folder with it")
    return program


@contextmanager
def running(program: Path, up: Process, folder: Path) -> Iterator[None]:
    """Run kube-scheduler as the user that Kubernetes gives it, with that user's role."""
    config = yaml.safe_load(up.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = "system:kube-scheduler"
    kubeconfig = folder / "kube-scheduler.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    command = [str(program), f"--kubeconfig={kubeconfig}", "--secure-port=0"]
    with (folder / "kube-scheduler.log").open("w") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield
            assert child.poll() is None, (folder / "kube-scheduler.log").read_text()[-3000:]
        finally:
            child.terminate()
            child.wait(timeout=PATIENCE)


@pytest.mark.parametrize("compat", ["sully", "reference"])
def test_it_schedules_pods_with_claims(
    compat: str, kube_scheduler: Path, any_kubectl: Path, tmp_path: Path
) -> None:
    flags = ("--compat", compat, "--disable-scheduler", *NODES)
    with process(*flags) as up, running(kube_scheduler, up, tmp_path):
        cluster = Cluster(any_kubectl, up.kubeconfig, tmp_path)
        cluster.wait("Ready", "nodes")
        cluster.apply(template("web", devices()), deployment("web", 4))
        cluster.rolled_out("web")
        pods = cluster.get("pods")["items"]
        claims = cluster.get("resourceclaims")["items"]
        tainted = pods[0]["spec"]["nodeName"]

        cluster.apply(rule("sick", "NoExecute", driver=DRIVER, pool=tainted))
        cluster.gone(*(p["metadata"]["name"] for p in pods if p["spec"]["nodeName"] == tainted))
        cluster.rolled_out("web")
        moved = cluster.get("pods")["items"]

    assert len(pods) == len(moved) == 4
    assert all(claim["status"]["allocation"]["devices"]["results"] for claim in claims)
    devices_used = {
        (result["pool"], result["device"])
        for claim in claims
        for result in claim["status"]["allocation"]["devices"]["results"]
    }
    assert len(devices_used) == 4
    assert tainted not in {pod["spec"]["nodeName"] for pod in moved}
    assert "Failed to watch" not in (tmp_path / "kube-scheduler.log").read_text()
