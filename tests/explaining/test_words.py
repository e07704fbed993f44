"""The words for states and causes are promised: every one stands in the guide."""

from __future__ import annotations

import re

import pytest

from architecture.project import ROOT
from explaining import (
    test_fleet,
    test_held_devices,
    test_rules_and_patches,
    test_waiting_for_devices,
    test_waiting_for_nodes,
    test_waiting_pods,
)
from explaining.situation import Situation

GUIDE = (ROOT / "docs/guides/explain.md").read_text()
TABLES: dict[str, Situation] = {
    **test_fleet.SITUATIONS,
    **test_held_devices.SITUATIONS,
    **test_rules_and_patches.SITUATIONS,
    **test_waiting_for_devices.SITUATIONS,
    **test_waiting_for_nodes.SITUATIONS,
    **test_waiting_pods.SITUATIONS,
}
FROM_ELSEWHERE = {
    "PreemptionByScheduler",
    "ManagedClusterLeaseUpdateStopped",
    "ManagedClusterKubeAPIServerUnavailable",
    "Succeeded",
}
"""Reasons of conditions, and phases, that are passed on."""


@pytest.mark.parametrize("word", sorted({each.cause for each in TABLES.values()} - FROM_ELSEWHERE))
def test_a_cause_stands_in_the_guide(word: str) -> None:
    assert f"`{word}`" in GUIDE


@pytest.mark.parametrize("word", sorted({each.state for each in TABLES.values()}))
def test_a_state_stands_in_the_guide(word: str) -> None:
    assert f"`{word}`" in GUIDE


def test_what_the_guide_promises_is_shown_by_a_situation() -> None:
    causes = GUIDE.partition("## All causes")[2]
    known = {each.cause for each in TABLES.values()} | {each.state for each in TABLES.values()}
    words = set(re.findall(r"`([A-Z]\w+)`", causes))

    assert words - known - NOT_SHOWN == set()


NOT_SHOWN = {
    "DisruptionTarget",
    # For who sees less than all: test_partial.py.
    "NotVisible",
    "NotAllowed",
}
