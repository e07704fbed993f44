"""What a taint says about itself is told by whoever explains it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sully.domain.explaining.sources import MOST_DATA, Sources
from sully.testing.builders import rule, select, taint
from sully.testing.clock import NOON

LONG = "x" * MOST_DATA
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a description": ({"description": "fan 3\nstands still"}, ', reason "fan 3 stands still"'),
    "data": ({"data": {"fan": 3}}, ', data {"fan":3}'),
    "data that is false": ({"data": False}, ", data false"),
    "both": ({"description": "hot", "data": [95]}, ', reason "hot", data [95]'),
    "much data": ({"data": LONG}, f', data "{LONG[:-1]}…'),
}


@pytest.mark.parametrize(("details", "want"), CASES.values(), ids=CASES.keys())
def test_details_are_told(details: dict[str, Any], want: str) -> None:
    mark = msgspec.structs.replace(taint(), **details)
    sources = Sources(rules=[rule("r", select())])

    bare, told = (sources.told(each, "DeviceTaintRule/r", NOON) for each in (taint(), mark))

    assert told == bare + want
