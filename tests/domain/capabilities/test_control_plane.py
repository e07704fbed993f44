"""Who schedules and evicts, as files keep it, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from sully.domain.capabilities.control_plane import ControlPlane

GATED = ControlPlane(
    scheduler="Kubernetes", evictor="Sully", version="v1.37.0", gates={"DRADeviceTaints": False}
)


@pytest.mark.parametrize("plane", [ControlPlane.SULLY, ControlPlane.KUBERNETES, GATED])
def test_a_file_keeps_all_of_it(plane: ControlPlane) -> None:
    assert ControlPlane.from_document(plane.to_document()) == plane


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"scheduler": "Sully"},
        {"scheduler": "Sully", "evictor": "Volcano"},
        {"scheduler": ["Sully"], "evictor": "Sully"},
    ],
    ids=str,
)
def test_what_is_not_understood_reports_nothing(document: Any) -> None:
    assert ControlPlane.from_document(document) is None


def test_each_component_decides_for_itself() -> None:
    assert not GATED.scheduling.honors_toleration_seconds
    assert GATED.eviction.compat.evicts_extended_resources
    assert not ControlPlane.KUBERNETES.eviction.compat.evicts_extended_resources


def test_patches_count_where_a_component_of_sully_acts() -> None:
    assert ControlPlane.SULLY.honors_patches
    assert GATED.honors_patches
    assert not ControlPlane.KUBERNETES.honors_patches


def test_a_gate_that_is_not_known_counts_as_on() -> None:
    assert not GATED.is_enabled("DRADeviceTaints")
    assert GATED.is_enabled("DRADeviceTaintRules")
