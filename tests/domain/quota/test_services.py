"""What services and volume claims use of a quota."""

from typing import Any

import pytest

from sully.domain.quota.services import Services, VolumeClaims

Obj = dict[str, Any]

PORTS = [{"port": 80}, {"port": 443, "nodePort": 30443}]
SERVICES: dict[str, tuple[Obj, str, str]] = {
    "inside": ({"type": "ClusterIP", "ports": PORTS}, "0", "0"),
    "on the nodes": ({"type": "NodePort", "ports": PORTS}, "2", ""),
    "balanced": ({"type": "LoadBalancer", "ports": PORTS}, "2", "1"),
    "balanced, own ports only": (
        {"type": "LoadBalancer", "ports": PORTS, "allocateLoadBalancerNodePorts": False},
        "1",
        "1",
    ),
}


@pytest.mark.parametrize("case", SERVICES.values(), ids=SERVICES)
def test_what_a_service_uses(case: tuple[Obj, str, str]) -> None:
    spec, ports, balancers = case

    used = {name: str(amount) for name, amount in Services().usage({"spec": spec}).items()}

    assert used.pop("services") == used.pop("count/services") == "1"
    assert used.pop("services.nodeports") == ports
    assert used.pop("services.loadbalancers", "") == balancers
    assert used == {}


def test_what_a_volume_claim_uses() -> None:
    spec = {"resources": {"requests": {"storage": "5Gi"}}, "storageClassName": "fast"}

    used = VolumeClaims().usage({"metadata": {}, "spec": spec})

    assert {name: str(amount) for name, amount in used.items()} == {
        "persistentvolumeclaims": "1",
        "count/persistentvolumeclaims": "1",
        "requests.storage": "5Gi",
        "fast.storageclass.storage.k8s.io/requests.storage": "5Gi",
        "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
    }
    assert VolumeClaims().matching([*used, "pods", "requests.cpu"]) == set(used)
