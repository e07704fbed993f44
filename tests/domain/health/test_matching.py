"""Which reports are about which devices."""

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest

from sully.api.resource.types import DeviceAttribute
from sully.api.sully.types import DeviceHealth, DeviceHealthSpec, ReportedDevice
from sully.domain.devices.pools import DeviceId
from sully.domain.health.matching import DeviceReport, HealthIndex, Identity, identity, is_about
from sully.machinery.meta import ObjectMeta

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
GPU = "GPU-6ad2a3ab-0000-0000-0000-000000000001"
OTHER = "GPU-6ad2a3ab-0000-0000-0000-000000000002"


def device(name: str = "gpu-0", *, node: str = "n1", **attributes: str) -> Identity:
    values = {
        f"gpu.nvidia.com/{key}": DeviceAttribute(string_value=value)
        for key, value in attributes.items()
    }
    return identity(DeviceId("gpu.nvidia.com", node or "pool", name), node, values)


def report(
    name: str = "n1", *, node: str = "n1", status: str = "Unhealthy", **fields: Any
) -> DeviceHealth:
    reported = ReportedDevice(status=status, since=NOON, **fields)
    spec = DeviceHealthSpec(
        node_name=node,
        reporter="nvml",
        renew_time=NOON,
        lease_duration_seconds=30,
        devices=(reported,),
    )
    return DeviceHealth(metadata=ObjectMeta(name=name), spec=spec)


@dataclass(frozen=True)
class Case:
    report: DeviceHealth
    device: Identity
    want: bool = True


CASES = {
    "the same UUID": Case(report(uuid=GPU), device(uuid=GPU.lower())),
    "another UUID": Case(report(uuid=GPU), device(uuid=OTHER), want=False),
    "a partition, by its parent": Case(report(uuid=GPU), device(uuid="MIG-1", parentUUID=GPU)),
    "the whole, by a partition": Case(report(uuid="MIG-1"), device(uuid=GPU), want=False),
    "hardware that was swapped": Case(
        report(uuid=GPU, pci_address="0000:3b:00.0"),
        device(uuid=OTHER, pciBusID="0000:3b:00.0"),
        want=False,
    ),
    "a driver without UUIDs": Case(
        report(uuid=GPU, pci_address="0000:3b:00.0"), device(pciBusID="00000000:3B:00.0")
    ),
    "the address on another node": Case(
        report(pci_address="0000:3b:00.0"),
        device(node="n2", pciBusID="0000:3b:00.0"),
        want=False,
    ),
    "an address without a node": Case(
        report(node="", pci_address="0000:3b:00.0"),
        device(node="", pciBusID="0000:3b:00.0"),
        want=False,
    ),
    "the name": Case(report(device="gpu.nvidia.com/n1/gpu-0"), device()),
    "another name": Case(report(device="gpu.nvidia.com/n1/gpu-1"), device(), want=False),
    "a device of no node": Case(
        report(node="", device="gpu.nvidia.com/pool/gpu-0"), device(node="")
    ),
    "the UUID on another node": Case(report(uuid=GPU), device(node="n2", uuid=GPU), want=False),
    "nothing in common": Case(report(uuid=GPU), device(), want=False),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_is_about(case: Case) -> None:
    entry = DeviceReport(case.report, case.report.spec.devices[0])

    assert is_about(entry, case.device) == case.want
    # The index finds the same, whatever else is reported.
    index = HealthIndex.of((report("x", node="n9", uuid="GPU-9"), case.report))
    assert index.entries(case.device) == ((entry,) if case.want else ())


def test_the_order_of_reports_does_not_matter() -> None:
    one = report("n1", uuid=GPU)
    two = report("n1.signals", uuid=GPU, status="Degraded")
    three = report("n2", node="n2", uuid=OTHER)
    for order in permutations((one, two, three)):
        result = HealthIndex.of(order).health(device(uuid=GPU), now=NOON)
        assert [health.status for _, health in result] == ["Unhealthy", "Degraded"]


def test_what_is_replaced_or_removed_is_no_longer_found() -> None:
    index = HealthIndex.of((report(uuid=GPU),))
    index.put(report(uuid=OTHER))

    assert index.entries(device(uuid=GPU)) == ()
    assert len(index.entries(device(uuid=OTHER))) == 1
    index.remove("n1")
    index.remove("n1")
    assert index.entries(device(uuid=OTHER)) == ()
    assert index.reports == {}
