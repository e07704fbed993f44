"""How a machine looks on the wire: its Node, its Lease and the ResourceSlices of its driver.

Each Node and each slice carries a digest of what was published. A restart compares that digest
and not the object, so that manual changes (a cordon, a taint on a device) are kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from sully.domain.simulated.fleet import (
    SIMULATED,
    Fleet,
    Model,
    address_of,
    model_of,
    pod_network,
)
from sully.machinery.formats.timestamps import format_micro_time, format_time

Obj = dict[str, Any]

DIGEST = "sully.dev/simulated-digest"
LEASES = "kube-node-lease"
DEVICES_PER_SLICE = 64
"""More than these may not carry taints."""
LEASE_SECONDS = 4
"""A lease outlives so many missed renewals, as those of kubelets do."""

_SPACE = UUID("9a1b0a5e-6d0c-4a5e-9f0e-5b1f3f7c2d64")
_VERSION = "v1.37.0"
_READY = ("KubeletReady", "kubelet is posting ready status")
_CALM = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


# -- the node -------------------------------------------------------------------------------------


def node_of(fleet: Fleet, number: int, now: datetime) -> Obj:
    """Return the Node of a machine as its kubelet would register it."""
    lasting = _node(fleet, number)
    conditions = _conditions(format_time(now))
    metadata = lasting["metadata"] | {"annotations": {DIGEST: digest_of(lasting)}}
    return {
        "metadata": metadata,
        "spec": lasting["spec"],
        "status": lasting["status"] | {"conditions": conditions},
    }


def node_digest(fleet: Fleet, number: int) -> str:
    """Return the digest that the Node of a machine should carry."""
    return digest_of(_node(fleet, number))


def digest_of(published: Mapping[str, Any]) -> str:
    """Return a short text that differs where what is published differs."""
    text = json.dumps(published, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _node(fleet: Fleet, number: int) -> Obj:
    name, model = fleet.name(number), model_of(number)
    network = f"{pod_network(number)}0/24"
    labels = {
        **fleet.labels,
        SIMULATED: "true",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": f"zone-{'abc'[number % 3]}",
        f"{fleet.driver}/model": model.name,
    }
    capacity = {"cpu": str(model.cpu), "memory": model.host_memory} | _ROOM
    # A machine reserves a part for the system.
    allocatable = capacity | {"cpu": str(model.cpu - 2)}
    spec: Obj = {"podCIDR": network, "podCIDRs": [network], "providerID": f"simulated://{name}"}
    if fleet.tainted:
        spec["taints"] = [TAINT]
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "addresses": [
                {"type": "InternalIP", "address": address_of(number)},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": _info(name),
        },
    }


TAINT = {"key": SIMULATED, "value": "true", "effect": "NoSchedule"}
"""The taint of simulated nodes in a cluster that has other nodes."""
_ROOM = {"ephemeral-storage": "1Ti", "pods": "110"}


def _info(name: str) -> Obj:
    identity = uuid5(_SPACE, name)
    return {
        "architecture": "amd64",
        "operatingSystem": "linux",
        "osImage": "Simulated",
        "kernelVersion": "6.12.0-simulated",
        "containerRuntimeVersion": "simulated://1.0.0",
        "kubeletVersion": _VERSION,
        "kubeProxyVersion": "",
        "machineID": identity.hex,
        "systemUUID": str(identity),
        "bootID": str(uuid5(_SPACE, f"{name}/boot")),
    }


def _conditions(moment: str) -> list[Obj]:
    conditions = [(kind, "False", *text) for kind, text in _CALM.items()]
    conditions.append(("Ready", "True", *_READY))
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": moment,
            "lastTransitionTime": moment,
        }
        for kind, status, reason, message in conditions
    ]


# -- what belongs to it ---------------------------------------------------------------------------


def owned_by(name: str, uid: str) -> list[Obj]:
    """Return the owner reference that deletes an object with its node."""
    return [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}]


def lease_of(name: str, uid: str, now: datetime, every: float) -> Obj:
    """Return the Lease by which a node shows that it is alive."""
    return {
        "metadata": {"name": name, "namespace": LEASES, "ownerReferences": owned_by(name, uid)},
        "spec": renewal(name, now, every),
    }


def renewal(name: str, now: datetime, every: float) -> Obj:
    """Return what changes when a lease is renewed."""
    return {
        "holderIdentity": name,
        "leaseDurationSeconds": int(every * LEASE_SECONDS),
        "renewTime": format_micro_time(now),
    }


# -- the devices ----------------------------------------------------------------------------------


def device_class(driver: str) -> Obj:
    """Return the class that picks every device of the driver."""
    picks = {"cel": {"expression": f'device.driver == "{driver}"'}}
    labels = {SIMULATED: "true"}
    return {"metadata": {"name": driver, "labels": labels}, "spec": {"selectors": [picks]}}


def slices_of(fleet: Fleet, number: int) -> list[Obj]:
    """Return the slices of a machine, without the generation of their pool and their owner."""
    name, driver = fleet.name(number), fleet.driver
    devices = [_device(fleet, number, index) for index in range(fleet.devices)]
    parts = [
        devices[at : at + DEVICES_PER_SLICE] for at in range(0, len(devices), DEVICES_PER_SLICE)
    ]
    slices = []
    for index, part in enumerate(parts):
        pool = {"name": name, "resourceSliceCount": len(parts)}
        spec = {"driver": driver, "nodeName": name, "pool": pool, "devices": part}
        metadata = {
            "name": f"{name}-{driver}-{index}",
            "labels": {SIMULATED: "true"},
            "annotations": {DIGEST: digest_of(spec)},
        }
        slices.append({"metadata": metadata, "spec": spec})
    return slices


def _device(fleet: Fleet, number: int, index: int) -> Obj:
    model = model_of(number)
    device: Obj = {
        "name": f"gpu-{index}",
        "attributes": _attributes(model, number, index),
        "capacity": {"memory": {"value": model.memory}},
    }
    taint = fleet.taint(number, index)
    return device if taint is None else device | {"taints": [taint]}


def _attributes(model: Model, number: int, index: int) -> Obj:
    # Two devices behind each root, and half of the devices at each processor.
    root, numa = f"pci0000:{index // 2 * 16:02x}", index // 4 % 2
    return {
        "model": {"string": model.name},
        "architecture": {"string": model.architecture},
        "index": {"int": index},
        "numa": {"int": numa},
        "uuid": {"string": f"GPU-{uuid5(_SPACE, f'{number}/{index}')}"},
        "driverVersion": {"version": "1.4.0"},
        "resource.kubernetes.io/pcieRoot": {"string": root},
    }
