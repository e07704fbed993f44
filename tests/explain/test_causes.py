"""The table of causes: every word stands in the guide, every row is used and has its facts."""

from __future__ import annotations

import re

import msgspec
import pytest

from architecture.project import ROOT, SOURCE
from explain import (
    test_fleet,
    test_held_devices,
    test_loops,
    test_nodes_and_workloads,
    test_rules_and_patches,
    test_waiting_for_constraints,
    test_waiting_for_devices,
    test_waiting_for_nodes,
    test_waiting_pods,
)
from explain.situation import Situation
from sully.explain.causes import (
    ClaimFacts,
    ClusterFacts,
    DeviceFacts,
    DevicePolicyFacts,
    LimitedFacts,
    MaintenanceFacts,
    NodeFacts,
    PendingFacts,
    PlacementFacts,
    PodFacts,
    RuleFacts,
    WorkloadFacts,
)
from sully.explain.templates import CAUSES, NOTES, WORKLOAD_KINDS, Template

GUIDE = (ROOT / "docs/guides/explain.md").read_text()
TABLES: dict[str, Situation] = {
    **test_fleet.SITUATIONS,
    **test_held_devices.SITUATIONS,
    **test_loops.SITUATIONS,
    **test_nodes_and_workloads.SITUATIONS,
    **test_rules_and_patches.SITUATIONS,
    **test_waiting_for_constraints.SITUATIONS,
    **test_waiting_for_devices.SITUATIONS,
    **test_waiting_for_nodes.SITUATIONS,
    **test_waiting_pods.SITUATIONS,
}
FACTS = {
    "Pod": (PodFacts, PendingFacts),
    "ResourceClaim": (ClaimFacts,),
    "Device": (DeviceFacts, LimitedFacts),
    "DeviceTaintRule": (RuleFacts, LimitedFacts),
    "ResourceSlicePatch": (RuleFacts,),
    "Node": (NodeFacts,),
    "DeviceTaintPolicy": (DevicePolicyFacts,),
    "DeviceMaintenance": (MaintenanceFacts,),
    **dict.fromkeys(WORKLOAD_KINDS, (WorkloadFacts,)),
    "ManagedCluster": (ClusterFacts, LimitedFacts),
    "Placement": (PlacementFacts, LimitedFacts),
}
FROM_ELSEWHERE = {
    "PreemptionByScheduler",
    "ManagedClusterLeaseUpdateStopped",
    "ManagedClusterKubeAPIServerUnavailable",
    "Succeeded",
}
"""Reasons of conditions, and phases, that are passed on."""


@pytest.mark.parametrize(
    "word", sorted({table.cause for table in TABLES.values()} - FROM_ELSEWHERE)
)
def test_a_cause_stands_in_the_guide(word: str) -> None:
    assert f"`{word}`" in GUIDE


@pytest.mark.parametrize("word", sorted({table.state for table in TABLES.values()}))
def test_a_state_stands_in_the_guide(word: str) -> None:
    assert f"`{word}`" in GUIDE


def test_what_the_guide_promises_is_shown_by_a_situation() -> None:
    causes = GUIDE.partition("## All causes")[2]
    known = {table.cause for table in TABLES.values()} | {table.state for table in TABLES.values()}
    words = set(re.findall(r"`([A-Z]\w+)`", causes))

    assert words - known - NOT_SHOWN == set()


NOT_SHOWN = {
    "DisruptionTarget",
    # For who sees less than all: test_limited.py.
    "NotVisible",
    "NotAllowed",
}


ROWS = {
    f"{kind}: {cause}": (row, FACTS.get(kind, ()))
    for kind, rows in CAUSES.items()
    for cause, row in rows.items()
}


def test_a_row_names_only_facts_of_its_kind() -> None:
    unknown = {
        name: result for name, (row, facts) in ROWS.items() if (result := _unknown(row, facts))
    }

    assert unknown == {}


def _unknown(row: Template, facts: tuple[type, ...]) -> set[str]:
    known = {"subject", "since", *(name for kind in facts for name in fields_of(kind))}
    named = {text[1:] for text in row.summary if text.startswith("*")}
    for text in (*row.summary, *row.remedies):
        named |= set(re.findall(r"\{(\w+)", text))
    return named - known


def fields_of(facts: type[msgspec.Struct]) -> set[str]:
    return {*facts.__struct_fields__, *(x for x in vars(facts) if not x.startswith("_"))}


def test_every_row_is_used() -> None:
    """Rows whose name is put together from a reason are named by their beginning."""
    folder = SOURCE / "explain"
    paths = [path for path in folder.rglob("*.py") if "templates" not in path.name]
    code = "\n".join(path.read_text() for path in paths)
    names = {*NOTES, *(name for rows in CAUSES.values() for name in rows)} - PASSED_ON

    def is_used(name: str) -> bool:
        return f'"{name}"' in code or f'f"{name.partition("/")[0]}/{{' in code

    assert {name for name in names if not is_used(name)} == set()


PASSED_ON = {
    # The reasons of an account, and types with a row of their own.
    *("CountersUsedUp", "ConstraintUnmet", "NotTogether", "DevicesElsewhere", "PoolsUnusable"),
    *("Source", "TaintFact", "ClusterTaint"),
    # The phases of a maintenance.
    *("Scheduled", "Paused", "Completed", "Ended", "Cancelled"),
}
