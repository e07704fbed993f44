"""Rules for a selection: which, and how they are called."""

from __future__ import annotations

import re

import pytest

from sully.domain.devices.pools import DeviceId, PoolId
from sully.domain.planning.rules.selectors import RuleSelector, name_suffixes, selectors_for

KNOWN = {PoolId("d", "p"): ("a", "b"), PoolId("e", "p"): ("a",), PoolId("d", "q"): ("a", "b")}


def ids(*texts: str) -> list[DeviceId]:
    return [DeviceId(*text.split("/")) for text in texts]


EXPANDED = {
    "a whole pool": (ids("d/p/b", "d/p/a"), ["d/p/"]),
    "a part of a pool": (ids("d/p/b"), ["d/p/b"]),
    "both": (ids("d/q/b", "d/p/a", "d/p/b"), ["d/p/", "d/q/b"]),
    "two drivers": (ids("d/p/a", "e/p/a"), ["d/p/a", "e/p/"]),
    "a device that is not published": (ids("d/p/c"), ["d/p/c"]),
    "nothing": ([], []),
}


@pytest.mark.parametrize(("devices", "want"), EXPANDED.values(), ids=EXPANDED)
def test_selectors_for(devices: list[DeviceId], want: list[str]) -> None:
    selectors = selectors_for(devices, lambda pool: KNOWN[pool], lambda device: device.pool)

    assert ["/".join(selector.names) for selector in selectors] == want


def test_devices_only() -> None:
    devices = ids("d/p/a", "d/p/b")
    selectors = selectors_for(devices, lambda _: ("a", "b"), lambda _: "", whole_pools=False)

    assert [selector.device for selector in selectors] == ["a", "b"]


SUFFIXES = {
    "node and device": (
        [
            RuleSelector(pool="x", node="node-1", device="gpu-0"),
            RuleSelector(pool="node-2", device="gpu-0"),
        ],
        ["node-1-gpu-0", "node-2-gpu-0"],
    ),
    "classes": ([RuleSelector(device_class="a"), RuleSelector(device_class="b")], ["a", "b"]),
    "drivers": ([RuleSelector(driver="d.x"), RuleSelector(driver="e.x")], ["d.x", "e.x"]),
    "everything": ([RuleSelector()], ["all"]),
    "the same node of two drivers": (
        [RuleSelector(driver="d", pool="p"), RuleSelector(driver="e", pool="p")],
        [r"p-\w{8}", r"p-\w{8}"],
    ),
    "not valid in a name": ([RuleSelector(pool="Rack 1/.a")], [r"rack-1\.a-\w{8}"]),
}


@pytest.mark.parametrize(("selectors", "want"), SUFFIXES.values(), ids=SUFFIXES)
def test_name_suffixes(selectors: list[RuleSelector], want: list[str]) -> None:
    suffixes = name_suffixes(selectors)

    assert len(set(suffixes)) == len(selectors)
    assert all(map(re.fullmatch, want, suffixes))
