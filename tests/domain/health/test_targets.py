"""Which device a signal is about."""

import pytest

from domain.health.test_matching import GPU, NOON, OTHER, device, report
from sully.api.resource.types import DeviceAttribute
from sully.api.sully.types import DeviceHealth, DeviceHealthSpec, ReportedDevice
from sully.domain.devices.pools import DeviceId
from sully.domain.health.matching import Identity, identity
from sully.domain.health.targets import Reference, Target, UnknownDeviceError, find
from sully.machinery.meta import ObjectMeta

PCI = "0000:3b:00.0"


def indexed(node: str, index: int, uuid: str) -> Identity:
    attributes = {
        "gpu.nvidia.com/uuid": DeviceAttribute(string_value=uuid),
        "gpu.nvidia.com/index": DeviceAttribute(int_value=index),
        "resource.kubernetes.io/pciBusID": DeviceAttribute(string_value=PCI),
    }
    return identity(DeviceId("gpu.nvidia.com", node, f"gpu-{index}"), node, attributes)


FLEET = (
    indexed("n1", 0, GPU),
    indexed("n2", 0, OTHER),
    device("mig-0", node="n3", uuid="MIG-1", parentUUID="GPU-3"),
    device("mig-1", node="n3", uuid="MIG-2", parentUUID="GPU-3"),
    device("nic-0", node="n4"),
)
AGENT = DeviceHealth(
    metadata=ObjectMeta(name="n9"),
    spec=DeviceHealthSpec(
        node_name="n9",
        reporter="nvml",
        renew_time=NOON,
        lease_duration_seconds=30,
        devices=(
            ReportedDevice(uuid="GPU-9", pci_address=PCI, index=3, status="Healthy", since=NOON),
        ),
    ),
)
GPU_1 = Target(node="n1", uuid=GPU.lower())
FOUND = {
    "by UUID": (Reference(uuid=GPU.upper()), GPU_1),
    "by UUID and node": (Reference(uuid=GPU, node="n1"), GPU_1),
    "by address": (Reference(pci_address="3B:00.0", node="n1"), GPU_1),
    "by index": (Reference(index=0, node="n2"), Target(node="n2", uuid=OTHER.lower())),
    "by name": (Reference(device="gpu.nvidia.com/n1/gpu-0"), GPU_1),
    "a partition": (
        Reference(device="gpu.nvidia.com/n3/mig-0"),
        Target(node="n3", device="gpu.nvidia.com/n3/mig-0"),
    ),
    "the UUID of a partition": (Reference(uuid="MIG-1"), Target(node="n3", uuid="mig-1")),
    "what only has partitions": (Reference(uuid="GPU-3"), Target(node="n3", uuid="gpu-3")),
    "without a UUID": (
        Reference(device="gpu.nvidia.com/n4/nic-0"),
        Target(node="n4", device="gpu.nvidia.com/n4/nic-0"),
    ),
    "what only an agent knows": (
        Reference(index=3, node="n9"),
        Target(node="n9", uuid="gpu-9"),
    ),
}


@pytest.mark.parametrize(("reference", "want"), FOUND.values(), ids=FOUND.keys())
def test_found(reference: Reference, want: Target) -> None:
    assert find(reference, FLEET, [AGENT]) == want


UNKNOWN = {
    "nothing": (Reference(), "no device given"),
    "only a node": (Reference(node="n1"), "no device given"),
    "another UUID": (Reference(uuid="GPU-77"), "unknown device (UUID GPU-77)"),
    "the UUID on another node": (
        Reference(uuid=GPU, node="n2"),
        f"unknown device (UUID {GPU}, node n2)",
    ),
    "an address without a node": (
        Reference(pci_address=PCI),
        f"3 devices match (PCI address {PCI}) on nodes n1, n2, n9: name the node",
    ),
    "an index without a node": (Reference(index=0), "2 devices match (index 0) on nodes n1, n2"),
}


@pytest.mark.parametrize(("reference", "want"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_unknown(reference: Reference, want: str) -> None:
    with pytest.raises(UnknownDeviceError) as raised:
        find(reference, FLEET, [AGENT])

    assert str(raised.value).startswith(want)


def test_a_report_of_signals_makes_no_device_known() -> None:
    passed_on = report("n1.signals", uuid="GPU-5")
    spec = DeviceHealthSpec(
        node_name="n1", reporter="signals", renew_time=NOON, devices=passed_on.spec.devices
    )
    with pytest.raises(UnknownDeviceError):
        find(Reference(uuid="GPU-5"), FLEET, [DeviceHealth(metadata=ObjectMeta(), spec=spec)])
