"""What `sully history` shows of changes: who made them, for people and for programs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sully.api.cluster.types import Taint
from sully.api.resource.types import DeviceTaint
from sully.cli.inspect.history.printer import columns, document, row
from sully.cli.output.tables import Cell
from sully.views.history import HistoryEntry

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOT = DeviceTaint(key="example.com/hot", effect="NoExecute")
CORDON = DeviceTaint(key="sully.dev/unschedulable", effect="NoSchedule")
CHANGED = HistoryEntry(time=NOON, what="changed", rule="hot", change="paused: night")
LIFTED = HistoryEntry(time=NOON, what="deleted", rule="hot", taint=HOT, evicted=2)
MAINTENANCE = Taint(key="maintenance", effect="NoSelect")
CLUSTER = HistoryEntry(time=NOON, what="tainted", cluster="eu-2", taint=MAINTENANCE)

ROWS = {
    "a cluster that a user tainted for some time": (
        replace(CLUSTER, by="alice", why="new switch", until="2026-03-01T14:00:00Z"),
        "maintenance:NoSelect, by alice, until 2026-03-01T14:00:00Z: new switch",
        "alice",
    ),
    "a cluster whose taint expired": (
        replace(CLUSTER, what="deleted", by="expiry"),
        "maintenance:NoSelect, by expiry",
        "expiry",
    ),
    "changed by a user": (replace(CHANGED, by="alice"), "paused: night, by alice", "alice"),
    "changed, unknown by whom": (CHANGED, "paused: night", "-"),
    "deleted by a user": (
        replace(LIFTED, by="bob"),
        "example.com/hot:NoExecute by bob, 2 pods evicted",
        "bob",
    ),
    "deleted, unknown by whom": (LIFTED, "example.com/hot:NoExecute, 2 pods evicted", "-"),
    "deleted, more may have been evicted": (
        replace(LIFTED, complete=False),
        "example.com/hot:NoExecute, at least 2 pods evicted",
        "-",
    ),
    "deleted, and never evicted": (
        replace(LIFTED, taint=CORDON, evicted=0),
        "sully.dev/unschedulable:NoSchedule",
        "-",
    ),
    "deleted, and evicted before its effect was changed": (
        replace(LIFTED, taint=CORDON),
        "sully.dev/unschedulable:NoSchedule, 2 pods evicted",
        "-",
    ),
    "deleted, unknown how many were evicted": (
        replace(LIFTED, complete=False, evicted=0),
        "example.com/hot:NoExecute, unknown number of pods evicted",
        "-",
    ),
}


def text(cell: Cell | str) -> str:
    return cell.text if isinstance(cell, Cell) else cell


@pytest.mark.parametrize(("entry", "details", "by"), ROWS.values(), ids=ROWS.keys())
def test_who(entry: HistoryEntry, details: str, by: str) -> None:
    titles = [column.title for column in columns(wide=True)]
    wide = dict(zip(titles, map(text, row(entry, wide=True)), strict=True))

    assert text(row(entry, wide=False)[3]) == details
    assert wide["BY"] == by
    assert document(entry).get("by", "-") == by
    assert document(entry).get("evictedAtLeast", False) is not entry.complete


def test_a_cluster_for_programs() -> None:
    entry = replace(CLUSTER, what="deleted", by="bob", until="2026-03-01T14:00:00Z")

    assert document(entry) == {
        "time": "2026-03-01T12:00:00Z",
        "event": "untainted",
        "cluster": "eu-2",
        "taint": {"key": "maintenance", "effect": "NoSelect"},
        "by": "bob",
        "endTime": "2026-03-01T14:00:00Z",
    }
