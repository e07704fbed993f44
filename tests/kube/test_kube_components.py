"""kube-controller-manager and kube-scheduler of Kubernetes, unmodified, on `sully up`.

Both authenticate the clients of their own endpoints through the server, as they do on Kubernetes.
They need the programs: `KUBEBUILDER_ASSETS` names the folder with them, as for envtest.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import DRIVER, Cluster, deployment, devices, rule, template
from embedded import SCHEME
from kube.control_plane import CONTROLLERS, VARIABLE, free_port, missing
from sully.client.discovery.resources import of_scheme
from sully.testing.cluster import Process, process
from sully.testing.patience import PATIENCE

pytestmark = [pytest.mark.e2e, pytest.mark.kube]
Obj = dict[str, Any]
NODES = ("--simulated-nodes", "3", "--devices-per-node", "2", "--simulated-start-seconds", "0")
MANAGER = "kube-controller-manager"


@contextmanager
def running(program: str, up: Process, folder: Path, *flags: str) -> Iterator[None]:
    """Run a component as the user that Kubernetes gives it, with that user's roles."""
    config = yaml.safe_load(up.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = f"system:{program}"
    path = folder / f"{program}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    command = [
        str(Path(os.environ[VARIABLE], program)),
        *(f"--{kind}={path}" for kind in ("kubeconfig", "authentication-kubeconfig")),
        f"--authorization-kubeconfig={path}",
        "--authentication-tolerate-lookup-failure=false",
        f"--cert-dir={folder / program}",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        *flags,
    ]
    with (folder / f"{program}.log").open("w") as log:
        child = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command], stdout=log, stderr=log
        )
        try:
            yield
            assert child.poll() is None, (folder / f"{program}.log").read_text()[-3000:]
        finally:
            child.terminate()
            child.wait(timeout=PATIENCE)


def failures(log: Path) -> list[str]:
    """Return the requests that were refused for a reason that is the server's."""
    served = {(one.group, one.plural) for one in of_scheme(SCHEME)}
    results = []
    for event in map(json.loads, log.read_text().splitlines()):
        code = event.get("responseStatus", {}).get("code", 0)
        ref = event.get("objectRef") or {}
        known = (ref.get("apiGroup", ""), ref.get("resource", "")) in served
        # Names are looked up before they are created, and writes conflict.
        expected = code < 400 or code == 409 or (code == 404 and (ref.get("name") or not known))
        if not expected:
            user = (event.get("impersonatedUser") or event["user"])["username"]
            results.append(f"{code} {event['verb']} {event['requestURI']} by {user}")
    return results


def test_they_run_a_deployment_with_devices(any_kubectl: Path, tmp_path: Path) -> None:
    if reason := missing(CONTROLLERS):
        pytest.skip(reason)
    audit = tmp_path / "audit.log"
    flags = ("--disable-scheduler", "--disable-controllers", "--audit-reads", *NODES)
    with process(*flags, "--audit-log", str(audit)) as up, ExitStack() as components:
        key = tmp_path / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True)
        accounts = ("--use-service-account-credentials", f"--root-ca-file={up.data_dir / 'ca.crt'}")
        keys = (*accounts, f"--service-account-private-key-file={key}")
        components.enter_context(running("kube-scheduler", up, tmp_path))
        components.enter_context(running(MANAGER, up, tmp_path, *keys))
        cluster = Cluster(any_kubectl, up.kubeconfig, tmp_path)
        cluster.wait("Ready", "nodes")
        cluster.created("serviceaccount", "default")
        cluster.apply(template("web", devices()), deployment("web", 4))
        cluster.rolled_out("web")
        pods = cluster.get("pods")["items"]
        tainted = pods[0]["spec"]["nodeName"]
        cluster.apply(rule("sick", "NoExecute", driver=DRIVER, pool=tainted))
        cluster.gone(*(p["metadata"]["name"] for p in pods if p["spec"]["nodeName"] == tainted))
        cluster.rolled_out("web")
        nodes = {pod["spec"]["nodeName"] for pod in cluster.get("pods")["items"]}

    assert tainted not in nodes
    assert failures(audit) == []
