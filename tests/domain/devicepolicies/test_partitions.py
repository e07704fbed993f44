"""Faults between a whole device and its partitions."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sully.api.resource.types import Device
from sully.domain.devicepolicies.partitions import consumption_of, contains, propagated
from sully.domain.devicepolicies.settings import MAJOR
from sully.domain.devicepolicies.states import Fault, Observation
from sully.testing import builders
from sully.testing.builders import partition

OWN = Observation(faults=(Fault("xid", MAJOR, "broken"),))
UNKNOWN = Observation(known=False)


def device(**amounts: str) -> Device:
    return partition("d", amounts) if amounts else builders.device("d")


DEVICES = {
    "whole": consumption_of(device(left="20Gi", right="20Gi")),
    "left": consumption_of(device(left="20Gi")),
    "small": consumption_of(device(left="10Gi")),
    "right": consumption_of(device(right="20Gi", left="0")),
    "other": consumption_of(device()),
}
CASES: dict[str, tuple[str, str, set[str]]] = {
    "nobody asked": ("None", "whole", {"whole"}),
    "down": ("ToPartitions", "whole", {"whole", "left", "small", "right"}),
    "down from a part": ("ToPartitions", "left", {"left", "small"}),
    "not up": ("ToPartitions", "right", {"right"}),
    "up": ("ToWhole", "small", {"small", "left", "whole"}),
    "not down": ("ToWhole", "whole", {"whole"}),
    "both": ("Both", "left", {"whole", "left", "small"}),
    "not to a sibling": ("Both", "right", {"right", "whole"}),
    "without counters": ("Both", "other", {"other"}),
}


def faulty(seen: Mapping[str, Observation]) -> set[str]:
    return {device for device, one in seen.items() if one.faults}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_who_is_concerned(case: tuple[str, str, set[str]]) -> None:
    direction, source, want = case

    assert faulty(propagated(direction, DEVICES, {source: OWN})) == want


def test_what_is_passed_on_names_its_device_and_keeps_its_severity() -> None:
    got = propagated("ToPartitions", DEVICES, {"d/p/whole": OWN, "left": OWN} | {})
    assert faulty(got) == {"d/p/whole", "left", "small"}
    (fault,) = got["small"].faults

    assert fault == Fault("xid", MAJOR, "device left: broken")


def test_what_is_unknown_is_unknown_of_its_parts() -> None:
    got = propagated("ToPartitions", DEVICES, {"whole": UNKNOWN})

    assert {device for device, one in got.items() if not one.known} == {
        "whole",
        "left",
        "small",
        "right",
    }


def test_equal_devices_do_not_contain_each_other() -> None:
    assert not contains(DEVICES["left"], consumption_of(device(left="20Gi")))
