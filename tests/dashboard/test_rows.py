"""The state of a cell: what needs attention most is what is shown."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sully.api.resource.types import DeviceTaint
from sully.client.transport import Key
from sully.dashboard.rows import row_of, state_of
from sully.domain.allocation.rejections.availability import Obstacle
from sully.domain.devices.taints import EFFECTS, Origin, SourcedTaint, TaintEffect
from sully.testing.builders import DRIVER, device, slice_
from sully.testing.clock import NOON
from sully.views.devices.device_views import ClaimView, DeviceView, TaintView
from sully.views.kinds import SLICES
from sully.views.snapshot.snapshot import Objects, Snapshot

SNAPSHOT = Snapshot([Objects(SLICES, [slice_("1", device("gpu-0"), pool="pool-1")])], taken=NOON)
(POOL,) = SNAPSHOT.inventory.pools()
DEVICE = SNAPSHOT.inventory.devices(POOL)["gpu-0"]
FREE = DeviceView(DEVICE.id, DEVICE, "node-1")
CLAIM = ClaimView(Key("ns", "claim"), (Key("ns", "pod"),))
DUE = replace(CLAIM, eviction_time=NOON)


def taint(effect: str) -> TaintView:
    origin = Origin("DeviceTaintRule", "rule")
    return TaintView(SourcedTaint(DeviceTaint(key="example.com/x", effect=effect), origin))


VIEWS = {
    "free": FREE,
    "used": replace(FREE, claims=(CLAIM,)),
    "none": replace(FREE, taints=(taint("None"),), claims=(CLAIM,)),
    "noschedule": replace(FREE, taints=(taint("None"), taint("NoSchedule"))),
    "noexecute": replace(FREE, taints=(taint("NoSchedule"), taint("NoExecute"))),
    "evicting": replace(FREE, taints=(taint("NoExecute"),), claims=(DUE,)),
    "blocked": replace(FREE, obstacle=Obstacle("NodeUnschedulable", "node cordoned")),
    "unknown": replace(FREE, obstacle=Obstacle("PoolIncomplete", "pool incomplete")),
}


@pytest.mark.parametrize(("state", "view"), VIEWS.items(), ids=VIEWS)
def test_state(state: str, view: DeviceView) -> None:
    assert state_of(view) == state


@pytest.mark.parametrize("effect", [*EFFECTS, "OfTomorrow"])
def test_only_effects_that_block_or_evict_are_shown_as_such(effect: str) -> None:
    known = EFFECTS.get(effect, TaintEffect())
    blocking = "noschedule" if known.blocks_scheduling else "none"

    assert state_of(replace(FREE, taints=(taint(effect),))) == (
        "noexecute" if known.evicts else blocking
    )


def test_what_is_not_visible_or_not_published_is_unknown() -> None:
    assert state_of(replace(FREE, claims_visible=False)) == "unknown"
    assert state_of(replace(FREE, device=None, claims=(CLAIM,))) == "unknown"


def test_a_row_has_what_filters_need() -> None:
    view = replace(FREE, taints=(taint("NoExecute"),), claims=(DUE,))

    assert row_of(view, ("gpu",)) == {
        "d": f"{DRIVER}/pool-1/gpu-0",
        "n": "node-1",
        "s": "evicting",
        "u": 1,
        "c": ["gpu"],
        "t": ["example.com/x:NoExecute"],
        "p": ["ns/pod"],
    }
    assert row_of(FREE, ()) == {"d": f"{DRIVER}/pool-1/gpu-0", "n": "node-1", "s": "free", "f": 1}
