"""Which claims cannot hold a device together."""

from __future__ import annotations

from typing import Any

import pytest

from sully.domain.allocation.usage.exclusion import excludes, holdings
from sully.domain.devices.pools import DeviceId

GPU = DeviceId("d.example.com", "p", "gpu-0")


def claim(**more: Any) -> dict[str, Any]:
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "gpu-0", **more}
    return {"status": {"allocation": {"devices": {"results": [result]}}}}


SHARE = {"shareID": "1"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "both for themselves": (claim(), claim(), True),
    "one for itself, one a share": (claim(), claim(**SHARE), True),
    "two shares": (claim(**SHARE), claim(**SHARE), False),
    "admin access looks on": (claim(), claim(adminAccess=True), False),
    "another device": (claim(), claim(device="gpu-1"), False),
    "nothing allocated": (claim(), {}, False),
    "an empty allocation": (claim(), {"status": {"allocation": {}}}, False),
}


@pytest.mark.parametrize(("first", "second", "want"), CASES.values(), ids=CASES.keys())
def test_excludes(first: dict[str, Any], second: dict[str, Any], want: bool) -> None:
    assert excludes(GPU, holdings(first), holdings(second)) is want
    assert excludes(GPU, holdings(second), holdings(first)) is want
