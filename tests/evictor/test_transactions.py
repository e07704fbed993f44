"""Evictions by one transaction: whatever happens before it, and whether it is possible."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest
from msgspec.structs import replace

from evictor.acting import KEY, WITHIN_BUDGET, Acting, failing, hot, slow
from sully.evictor.effects import Announce, CommitEviction, DeletePod, RecordEviction
from sully.evictor.events import CommitRejected, PodChanged, PodNotFound, RulesReported
from sully.testing.builders import GPU, claim, exists, pod

TRANSACTIONS = slow(transactions=True)
SEPARATE = ["ReadPod", "RecordEviction", "MarkPod", "DeletePod"]
Step = Callable[[Acting], None]


@pytest.fixture
def acting() -> Acting:
    made = Acting(TRANSACTIONS)
    made.holder()
    made.scene.rules.put(hot())
    return made


def add_rule(acting: Acting) -> None:
    acting.scene.rules.put(hot())


def add_claim(acting: Acting) -> None:
    acting.scene.claims.put(claim("pod", GPU, pods=("pod",)))


def add_pod(acting: Acting) -> None:
    acting.scene.pods.put(pod("pod", "pod"))


@pytest.mark.parametrize("steps", list(permutations((add_rule, add_claim, add_pod))))
def test_in_every_order_the_pod_is_evicted_once(steps: tuple[Step, ...]) -> None:
    acting = Acting(TRANSACTIONS)
    for step in steps:
        step(acting)
        acting.reconcile()
    acting.reconcile()

    assert acting.steps() == ["CommitEviction"]
    assert acting.log.count("Announce") == acting.log.count("CountEviction") == 1
    assert (acting.evicted, acting.count()) == (["pod"], 1)
    assert acting.records == acting.marked == {"uid-pod"}
    assert not list(acting.evictor.pending())


def test_no_record_where_evictions_are_not_recorded() -> None:
    acting = Acting(slow(transactions=True, records=False))
    acting.holder()
    acting.scene.rules.put(hot())
    acting.reconcile()

    assert (acting.steps(), acting.records) == (["CommitEviction"], set())


def test_budgets_are_asked_as_before(acting: Acting) -> None:
    acting.scene.rules.put(hot(WITHIN_BUDGET))
    acting.reconcile()

    assert acting.steps() == ["ReadPod", "TryEviction", "RecordEviction", "EvictPod"]


def test_rules_report_first(acting: Acting) -> None:
    acting.before[CommitEviction] = lambda: RulesReported(KEY)
    acting.reconcile()

    assert acting.steps() == ["CommitEviction"] * 2
    assert (acting.evicted, acting.count()) == (["pod"], 1)


def test_a_rule_that_is_deleted_while_others_report_evicts_nothing(acting: Acting) -> None:
    def cancel() -> RulesReported:
        acting.scene.rules.remove(hot())
        return RulesReported(KEY)

    acting.before[CommitEviction] = cancel
    acting.reconcile()

    assert acting.steps() == ["CommitEviction", "WithdrawRecord"]
    assert (acting.evicted, acting.records, acting.count()) == ([], set(), 0)


def test_a_pod_that_changed_is_read_and_evicted_by_separate_writes(acting: Acting) -> None:
    acting.before[CommitEviction] = lambda: CommitRejected(KEY)
    acting.reconcile()

    assert acting.steps() == ["CommitEviction", *SEPARATE]
    assert acting.log.count("Announce") == 1
    assert (acting.evicted, acting.count(), acting.records) == (["pod"], 1, {"uid-pod"})


def test_separate_writes_stay_separate_when_the_cache_shows_the_change(acting: Acting) -> None:
    def change() -> None:
        changed = pod("pod", "pod")
        metadata = replace(changed.metadata, resource_version="99")
        acting.scene.pods.put(replace(changed, metadata=metadata))

    acting.before[CommitEviction] = lambda: CommitRejected(KEY)
    acting.before[RecordEviction] = change
    acting.reconcile()

    assert acting.steps() == ["CommitEviction", *SEPARATE]


def test_a_pod_that_is_gone_leaves_no_record(acting: Acting) -> None:
    acting.before[CommitEviction] = lambda: CommitRejected(KEY)
    acting.before[DeletePod] = lambda: PodNotFound(KEY)
    acting.reconcile()

    assert (acting.records, acting.count()) == (set(), 0)


def test_a_toleration_before_the_transaction_keeps_the_pod(acting: Acting) -> None:
    def tolerate() -> RulesReported:
        acting.scene.claims.put(claim("pod", (GPU, (exists(),)), pods=("pod",)))
        return RulesReported(KEY)

    acting.before[CommitEviction] = tolerate
    acting.reconcile()

    assert (acting.evicted, acting.records) == ([], set())
    assert [item for item in acting.send(PodChanged(KEY)) if isinstance(item, Announce)] == []


def test_a_transaction_that_fails_is_tried_again(acting: Acting) -> None:
    acting.before[CommitEviction] = failing
    acting.reconcile()
    assert (acting.evicted, acting.count()) == ([], 0)
    acting.reconcile()

    assert acting.steps() == ["CommitEviction"] * 2
    assert (acting.evicted, acting.count()) == (["pod"], 1)


def test_an_answer_that_is_lost_is_counted_once(acting: Acting) -> None:
    acting.unanswered.add(CommitEviction)
    acting.reconcile()
    acting.scene.pods.remove(pod("pod", "pod"))
    acting.reconcile()
    acting.reconcile()

    assert acting.steps() == ["CommitEviction"]
    assert (acting.records, acting.count()) == ({"uid-pod"}, 1)
