"""Details of a taint decide nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.api.resource.types import DeviceTaint, DeviceToleration
from sully.domain.devices.taints import Origin, SourcedTaint, untolerated
from sully.domain.eviction.judge import eviction_time
from sully.domain.tolerations import tolerates
from sully.testing.builders import equal, exists, taint
from sully.testing.clock import NOON

DETAILS: dict[str, dict[str, Any]] = {
    "description": {"description": "fan 3 stands still"},
    "data": {"data": {"fan": 3, "rpm": [0, 12]}},
    "both": {"description": "x", "data": {}},
}
TOLERATIONS = st.sampled_from(
    (exists(), exists(seconds=60), exists(effect="NoSchedule"), equal("x"), equal())
)


def detailed(plain: DeviceTaint, details: dict[str, Any]) -> DeviceTaint:
    return msgspec.structs.replace(plain, **details)


@pytest.mark.parametrize("details", DETAILS.values(), ids=DETAILS.keys())
@given(
    toleration=TOLERATIONS,
    effect=st.sampled_from(("None", "NoSchedule", "NoExecute")),
    value=st.sampled_from(("", "x")),
)
def test_details_do_not_matter(
    details: dict[str, Any], toleration: DeviceToleration, effect: str, value: str
) -> None:
    plain = taint(effect, value=value)
    marked = detailed(plain, details)
    origin = Origin("ResourceSlice", "s")
    now = NOON + timedelta(seconds=30)

    assert tolerates(toleration, marked) == tolerates(toleration, plain)
    assert eviction_time(marked, [toleration], now=now) == eviction_time(
        plain, [toleration], now=now
    )
    blocked = [
        bool(untolerated([SourcedTaint(item, origin)], [toleration])) for item in (plain, marked)
    ]
    assert blocked[0] == blocked[1]
