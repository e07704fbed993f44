"""The history of a cluster's taints, as the server keeps it in an annotation."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from sully.api.cluster.taints.history import (
    ENTRIES_MAX,
    EXPIRY,
    TAINT_HISTORY,
    TEXT_MAX,
    TaintEntry,
    expiry_of,
    is_expired,
    read_history,
    set_by,
    with_added,
    with_removed,
    with_sent,
    write_history,
)
from sully.api.cluster.types import UNREACHABLE

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TAINT = ("maintenance", "", "NoSelect")
SET = TaintEntry(time=NOON, event="tainted", key="maintenance", effect="NoSelect", by="alice")
ENDS = msgspec.structs.replace(SET, expires_at="2026-03-01T12:00:00Z", reason="new switch")
REMOVED = TaintEntry(time=NOON, event="untainted", key="maintenance", effect="NoSelect", by="bob")
FORGED = msgspec.structs.replace(SET, by="carol", reason="forged")
OTHER = msgspec.structs.replace(SET, key="other")


def test_what_is_written_is_read() -> None:
    entries = (SET, REMOVED, ENDS)

    assert read_history({TAINT_HISTORY: write_history(entries)}) == entries


UNREADABLE = ("", "x", "{}", '[{"time": 1}]', "\udcff", write_history([SET]).replace("Z", ""))


@pytest.mark.parametrize("text", UNREADABLE)
def test_a_text_that_cannot_be_read_is_not_a_history(text: str) -> None:
    assert read_history({TAINT_HISTORY: text}) == ()


def test_only_so_much_is_kept() -> None:
    long = msgspec.structs.replace(SET, reason="x" * 5000)
    entries = read_history({TAINT_HISTORY: write_history([OTHER, *[long] * ENTRIES_MAX])})

    assert OTHER not in entries
    assert {(len(entries), len(entry.reason)) for entry in entries} == {(ENTRIES_MAX, TEXT_MAX)}


def test_the_newest_entry_counts() -> None:
    assert set_by((SET, REMOVED), TAINT) is None
    assert set_by((ENDS, REMOVED, SET), TAINT) == SET
    assert expiry_of((ENDS, SET), TAINT) is None
    assert is_expired((SET, ENDS), TAINT, NOON)


def test_removed_taints_are_recorded_once() -> None:
    removed = with_removed((SET, OTHER), [OTHER.id], now=NOON, by="bob")

    assert removed == (SET, OTHER, REMOVED)
    assert with_removed(removed, [OTHER.id], now=NOON, by="bob") == removed
    assert with_removed((ENDS,), [], now=NOON, by="bob")[-1].by == EXPIRY


def test_taints_of_other_clients_are_recorded_but_not_those_of_health() -> None:
    health = (UNREACHABLE, "", "NoSelect")

    assert with_added((), [TAINT, health], now=NOON, by="alice") == (SET,)
    assert with_added((ENDS,), [TAINT], now=NOON, by="alice") == (ENDS,)


SENT = {
    "its own reason and end": ([SET, ENDS], (SET, msgspec.structs.replace(ENDS, by="carol"))),
    "an entry changed": ([FORGED], (SET, FORGED)),
    "an entry removed": ([], (SET,)),
    "a removal": ([SET, REMOVED], (SET,)),
    "a taint that the cluster does not have": ([SET, OTHER], (SET,)),
}


@pytest.mark.parametrize(("sent", "want"), SENT.values(), ids=SENT)
def test_what_a_client_sends(sent: list[TaintEntry], want: tuple[TaintEntry, ...]) -> None:
    assert with_sent((SET,), sent, [TAINT], now=NOON, by="carol") == want
