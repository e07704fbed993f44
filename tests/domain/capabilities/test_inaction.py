"""What has no effect, by who acts and which feature gates are off."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.capabilities.inaction import Subject, inaction_of, inactions

KUBERNETES, SULLY = ControlPlane.KUBERNETES, ControlPlane.SULLY
MIXED = ControlPlane(scheduler="Kubernetes", evictor="Sully")
NO_RULES = {"DRADeviceTaintRules": False}
NO_TAINTS = {"DRADeviceTaints": False, "DRADeviceTaintRules": False}
NO_VALUES = {"DRAAdminControlledDeviceAttributes": False}
RULES, TAINTS, PATCHES, VALUES = (
    Subject.RULES,
    Subject.TAINTS,
    Subject.PATCHES,
    Subject.PATCHED_VALUES,
)
CASES = {
    "all of Sully": (SULLY, set()),
    "Sully without rules": (replace(SULLY, gates=NO_RULES), {RULES}),
    "Sully without taints": (replace(SULLY, gates=NO_TAINTS), {RULES, TAINTS}),
    "Sully without values": (replace(SULLY, gates=NO_VALUES), {VALUES}),
    "Kubernetes": (KUBERNETES, {PATCHES}),
    "Kubernetes without rules": (replace(KUBERNETES, gates=NO_RULES), {PATCHES, RULES}),
    "Kubernetes without taints": (replace(KUBERNETES, gates=NO_TAINTS), {PATCHES, RULES, TAINTS}),
    "Sully evicts": (MIXED, {PATCHES, VALUES}),
}


@pytest.mark.parametrize(("plane", "want"), CASES.values(), ids=CASES)
def test_what_has_no_effect(plane: ControlPlane, want: set[Subject]) -> None:
    assert {inaction.subject for inaction in inactions(plane)} == want


def test_a_text_names_the_gates_and_what_to_do() -> None:
    inaction = inaction_of(replace(KUBERNETES, gates=NO_TAINTS), RULES)

    assert inaction is not None
    assert inaction.text == (
        "DeviceTaintRules have no effect: feature gates DRADeviceTaints and DRADeviceTaintRules"
        " are disabled in kube-apiserver"
    )
    assert inaction.remedy == (
        "to enable them, start kube-apiserver, kube-scheduler and kube-controller-manager with"
        " --feature-gates=DRADeviceTaints=true,DRADeviceTaintRules=true"
    )


def test_what_is_inferred_is_reported_as_such() -> None:
    inaction = inaction_of(replace(KUBERNETES, gates=NO_RULES, gates_from="roles"), RULES)

    assert inaction is not None
    assert "feature gate DRADeviceTaintRules seems to be disabled" in inaction.text


def test_where_sully_evicts_only_scheduling_ignores_it() -> None:
    """Its evictor has feature gates of its own."""
    plane = replace(MIXED, gates=NO_TAINTS)
    inaction = inaction_of(plane, RULES)

    assert inaction is not None
    assert inaction.evicts
    assert inaction.text.startswith("DeviceTaintRules only evict pods: feature gates")
    assert plane.honors_rules
    assert plane.eviction.effects


@pytest.mark.parametrize("plane", [SULLY, KUBERNETES], ids=["Sully", "Kubernetes"])
def test_nobody_evicts_where_taints_are_off(plane: ControlPlane) -> None:
    assert plane.eviction.effects
    assert not replace(plane, gates=NO_TAINTS).eviction.effects
