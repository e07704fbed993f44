"""The evictor as sequences of events: whatever happens when, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import permutations

import msgspec
import pytest

import manifests
from evictor.acting import KEY, WITHIN_BUDGET, Acting, failing, hot, slow
from sully.client.transport import Key
from sully.domain.eviction.partial_records import PartialEvictionRecord
from sully.domain.eviction.pod_events import EvictionStep
from sully.domain.workloads.workloads import Budget, BudgetStatus
from sully.evictor.checks import (
    BudgetExhausted,
    Delayed,
    Paused,
    RateLimited,
    StaleCache,
    Tolerated,
)
from sully.evictor.effects import (
    Announce,
    DeletePod,
    Effect,
    EvictPod,
    MarkPod,
    ReadPod,
    RecordEviction,
    RequeueAt,
    SkipPod,
    TryEviction,
    WithdrawRecord,
)
from sully.evictor.events import (
    BudgetChanged,
    CacheConfirmed,
    Event,
    PodChanged,
    PodDeleted,
    PodMarked,
    PodNotFound,
    PodRead,
    Requeued,
)
from sully.testing import builders
from sully.testing.builders import GPU, claim, exists, pod
from sully.testing.clock import NOON

PLAIN: list[type[Effect]] = [ReadPod, RecordEviction, MarkPod, DeletePod]
BUDGETED: list[type[Effect]] = [ReadPod, TryEviction, RecordEviction, EvictPod]
Step = Callable[[Acting], None]


def delay(acting: Acting) -> Delayed | None:
    """Return why the one pod that is to be evicted is not."""
    ((_, pending),) = acting.evictor.pending()
    return pending.delayed


# -- every order ----------------------------------------------------------------------------------


def add_rule(acting: Acting) -> None:
    acting.scene.rules.put(hot())


def add_claim(acting: Acting) -> None:
    acting.scene.claims.put(claim("pod", GPU, pods=("pod",)))


def add_pod(acting: Acting) -> None:
    acting.scene.pods.put(pod("pod", "pod"))


def go_stale(acting: Acting) -> None:
    acting.line.confirmed = False


def confirm(acting: Acting) -> None:
    acting.line.confirmed = True
    acting.run(CacheConfirmed(0))


def pause(acting: Acting) -> None:
    acting.scene.rules.put(hot(annotations={"sully.dev/paused": "true"}))


def weaken(acting: Acting) -> None:
    acting.scene.rules.put(hot("NoSchedule"))


def tolerate(acting: Acting) -> None:
    acting.holder("pod", exists(seconds=60))


def remove_pod(acting: Acting) -> None:
    acting.scene.pods.remove(pod("pod", "pod"))


def names(steps: tuple[Step, ...]) -> str:
    return "-".join(step.__name__ for step in steps)


@pytest.mark.parametrize("order", [*permutations((add_rule, add_claim, add_pod))], ids=names)
def test_a_pod_is_evicted_once_whatever_becomes_known_first(order: tuple[Step, ...]) -> None:
    acting = Acting()
    for step in order:
        step(acting)
        acting.reconcile()
    acting.reconcile()

    assert acting.evicted == ["pod"]
    assert acting.records == {"uid-pod"}
    assert acting.count() == 1
    assert acting.steps() == [item.__name__ for item in PLAIN]


EVENTS = (add_rule, pause, weaken, go_stale, confirm)


@pytest.mark.parametrize("order", [*permutations(EVENTS)], ids=names)
def test_whatever_changes_in_whatever_order_the_last_state_decides(
    order: tuple[Step, ...],
) -> None:
    acting = Acting()
    acting.holder()
    rules = [step for step in order if step not in (go_stale, confirm)]
    for step in order:
        before = [*acting.evicted]
        step(acting)
        acting.reconcile()
        evicting = acting.line.confirmed and _last_rule(order, step, rules) is add_rule
        assert acting.evicted == (["pod"] if evicting or before else [])
    assert len(acting.records) == len(acting.evicted) == acting.count()


def _last_rule(order: tuple[Step, ...], now: Step, rules: list[Step]) -> Step | None:
    """Return which state of the rule is the newest at a step."""
    so_far = [step for step in order[: order.index(now) + 1] if step in rules]
    return so_far[-1] if so_far else None


# -- changes while an answer is awaited -----------------------------------------------------------


@pytest.mark.parametrize("effect", [*PLAIN[:-1]], ids=lambda item: item.__name__)
@pytest.mark.parametrize("change", [weaken, pause, remove_pod, go_stale], ids=lambda s: s.__name__)
def test_what_changes_while_an_answer_is_awaited_stops_the_eviction(
    effect: type[Effect], change: Step
) -> None:
    """The pod is checked again before each write."""
    acting = Acting()
    acting.holder()
    add_rule(acting)

    def happens() -> Event | None:
        change(acting)
        return PodNotFound(KEY) if change is remove_pod and effect is not RecordEviction else None

    acting.before[effect] = happens
    acting.reconcile()
    acting.reconcile()

    assert acting.evicted == []
    assert acting.records == set()
    assert acting.count() == 0
    done = PLAIN.index(effect)
    assert acting.steps()[: done + 1] == [item.__name__ for item in PLAIN[: done + 1]]
    assert "DeletePod" not in acting.steps()


@pytest.mark.parametrize("effect", [*BUDGETED[:-1]], ids=lambda item: item.__name__)
def test_the_same_holds_where_budgets_decide(effect: type[Effect]) -> None:
    acting = Acting()
    acting.holder()
    acting.scene.rules.put(hot(WITHIN_BUDGET))
    acting.before[effect] = lambda: weaken(acting)
    acting.reconcile()

    assert (acting.evicted, acting.records) == ([], set())
    done = BUDGETED.index(effect)
    expected = [item.__name__ for item in BUDGETED[: done + 1]]
    assert acting.steps() == expected + (["WithdrawRecord"] if effect is RecordEviction else [])


@pytest.mark.parametrize("effect", PLAIN, ids=lambda item: item.__name__)
@pytest.mark.parametrize("times", [1, 3])
def test_a_failure_starts_over_with_the_record_and_the_token(
    effect: type[Effect], times: int
) -> None:
    acting = Acting(slow(max_per_minute=1))
    acting.holder()
    add_rule(acting)
    for _ in range(times):
        acting.before[effect] = failing
        acting.reconcile()
        assert acting.evicted == []
    acting.reconcile()

    assert acting.evicted == ["pod"]
    assert acting.count() == 1
    assert acting.steps().count("RecordEviction") == (times + 1 if effect is RecordEviction else 1)


def test_a_deletion_whose_answer_is_lost_is_counted_when_the_pod_is_gone() -> None:
    acting = Acting()
    acting.holder()
    add_rule(acting)
    acting.before[DeletePod] = failing
    acting.reconcile()
    remove_pod(acting)
    acting.reconcile()

    assert acting.count() == 1
    assert acting.records == {"uid-pod"}


def test_a_pod_that_is_not_found_before_the_cache_knows_keeps_its_record() -> None:
    acting = Acting()
    acting.holder()
    add_rule(acting)
    acting.before[DeletePod] = failing
    acting.reconcile()
    acting.before[ReadPod] = lambda: PodNotFound(KEY)
    acting.reconcile()
    assert acting.records == {"uid-pod"}
    remove_pod(acting)
    acting.reconcile()

    assert acting.count() == 1
    assert acting.records == {"uid-pod"}


CHANGES = (weaken, pause, tolerate, remove_pod)


@pytest.mark.parametrize("effect", PLAIN[:-1], ids=lambda item: item.__name__)
@pytest.mark.parametrize("change", CHANGES, ids=lambda s: s.__name__)
def test_the_record_of_an_eviction_that_failed_is_withdrawn_when_it_is_not_repeated(
    effect: type[Effect], change: Step
) -> None:
    """What is not answered may have been executed: there may be a record that nobody confirmed."""
    acting = Acting()
    acting.holder()
    add_rule(acting)
    acting.unanswered.add(effect)
    acting.reconcile()
    change(acting)
    acting.reconcile()

    assert (acting.evicted, acting.records, acting.count()) == ([], set(), 0)


@pytest.mark.parametrize("change", CHANGES, ids=lambda s: s.__name__)
def test_a_deletion_that_failed_is_not_an_eviction_if_the_pod_stays(change: Step) -> None:
    acting = Acting()
    acting.holder()
    add_rule(acting)
    acting.before[DeletePod] = failing
    acting.reconcile()
    change(acting)
    acting.reconcile()

    # Whoever deletes the pod now, the deletion that was not answered may be the reason.
    assert acting.records == ({"uid-pod"} if change is remove_pod else set())


@pytest.mark.parametrize("change", CHANGES, ids=lambda s: s.__name__)
def test_a_deletion_whose_answer_is_lost_keeps_its_record_before_the_cache_knows(
    change: Step,
) -> None:
    acting = Acting()
    acting.holder()
    add_rule(acting)
    acting.unanswered.add(DeletePod)
    acting.reconcile()
    change(acting)
    acting.reconcile()
    remove_pod(acting)
    acting.reconcile()

    assert (acting.evicted, acting.records, acting.count()) == (["pod"], {"uid-pod"}, 1)


def test_a_record_that_may_have_been_withdrawn_is_created_again() -> None:
    acting = Acting()
    acting.holder()
    add_rule(acting)
    acting.before[MarkPod] = failing
    acting.reconcile()
    weaken(acting)
    acting.unanswered.add(WithdrawRecord)
    acting.reconcile()
    add_rule(acting)
    acting.reconcile()

    assert (acting.evicted, acting.records, acting.count()) == (["pod"], {"uid-pod"}, 1)


def test_a_record_that_an_earlier_process_withdrew_is_created_again() -> None:
    """Its request may be executed after this process has loaded the records."""
    acting = Acting(past=(past("pod"),))
    acting.holder()
    acting.records.clear()
    add_rule(acting)
    acting.reconcile()

    assert (acting.evicted, acting.records, acting.count()) == (["pod"], {"uid-pod"}, 1)


def test_a_new_process_keeps_the_record_of_a_deletion_that_its_cache_does_not_show() -> None:
    acting = Acting(past=(past("pod"),))
    acting.evicted.append("pod")
    acting.holder()
    acting.reconcile()
    remove_pod(acting)
    acting.reconcile()

    assert (acting.records, acting.count()) == ({"uid-pod"}, 1)


def test_a_pod_that_is_gone_when_it_is_to_be_deleted_was_not_evicted() -> None:
    acting = Acting()
    acting.holder()
    add_rule(acting)
    acting.before[DeletePod] = lambda: PodNotFound(KEY)
    acting.reconcile()
    remove_pod(acting)
    acting.reconcile()

    assert (acting.records, acting.count()) == (set(), 0)


def test_the_record_of_a_pod_whose_name_another_has_now_is_withdrawn_once() -> None:
    acting = Acting()
    acting.holder()
    add_rule(acting)
    acting.before[MarkPod] = failing
    acting.reconcile()
    weaken(acting)
    acting.scene.pods.put(pod("pod", "pod", uid="uid-other"))
    acting.reconcile()

    assert acting.steps() == ["ReadPod", "RecordEviction", "MarkPod", "WithdrawRecord"]
    assert acting.records == set()


def test_a_pod_that_another_user_deleted_is_not_counted() -> None:
    acting = Acting()
    acting.holder()
    add_rule(acting)
    acting.before[ReadPod] = lambda: PodRead(KEY, terminating=True)
    acting.reconcile()

    assert acting.count() == 0
    assert acting.steps() == ["ReadPod"]
    assert not acting.evictor.is_pending(KEY)


def test_a_marked_pod_is_not_marked_again() -> None:
    acting = Acting()
    acting.holder()
    add_rule(acting)
    acting.marked.add("uid-pod")
    acting.reconcile()

    assert acting.steps() == ["ReadPod", "RecordEviction", "DeletePod"]


def test_a_taint_without_budgets_that_becomes_due_meanwhile_needs_no_budget() -> None:
    acting = Acting()
    acting.holder()
    acting.scene.rules.put(hot(WITHIN_BUDGET, "soft"))
    acting.before[ReadPod] = lambda: acting.scene.rules.put(hot())
    acting.reconcile()

    assert acting.steps() == [item.__name__ for item in PLAIN]


def test_a_taint_that_becomes_the_only_one_meanwhile_asks_the_budgets() -> None:
    acting = Acting()
    acting.holder()
    acting.scene.rules.put(hot(WITHIN_BUDGET, "soft"))
    add_rule(acting)
    acting.before[RecordEviction] = lambda: acting.scene.rules.remove(hot())
    acting.reconcile()

    assert acting.steps() == ["ReadPod", "RecordEviction", "EvictPod"]


@pytest.mark.parametrize("event", [PodDeleted(KEY), PodMarked(KEY), PodRead(KEY), PodNotFound(KEY)])
def test_an_answer_that_nobody_awaits_changes_nothing(event: Event) -> None:
    acting = Acting()
    acting.holder()

    assert acting.send(event) == []
    assert acting.count() == 0


# -- checks ---------------------------------------------------------------------------------------


def test_the_causes_of_a_delay() -> None:
    acting = Acting()
    acting.holder("pod", exists(seconds=60))
    add_rule(acting)
    until = NOON + timedelta(seconds=60)
    assert RequeueAt(KEY, until) in acting.send(PodChanged(KEY))
    assert delay(acting) == Delayed(Tolerated(), until)

    acting.scene.clock.advance(60)
    go_stale(acting)
    acting.reconcile()
    assert delay(acting) == Delayed(StaleCache())
    assert acting.evictor.waiting_for_caches == 1

    pause(acting)
    acting.reconcile()
    result = delay(acting)
    assert result is not None
    assert isinstance(result.cause, Paused)
    assert [str(reason.taint.origin) for reason in result.cause.reasons] == ["DeviceTaintRule/r"]


def test_a_rate_delays_the_others_and_requeues_them_one_by_one() -> None:
    acting = Acting(slow(default_per_second=1))
    many = [f"p{number}" for number in range(12)]
    for name in many:
        acting.holder(name)
    add_rule(acting)
    for name in many:
        acting.reconcile(name)

    assert acting.evicted == many[:10]
    causes = [pending.delayed for _, pending in acting.evictor.pending()]
    assert causes == [Delayed(RateLimited(), NOON + timedelta(seconds=1)), Delayed(RateLimited())]
    acting.scene.clock.advance(2)
    acting.run(Requeued(Key("default", "p10")))
    assert acting.evicted == many


def budget(allowed: int) -> Budget:
    status = BudgetStatus(disruptions_allowed=allowed, desired_healthy=1)
    return builders.budget(selector={}, status=status)


def test_a_budget_delays_until_it_allows_more_or_the_retry() -> None:
    acting = Acting()
    acting.holder()
    acting.scene.rules.put(hot(WITHIN_BUDGET))
    acting.run(BudgetChanged(None, budget(0)))
    acting.refuses = True
    acting.reconcile()

    cause = BudgetExhausted((Key("default", "pdb"),))
    assert delay(acting) == Delayed(cause, NOON + timedelta(seconds=1))
    assert acting.records == set()
    acting.reconcile()
    assert delay(acting) == Delayed(cause, NOON + timedelta(seconds=2))

    acting.refuses = False
    acting.run(BudgetChanged(budget(0), budget(1)))
    assert acting.evicted == ["pod"]


def test_a_refused_pod_returns_its_token() -> None:
    acting = Acting(slow(max_per_minute=1))
    acting.holder("p1")
    acting.holder("p2")
    acting.scene.rules.put(hot(WITHIN_BUDGET))
    acting.refuses = True
    acting.reconcile("p1")
    acting.refuses = False
    acting.reconcile("p2")

    assert acting.evicted == ["p2"]


# -- records --------------------------------------------------------------------------------------


def past(name: str, *, after: float = -600) -> PartialEvictionRecord:
    """Return the record of a pod that the rule evicted before the process started."""
    cause = {"kind": "DeviceTaintRule", "name": "r", "uid": "uid-r"}
    at = NOON + timedelta(seconds=after)
    spec = {"pod": {"name": name}, "causes": [cause], "evictedTime": at}
    body = manifests.body("EvictionRecord", f"uid-{name}", spec, namespace="default")
    return msgspec.convert(body, PartialEvictionRecord)


def test_counts_continue_where_the_records_end() -> None:
    acting = Acting(past=(past("a"), past("b")))
    acting.holder()
    add_rule(acting)
    acting.reconcile()

    assert acting.count() == 3
    assert acting.evictor.records.evicted_since_start("uid-r") == 1


TOTALS = {
    "no taint record": ({}, 1),
    "records were deleted since": ({"uid-r": 5}, 4),
    "it is behind": ({"uid-r": 1}, 1),
    "of another rule": ({"uid-x": 5}, 1),
}


@pytest.mark.parametrize(("totals", "before"), TOTALS.values(), ids=TOTALS.keys())
def test_a_total_counts_what_is_under_way_and_that_is_not_counted_twice(
    totals: dict[str, int], before: int
) -> None:
    acting = Acting(past=(past("a"), past("pod")), totals=totals)
    acting.holder()
    add_rule(acting)
    assert acting.count() == before
    acting.reconcile()

    assert acting.count() == before + 1
    assert acting.records == {"uid-a", "uid-pod"}


def test_an_eviction_of_an_earlier_process_is_completed_and_not_counted_as_ours() -> None:
    acting = Acting(past=(past("pod"),))
    acting.holder("pod", exists())
    add_rule(acting)
    assert acting.count() == 0
    remove_pod(acting)
    acting.reconcile()

    assert (acting.count(), acting.evictor.records.evicted_since_start("uid-r")) == (1, 0)


def test_a_record_whose_pod_stays_is_withdrawn() -> None:
    acting = Acting(past=(past("pod"),))
    acting.holder()
    acting.reconcile()

    assert acting.records == set()
    assert acting.count() == 0


def test_recent_evictions_of_an_earlier_process_count_for_the_limit() -> None:
    acting = Acting(slow(max_per_minute=1), past=(past("a", after=-20),))
    acting.holder()
    add_rule(acting)
    acting.reconcile()

    assert delay(acting) == Delayed(RateLimited(), NOON + timedelta(seconds=40))


# -- plans ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", ["NoExecute", WITHIN_BUDGET])
def test_an_authoritative_cache_needs_no_call_but_the_deletion(effect: str) -> None:
    acting = Acting(slow(authoritative_cache=True, records=False))
    acting.holder()
    acting.scene.rules.put(hot(effect))
    acting.reconcile()

    assert acting.log == ["DeletePod" if effect == "NoExecute" else "EvictPod"]


def test_with_an_authoritative_cache_a_budget_is_not_asked_by_the_clock() -> None:
    acting = Acting(slow(authoritative_cache=True, records=False))
    acting.holder()
    acting.scene.rules.put(hot(WITHIN_BUDGET))
    acting.refuses = True
    acting.reconcile()

    assert delay(acting) == Delayed(BudgetExhausted(()))


def test_an_exempt_pod_is_skipped() -> None:
    acting = Acting()
    acting.holder()
    add_rule(acting)
    acting.evictor.exempt("uid-pod")
    assert acting.send(PodChanged(KEY)) == [SkipPod(KEY)]

    acting.evictor.clear_exemptions()
    acting.reconcile()
    assert acting.evicted == ["pod"]


def test_time_alone_takes_no_reason_away_so_a_requeued_pod_is_not_judged_again() -> None:
    acting = Acting(slow(max_per_minute=1))
    acting.holder("p1")
    acting.holder("p2")
    add_rule(acting)
    acting.reconcile("p1")
    acting.reconcile("p2")
    ((_, before),) = acting.evictor.pending()
    acting.send(Requeued(Key("default", "p2")))
    ((_, after),) = acting.evictor.pending()

    assert after is before


# -- what is reported -----------------------------------------------------------------------------


def test_events_about_a_pod() -> None:
    acting = Acting()
    acting.holder("pod", exists(seconds=60))
    add_rule(acting)
    acting.reconcile()
    weaken(acting)
    assert Announce(KEY, "uid-pod", EvictionStep.CANCELLED) in acting.send(PodChanged(KEY))
    assert Announce(KEY, "uid-pod", EvictionStep.CANCELLED) not in acting.send(PodChanged(KEY))


def test_only_pods_on_tainted_devices_are_of_concern() -> None:
    acting = Acting()
    acting.holder("pod", exists())
    now = acting.scene.clock.now()
    assert not acting.evictor.concerns(KEY, now)
    add_rule(acting)
    assert acting.evictor.concerns(KEY, now)
    weaken(acting)
    assert not acting.evictor.concerns(KEY, now)
