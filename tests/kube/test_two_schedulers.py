"""Sully's scheduler beside another one on the same devices: no device goes to two pods.

The other scheduler is kube-scheduler on a real control plane, and the stand-in's own elsewhere;
neither checks, before it writes, what was written since it decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import manifests
from e2e.raw import Raw
from e2e.watching import until
from kube.control_plane import poll
from kube.emptied import emptied, make, named
from kube.process import Foreign
from sully.testing.remote import controllers, simulated_nodes

Obj = dict[str, Any]
SPACE = "rivals"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{SPACE}/resourceclaims"
DRIVER = "rivals.example.com"
NODES, DEVICES = 2, 4
PODS_OF = {"default-scheduler": NODES * DEVICES + 4, "sully": NODES * DEVICES}
"""The other scheduler is first, because ours waits for it; it still has pods after that."""
ROUNDS = 3
QUICK = (
    "--start-seconds",
    "0",
    "--stop-seconds",
    "0",
    "--name-prefix",
    "rival",
    "--driver",
    DRIVER,
)


@pytest.fixture
def admin(there: Foreign) -> Iterator[Raw]:
    """Return the admin's access, with a namespace and nothing in it."""
    with emptied(there, SPACE, PODS, CLAIMS) as admin:
        yield admin


def request_device(admin: Raw, name: str, scheduler: str) -> None:
    """Create a pod for one of the schedulers, with a claim for one device."""
    make(admin, CLAIMS, manifests.claim(name, DRIVER))
    spec = manifests.pod_spec(name, schedulerName=scheduler)
    make(admin, PODS, manifests.pod(name, spec))


def is_bound(pod: Obj) -> bool:
    return bool(pod["spec"].get("nodeName")) and "deletionTimestamp" not in pod["metadata"]


def devices_of(claim: Obj) -> list[tuple[str, str]]:
    results = ((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}
    return [(result["pool"], result["device"]) for result in results.get("results") or ()]


def settle(admin: Raw, count: int) -> dict[tuple[str, str], list[str]]:
    """Wait until so many pods are bound; return the pods of each device."""
    held: dict[tuple[str, str], list[str]] = {}

    def is_calm() -> bool:
        held.clear()
        bound = [name for name, pod in named(admin, PODS).items() if is_bound(pod)]
        claims = named(admin, CLAIMS)
        for name in bound:
            for device in devices_of(claims[name]):
                held.setdefault(device, []).append(name)
        return len(bound) >= count

    poll(is_calm)
    return held


def check(held: dict[tuple[str, str], list[str]]) -> None:
    """Check that each device has one pod."""
    twice = {device: names for device, names in held.items() if len(names) > 1}
    assert not twice, twice
    assert len(held) == NODES * DEVICES


def test_no_device_is_allocated_twice(there: Foreign, admin: Raw) -> None:
    total = NODES * DEVICES
    flags = ("--nodes", str(NODES), "--devices", str(DEVICES), "--driver", DRIVER, *QUICK)
    with (
        simulated_nodes(there.kubeconfig, *flags),
        controllers(there.kubeconfig, "--only", "scheduling") as ours,
    ):
        ours.wait_for("leading since")
        for number in range(ROUNDS):
            for index in range(max(PODS_OF.values())):
                for scheduler, pods in PODS_OF.items():
                    if index < pods:
                        request_device(admin, f"{scheduler}-{number}-{index}", scheduler)
            held = settle(admin, total)
            check(held)
            # Both schedulers are after the devices that are released.
            for name in {name for names in held.values() for name in names}:
                admin.request("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})
                admin.request("DELETE", f"{CLAIMS}/{name}")
            check(settle(admin, total))
            for path in (PODS, CLAIMS):
                admin.request("DELETE", path, {"gracePeriodSeconds": 0})
            until(admin, CLAIMS, lambda left: not left)
