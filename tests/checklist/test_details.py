"""The description and the data of a taint are part of its explanation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sully.explain.causes import DeviceFacts, Finding, TaintFact, note
from sully.explain.render import render
from sully.explain.sources import Sources
from sully.explain.text import MAX_DATA
from sully.testing.builders import rule, select, taint
from sully.testing.clock import NOON

LONG = "x" * MAX_DATA
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a description": ({"description": "fan 3\nstands still"}, ', reason "fan 3 stands still"'),
    "data": ({"data": {"fan": 3}}, ', data {"fan":3}'),
    "data that is false": ({"data": False}, ", data false"),
    "both": ({"description": "hot", "data": [95]}, ', reason "hot", data [95]'),
    "much data": ({"data": LONG}, f', data "{LONG[:-1]}…'),
}


@pytest.mark.parametrize(("details", "want"), CASES.values(), ids=CASES.keys())
def test_details_are_reported(details: dict[str, Any], want: str) -> None:
    mark = msgspec.structs.replace(taint(), **details)
    sources = Sources(rules=[rule("r", select())])

    bare, reported = (
        _rendered(sources.taint(item, "DeviceTaintRule/r")) for item in (taint(), mark)
    )

    assert reported == bare.removesuffix(".") + f"{want}."


def _rendered(fact: TaintFact) -> str:
    shown = note("ItHasTaint", taint=fact, paused=False)
    finding = Finding(kind="Device", name="d", cause="Free", facts=DeviceFacts(taints=(shown,)))
    return render(finding, NOON).summary[1]
