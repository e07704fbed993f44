"""Evaluates expressions for other controllers, beside the event loop.

`ExpressionEvaluation` is for a controller whose decision was interrupted (`UnfinishedError`): it
takes the key, evaluates, and requeues the key. `SelectorEvaluation` evaluates what the inventory
postponed: rules and patches with costly expressions, until their devices can be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from sully.client.transport import Key
from sully.controllers.framework import AGAIN, DONE, Result, Watch
from sully.machinery.cel import COST_BUDGET, SLICE, CostBudget, UnfinishedError
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.evaluation import Evaluator
from sully.views.devices.choices import Owner
from sully.views.devices.inventory import Inventory

BACKOFF: Final = Backoff(base=5.0, cap=300.0, jitter=0.0)
"""Between attempts that exceed their budget: each of them is expensive."""
WORKERS: Final = 4
"""Rules and patches that are evaluated in turn, so that one does not hold up all others."""


class KeySource:
    """A source of explicitly added keys."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Key], None]] = []

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add every key that is named to a queue."""

        def handle(named: Key) -> None:
            for key in to_keys(named):
                add(key)

        self._listeners.append(handle)
        return lambda: self._listeners.remove(handle)

    def add(self, key: Key) -> None:
        """Name a key."""
        for listener in list(self._listeners):
            listener(key)


class ExpressionEvaluation:
    """A controller that evaluates for another one, key by key."""

    def __init__(self, name: str, evaluator: Evaluator, resume: Callable[[Key], None]) -> None:
        self.name = name
        self._evaluator = evaluator
        self._resume = resume
        self._unfinished: dict[Key, tuple[UnfinishedError, float]] = {}
        self._keys = KeySource()

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for keys that wait for an evaluation."""
        yield Watch(self._keys, lambda key: (key,))

    def __contains__(self, key: Key) -> bool:
        """Report whether a key waits for an evaluation."""
        return key in self._unfinished

    def put(self, key: Key, unfinished: UnfinishedError, took: float = 0.0) -> None:
        """Evaluate what a key waits for; its last slice took so many seconds."""
        self._unfinished[key] = unfinished, took
        self._keys.add(key)

    async def reconcile(self, key: Key) -> Result:
        """Evaluate, and requeue the key."""
        unfinished = self._unfinished.get(key)
        if unfinished is not None:
            await self._evaluator.resume(*unfinished)
            del self._unfinished[key]
            self._resume(key)
        return DONE


class SelectorEvaluation:
    """Evaluates the expressions of rules and patches."""

    name = "device-selector-evaluation"

    def __init__(
        self,
        *,
        inventory: Inventory,
        evaluator: Evaluator,
        clock: Clock,
        units: int = COST_BUDGET,
    ) -> None:
        self._inventory = inventory
        self._units = units
        self._evaluator = evaluator
        self._clock = clock

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for rules and patches that have something to be evaluated."""
        yield Watch(self._inventory.choices, lambda key: (key,))

    async def reconcile(self, key: Key) -> Result:
        """Evaluate what is pending for a rule or patch, as far as its budget goes."""
        owner, choices = Owner(*key), self._inventory.choices
        # What exceeded the budget comes again when nothing new does, after a pause.
        again = choices.next(owner) is None
        budget = CostBudget(self._units, per_slice=SLICE)
        while (content := choices.next(owner, again=again)) is not None:
            began = self._clock.monotonic()
            try:
                if not choices.evaluate(owner, content, budget):
                    break
            except UnfinishedError as unfinished:
                await self._evaluator.resume(unfinished, self._clock.monotonic() - began)
        self._inventory.evaluated(owner)
        return AGAIN if choices.exceeds(owner) else DONE
