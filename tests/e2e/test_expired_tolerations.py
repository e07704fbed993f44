"""A Deployment that tolerates a sick device for a while, on a running control plane."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.terminals import environment, piped
from e2e.beside import plane as controlled
from e2e.cluster import Cluster, deployment, devices, rule, template

pytestmark = pytest.mark.e2e
ALONE = ("--simulated-nodes", "1", "--devices-per-node", "1", "--store", "memory")
QUICK = ("--simulated-start-seconds", "0", "--simulated-stop-seconds", "0")
FOR_A_SECOND = {
    "key": "example.com/sick",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 1,
}


def test_its_pods_are_not_rescheduled_to_be_evicted_again(
    where: str, any_kubectl: Path, home: Path
) -> None:
    with controlled(where, *ALONE, *QUICK) as plane:
        cluster = Cluster(any_kubectl, plane.kubeconfig, home)
        cluster.apply(template("web", devices(1, FOR_A_SECOND)), deployment("web"))
        cluster.rolled_out("web")
        (first,) = cluster.names("web")

        cluster.apply(rule("sick", "NoExecute"))
        cluster.gone(first)
        cluster.listed(bool, "pods", labelSelector="app=web")
        (second,) = cluster.names("web")
        cluster.wait("PodScheduled=false", f"pod/{second}")

        done = piped("explain", "pod", second, "-o", "json", env=environment(plane.kubeconfig))
        document = json.loads(done.stdout)
        assert (document["cause"], document["because"]) == (
            "DevicesTainted",
            ["DeviceTaintRule/sick"],
        )
        *_, over, before = document["summary"]
        assert "tolerates example.com/sick:NoExecute for 1s, which has expired." in over
        assert f"Before it, pod {cluster.namespace}/{first} of" in before
        records = cluster.get("evictionrecords")["items"]
        assert [record["spec"]["pod"]["name"] for record in records] == [first]

        cluster.delete("devicetaintrule/sick")
        cluster.wait("Ready", f"pod/{second}")
