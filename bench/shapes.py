"""The objects of the device benchmarks, in the shapes of the baseline: nodes, slices, pods."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Obj = dict[str, Any]
Sent = tuple[str, Obj]
"""Where to create an object, and the object."""

DRIVER = "gpu.example.com"
RESOURCE = "/apis/resource.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
TEMPLATES = f"{RESOURCE}/namespaces/default/resourceclaimtemplates"
RULES = f"{RESOURCE}/devicetaintrules"
CLASS_SELECTOR = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model == "a100"'
REQUEST_SELECTOR = f'device.attributes["{DRIVER}"].index >= 0'


@dataclass(frozen=True, slots=True)
class Shape:
    """One benchmark of scheduling."""

    nodes: int
    devices: int
    pods: int
    half_full: bool = False  # half of each node's devices are taken before the clock starts
    selector: bool = False  # requests select by CEL, in addition to the class
    match: bool = False  # each claim wants two devices with one attribute in common
    rules: int = 0  # this many rules, each for one device of another driver


def node(name: str) -> Obj:
    """Return a node with resources for more pods than it will get."""
    resources = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def slice_of(name: str, devices: int) -> Obj:
    """Return the one slice of a node."""
    listed = [
        {
            "name": f"gpu-{index}",
            "attributes": {
                "model": {"string": "a100"},
                "index": {"int": index},
                "numa": {"int": index // 2},
            },
            "capacity": {"memory": {"value": "40Gi"}},
        }
        for index in range(devices)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-{DRIVER}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": listed,
        },
    }


def device_class() -> Obj:
    """Return the class that every claim asks for."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": CLASS_SELECTOR}}]},
    }


def template(name: str, *, count: int = 1, selector: bool = False, match: bool = False) -> Obj:
    """Return a template of claims with one request."""
    exactly: Obj = {"deviceClassName": "gpu", "count": count}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": REQUEST_SELECTOR}}]
    devices: Obj = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if match:
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/numa"}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": devices}},
    }


def pod(name: str, claims_from: str = "gpu", *, at: str = "") -> Obj:
    """Return a pod with one claim from a template, perhaps only for one node."""
    spec: Obj = {
        "containers": [
            {
                "name": "c",
                "image": "example.com/none:1",
                "resources": {"claims": [{"name": "gpu"}]},
            }
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": claims_from}],
    }
    if at:
        spec["nodeSelector"] = {"kubernetes.io/hostname": at}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "spec": spec,
    }


def rule(name: str, selector: Obj, effect: str) -> Obj:
    """Return a rule."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {
            "deviceSelector": selector,
            "taint": {"key": "example.com/bench", "effect": effect},
        },
    }


def world(shape: Shape) -> Iterator[Sent]:
    """Yield everything that is there before the pods come."""
    yield f"{RESOURCE}/deviceclasses", device_class()
    count = 2 if shape.match else 1
    yield (
        TEMPLATES,
        template("gpu", count=count, selector=shape.selector, match=shape.match),
    )
    yield TEMPLATES, template("filler", count=shape.devices // 2)
    for number in range(shape.nodes):
        yield "/api/v1/nodes", node(f"node-{number:04d}")
        yield f"{RESOURCE}/resourceslices", slice_of(f"node-{number:04d}", shape.devices)
    for number in range(shape.rules):
        only = {"driver": "other.example.com", "pool": "p", "device": f"d-{number}"}
        yield RULES, rule(f"other-{number:04d}", only, "NoSchedule")


def fillers(shape: Shape) -> Iterator[Sent]:
    """Yield pods that take half of each node."""
    for number in range(shape.nodes if shape.half_full else 0):
        name = f"node-{number:04d}"
        yield PODS, pod(f"filler-{number:04d}", "filler", at=name)


def load(shape: Shape) -> Iterator[Sent]:
    """Yield the pods that are measured."""
    for number in range(shape.pods):
        yield PODS, pod(f"pod-{number:04d}")
