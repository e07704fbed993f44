"""Sources that cannot be evaluated, which only a server without our validation stores."""

from __future__ import annotations

import pytest

from manifests import DRIVER
from sully.api.resource.types import DeviceTaint
from sully.api.sully.types import DeviceTaintPolicyDriverTaint, DeviceTaintPolicySource
from sully.domain.devicepolicies.sources.evaluation import DeviceFacts, active_faults
from sully.domain.devices.selectors import Content

TAINTS = {"no taint": (), "such a taint": (DeviceTaint(key="k", effect="None", data={"xid": 1}),)}


@pytest.mark.parametrize("taints", TAINTS.values(), ids=TAINTS.keys())
def test_an_expression_that_cannot_be_compiled(taints: tuple[DeviceTaint, ...]) -> None:
    expected = DeviceTaintPolicyDriverTaint(key="k", expression="data.xid ==")
    source = DeviceTaintPolicySource(name="xid", driver_taint=expected)
    facts = DeviceFacts(content=Content(DRIVER, {}, {}), taints=taints)

    faults, problems = active_faults((source,), facts, {})

    assert faults == ()
    assert len(problems) == 1
    assert "Syntax error" in problems[0]
