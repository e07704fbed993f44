"""Which pods are requeued when a budget allows more disruptions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sully.client.transport import Key
from sully.domain.workloads.workloads import Budget, BudgetStatus
from sully.evictor.budget_queue import BudgetWaitQueue
from sully.evictor.events import EvictionRefused
from sully.testing import builders

LABELS = {"app": "web"}
NAMES = ["p1", "p2", "p3"]


def budget(name: str = "pdb", **status: Any) -> Budget:
    counted = BudgetStatus(**{"desired_healthy": 5, **status})
    return builders.budget(name, namespace="a", selector={"matchLabels": LABELS}, status=counted)


class Waiting:
    """Three pods that a budget refused."""

    def __init__(self) -> None:
        self.requeued: list[str] = []
        self.queue = BudgetWaitQueue(lambda key: self.requeued.append(key.name))
        self.budget = budget()
        self.queue.budget_changed(None, self.budget)
        for name in NAMES:
            self.refuse(name)

    def refuse(self, name: str, *, ready: bool | None = True, **labels: str) -> tuple[Key, ...]:
        return self.queue.add(EvictionRefused(Key("a", name), labels or LABELS, ready))

    def release(self, name: str) -> None:
        self.queue.release(Key("a", name))

    def evicted(self, name: str) -> None:
        self.queue.evicted(Key("a", name))

    def status(self, **changes: Any) -> list[str]:
        """Change the status of the budget; return which pods were requeued since the last time."""
        old, status = self.budget, msgspec.structs.replace(self.budget.status, **changes)
        self.budget = msgspec.structs.replace(old, status=status)
        self.queue.budget_changed(old, self.budget)
        requeued, self.requeued[:] = [*self.requeued], ()
        return requeued

    def allow(self, number: int) -> list[str]:
        """Allow so many disruptions, after there were none."""
        self.status(disruptions_allowed=0)
        return self.status(disruptions_allowed=number)


@pytest.mark.parametrize("number", range(5))
def test_as_many_are_requeued_as_are_allowed(number: int) -> None:
    assert Waiting().allow(number) == NAMES[:number]


def test_pods_that_are_not_ready_wait_for_something_else() -> None:
    waiting = Waiting()
    waiting.refuse("p4", ready=False)

    assert waiting.allow(9) == ["p4", *NAMES]
    waiting.refuse("p4", ready=False)
    assert waiting.status(current_healthy=5) == ["p4"]


def test_pods_under_several_budgets_wait_until_one_changes_or_is_gone() -> None:
    waiting = Waiting()
    waiting.queue.budget_changed(None, budget("two"))
    assert waiting.refuse("p4", ready=None) == (Key("a", "pdb"), Key("a", "two"))

    assert waiting.allow(9) == NAMES
    waiting.queue.budget_changed(budget("two"), None)
    assert waiting.requeued == ["p4"]


def test_a_budget_whose_spec_was_counted_again_lets_all_ask() -> None:
    assert Waiting().status(observed_generation=2) == NAMES


def test_a_budget_that_is_gone_lets_all_ask_and_selects_no_more() -> None:
    waiting = Waiting()
    waiting.queue.budget_changed(waiting.budget, None)

    assert waiting.requeued == NAMES
    assert waiting.refuse("p1") == ()


def test_a_pod_that_retries_by_itself_keeps_its_position() -> None:
    waiting = Waiting()
    waiting.refuse("p1")

    assert waiting.allow(1) == ["p1"]


def test_a_pod_whose_budget_was_not_known_gets_its_position_later() -> None:
    waiting = Waiting()
    assert waiting.refuse("p0", app="other") == ()
    waiting.refuse("p0")

    assert waiting.allow(9) == [*NAMES, "p0"]


def test_a_pod_that_was_requeued_in_vain_goes_to_the_end() -> None:
    waiting = Waiting()
    waiting.allow(1)
    waiting.refuse("p1")

    assert waiting.allow(9) == ["p2", "p3", "p1"]


def test_an_evicted_pod_used_its_disruption_and_one_that_stays_leaves_it_to_the_next() -> None:
    waiting = Waiting()
    assert waiting.allow(1) == ["p1"]
    waiting.evicted("p1")
    assert waiting.requeued == []

    assert waiting.allow(1) == ["p2"]
    waiting.release("p2")

    assert waiting.requeued == ["p3"]


def test_a_pod_that_waits_no_more_is_not_requeued() -> None:
    waiting = Waiting()
    waiting.release("p1")
    waiting.evicted("p2")

    assert waiting.allow(9) == ["p3"]
