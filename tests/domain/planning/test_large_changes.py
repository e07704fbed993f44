"""Which changes are large."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from sully.domain.devices.pools import DeviceId
from sully.domain.planning.large_changes import large_change


def devices(first: int, last: int) -> set[DeviceId]:
    return {DeviceId("d", "p", f"gpu-{number}") for number in range(first, last)}


@dataclass(frozen=True)
class Case:
    selected: set[DeviceId]
    classes: dict[str, set[DeviceId]] = field(default_factory=dict)
    owners: dict[str, set[DeviceId]] = field(default_factory=dict)
    want: tuple[str, ...] = ()


CASES = {
    "nothing": Case(set()),
    "a tenth": Case(devices(0, 10)),
    "more than a tenth": Case(devices(0, 11), want=("11 of 100 devices",)),
    "everything": Case(
        devices(0, 100), {"a": devices(0, 50)}, want=("100 of 100 devices",)
    ),
    "a tenth of a class": Case(devices(0, 2), {"a": devices(0, 20)}),
    "more than a tenth of a class": Case(
        devices(0, 3),
        {"a": devices(0, 20), "b": devices(50, 60)},
        want=("3 of 20 devices of class a",),
    ),
    "one of a class of few": Case(devices(9, 11), {"a": devices(10, 12), "b": devices(0, 100)}),
    "one device, whatever else": Case(devices(0, 1), {"a": devices(0, 1)}, {"x": devices(0, 1)}),
    "all that an owner uses": Case(
        devices(0, 4),
        owners={"Job a/x": devices(1, 3), "Job a/y": devices(3, 5)},
        want=("all devices that Job a/x uses (2)",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_large_change(case: Case) -> None:
    assert large_change(case.selected, devices(0, 100), case.classes, case.owners) == case.want
