"""What happened, in order of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import permutations
from typing import Literal

import pytest

from sully.api.cluster.taints.history import TAINT_HISTORY, TaintEntry, write_history
from sully.api.resource.types import DeviceTaintSelector
from sully.api.sully.types import (
    EvictedPod,
    EvictionCause,
    EvictionRecord,
    EvictionRecordSpec,
    TaintChange,
    TaintRecord,
    TaintRecordRule,
    TaintRecordSpec,
    TaintRecordStatus,
)
from sully.domain.devices.pools import device_id
from sully.machinery.meta import ObjectMeta
from sully.testing.builders import DRIVER, cel, class_, cluster, device, select, slice_, taint, text
from sully.testing.clock import NOON
from sully.views.history import HistoryEntry, entries_about, history_entries, needs_inventory
from sully.views.kinds import CLASSES, SLICES
from sully.views.snapshot.snapshot import Objects, Snapshot

ON_POOL = select(pool="p")


def _later(minutes: int) -> timedelta:
    return timedelta(minutes=minutes)


def ruled(
    name: str,
    *,
    deleted: bool = False,
    changes: tuple[TaintChange, ...] = (),
    on: DeviceTaintSelector = ON_POOL,
    later: DeviceTaintSelector | None = None,
    effect: str = "NoExecute",
) -> TaintRecord:
    return TaintRecord(
        metadata=ObjectMeta(name=name),
        spec=TaintRecordSpec(
            rule=TaintRecordRule(name=name, uid=name),
            taint=taint(effect=effect),
            device_selector=on,
            created_by="alice",
            description="why",
            added_time=NOON,
        ),
        status=TaintRecordStatus(
            changes=changes,
            device_selector=later,
            evicted=3,
            deleted_time=NOON + _later(9) if deleted else None,
            deleted_by="expiry" if deleted else "",
        ),
    )


def gone(name: str, minutes: int, device: str = "d") -> EvictionRecord:
    cause = EvictionCause(
        kind="DeviceTaintRule",
        name="a",
        uid="a",
        key="k",
        effect="NoExecute",
        description="hot",
        device=device,
    )
    return EvictionRecord(
        metadata=ObjectMeta(name=name, namespace="n"),
        spec=EvictionRecordSpec(
            pod=EvictedPod(namespace="n", name=name, uid=name),
            causes=(cause,),
            devices=(device,),
            evicted_time=NOON + _later(minutes),
        ),
    )


def test_a_rule_is_created_changed_and_deleted() -> None:
    change = TaintChange(time=NOON + _later(1), what="paused")

    made, changed, deleted = history_entries([ruled("a", deleted=True, changes=(change,))], [])

    assert (made.what, made.rule, made.by, made.why) == ("tainted", "a", "alice", "why")
    assert made.selector == select(pool="p")
    assert (changed.what, changed.change, changed.time) == ("changed", "paused", change.time)
    assert (deleted.what, deleted.by, deleted.evicted) == ("deleted", "expiry", 3)


def test_the_count_of_a_deleted_rule_is_never_below_the_evictions_shown() -> None:
    left = [gone(name, 1) for name in "pqrs"]

    for recorded, expected in ((0, 3), (3, 3), (4, 4)):
        (*_, deleted) = history_entries([ruled("a", deleted=True)], left[:recorded])
        assert (deleted.what, deleted.evicted) == ("deleted", expected)


def test_a_count_is_complete_only_where_the_evictor_keeps_records() -> None:
    for complete in (True, False):
        entries = history_entries([ruled("a", deleted=True)], [], complete=complete)
        assert {entry.complete for entry in entries} == {complete}


def test_a_count_is_complete_of_a_rule_that_never_evicts() -> None:
    changed = (TaintChange(time=NOON, what="effect"),)
    for changes, complete in (((), True), (changed, False)):
        record = ruled("a", deleted=True, effect="NoSchedule", changes=changes)
        entries = history_entries([record], [], complete=False)
        assert {entry.complete for entry in entries} == {complete}


def test_a_rule_that_stands_is_not_deleted() -> None:
    assert [entry.what for entry in history_entries([ruled("a")], [])] == ["tainted"]


def test_the_order_is_that_of_time_whatever_the_order_of_records() -> None:
    records = (ruled("a", deleted=True), ruled("b"))
    evictions = (gone("p", 5), gone("q", 0), gone("o", 5))

    for rules in permutations(records):
        for left in permutations(evictions):
            result = history_entries(rules, left)
            assert [(item.what, item.rule or _pod(item)) for item in result] == [
                ("tainted", "a"),
                ("tainted", "b"),
                ("evicted", "q"),
                ("evicted", "o"),
                ("evicted", "p"),
                ("deleted", "a"),
            ]


def _pod(entry: HistoryEntry) -> str:
    assert entry.eviction is not None
    return entry.eviction.spec.pod.name


HISTORY: list[tuple[Literal["tainted", "untainted"], str]] = [
    ("tainted", "a"),
    ("untainted", "a"),
    ("tainted", "b"),
]


def test_a_taint_of_a_cluster_that_is_changed_is_removed_first() -> None:
    entries = [
        TaintEntry(time=NOON, event=event, key="maintenance", value=value, effect="NoSelect")
        for event, value in HISTORY
    ]
    tainted = cluster("c", annotations={TAINT_HISTORY: write_history(entries)})

    result = history_entries((), (), (tainted,), complete=True)

    assert [(entry.what, entry.taint.value) for entry in result if entry.taint is not None] == [
        ("tainted", "a"),
        ("deleted", "a"),
        ("tainted", "b"),
    ]


def test_an_eviction_reports_why() -> None:
    (result,) = history_entries([], [gone("p", 0)])

    assert result.why == "hot"
    assert [cause.name for cause in result.causes()] == ["a"]
    assert history_entries([ruled("a")], [])[0].causes() == ()


# -- about devices --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """One device that a user asks about."""

    name: str

    def matches(self, driver: str, pool: str, device: str) -> bool:
        return device_id(self.name) == (driver, pool, device)

    def matches_pool(self, driver: str, pool: str) -> bool:
        return device_id(self.name)[:2] == (driver, pool)

    def overlaps(self, driver: str | None, pool: str | None, device: str | None) -> bool:
        desired = zip(device_id(self.name), (driver, pool, device), strict=True)
        return all(wanted in (None, part) for part, wanted in desired)


BIG = f'device.attributes["{DRIVER}"].size == "big"'
NOW = Snapshot(
    [
        Objects(SLICES, [slice_("s", device("big", size=text("big")), device("odd"), pool="p")]),
        Objects(CLASSES, [class_("big", BIG), class_("all")]),
    ],
    taken=NOON,
)
SMALL = select(pool="p", selectors=cel(f'device.attributes["{DRIVER}"].?size.orValue("") == "s"'))
TAINTED = [("tainted", False)]
UNSURE = [("tainted", True), ("deleted", True)]
RULES: dict[str, tuple[TaintRecord, str, list[tuple[str, bool]]]] = {
    "by names": (ruled("a"), "big", [("tainted", False)]),
    "by other names": (ruled("a", on=select(pool="q")), "big", []),
    "by a class it is of": (ruled("a", on=select(device_class_name="all")), "odd", TAINTED),
    "by an expression it passes": (ruled("a", on=select(selectors=cel(BIG))), "big", TAINTED),
    "by an expression it fails": (ruled("a", on=SMALL), "big", []),
    "by an expression that cannot decide": (
        ruled("a", on=select(selectors=cel(BIG))),
        "odd",
        [("tainted", True)],
    ),
    "by a class that is gone": (
        ruled("a", on=select(device_class_name="none")),
        "big",
        [("tainted", True)],
    ),
    "it is gone itself": (ruled("a", on=SMALL, deleted=True), "lost", UNSURE),
    "by another pool's class": (
        ruled("a", on=select(pool="q", device_class_name="all")),
        "lost",
        [],
    ),
    "a rule that went elsewhere shows its end": (
        ruled("a", deleted=True, later=select(pool="q")),
        "big",
        [("tainted", False), ("deleted", False)],
    ),
    "a pod had to be evicted it": (
        ruled("a", on=SMALL),
        "left",
        [("tainted", False), ("evicted", False)],
    ),
}


@pytest.mark.parametrize(("record", "name", "want"), RULES.values(), ids=RULES)
def test_what_concerned_a_device(
    record: TaintRecord, name: str, want: list[tuple[str, bool]]
) -> None:
    reported = history_entries([record], [gone("p", 5, f"{DRIVER}/p/left")])

    result = list(entries_about(reported, Asked(f"{DRIVER}/p/{name}"), NOW.inventory))

    assert [(item.what, item.uncertain) for item in result] == want


def test_devices_are_asked_only_where_names_are_not_enough() -> None:
    asked = Asked(f"{DRIVER}/p/big")

    assert not needs_inventory(history_entries([ruled("a")], [gone("p", 5)]), asked)
    assert not needs_inventory(
        history_entries([ruled("a", on=select(pool="q", device_class_name="c"))], []), asked
    )
    assert needs_inventory(history_entries([ruled("a", on=SMALL)], []), asked)
