"""A gate that goes off and on again: what is stored counts again, as if nothing had been."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sully.machinery.gates import Gates
from sully.testing.builders import (
    DRIVER,
    GPU,
    cel,
    device,
    patch,
    rule,
    select,
    set_to,
    slice_,
    taint,
    text,
)
from sully.views.devices.changes import features
from views.feeds import Scene

HOT = taint(key="hot")


def stored(scene: Scene) -> None:
    """Put everything there that a gate may hide."""
    scene.slices.put(
        slice_("devices", device("gpu-0", HOT, model=text("A100")), count=2),
        slice_("marks", device_taints=(("gpu-0", taint(key="slice")),), count=2),
    )
    scene.rules.put(
        rule("by-cel", select(selectors=cel("true"))), rule("by-name", select(driver=DRIVER))
    )
    scene.patches.put(
        patch("p", attributes={f"{DRIVER}/model": set_to("H100")}, taints=(taint(key="patch"),))
    )


@dataclass(frozen=True)
class Case:
    gone: tuple[str, ...]
    model: str = "H100"


ALL = (
    "ResourceSlice/devices hot",
    "ResourceSlice/marks slice",
    "ResourceSlicePatch/p patch",
    f"DeviceTaintRule/by-cel {taint().key}",
    f"DeviceTaintRule/by-name {taint().key}",
)
CASES = {
    "DRADeviceTaints": Case(ALL),
    "DRADeviceTaintRules": Case(ALL[3:]),
    "DRAAdminControlledDeviceAttributes": Case((), model="A100"),
    "SullyTaintSlices": Case(ALL[1:2]),
    "SullyRuleSelectors": Case(ALL[3:4]),
    "SullyTaintDetails": Case(()),
}


def seen(gates: Gates) -> tuple[list[str], str]:
    scene = Scene(features(gates))
    stored(scene)
    device = scene.inventory.device(GPU)
    assert device is not None
    models = [value.string_value for name, value in device.attributes.items() if "model" in name]
    return scene.taints()[str(GPU)], str(models[0])


@pytest.mark.parametrize(("gate", "case"), CASES.items(), ids=CASES.keys())
def test_what_a_gate_hides_comes_back(gate: str, case: Case) -> None:
    on, off, again = (seen(Gates({gate: switch})) for switch in (True, False, True))

    assert on == again == (list(ALL), "H100")
    assert off == ([item for item in ALL if item not in case.gone], case.model)
