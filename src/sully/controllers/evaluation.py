"""Evaluates expressions for other controllers, outside the event loop.

`ExpressionEvaluation` is for a controller whose decision was interrupted (`UnfinishedError`): it
takes the key, evaluates, and requeues the key. `SelectorEvaluation` evaluates what the inventory
deferred: rules and patches with expensive expressions, until their devices can be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from sully.client.transport import Key
from sully.controllers.framework.controller import DONE, REQUEUE, Result, Watch
from sully.controllers.framework.sources import Channel, same_key
from sully.machinery.cel import COST_BUDGET, SLICE, CostBudget, UnfinishedError
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.evaluation import Evaluator
from sully.views.devices.choices import Owner
from sully.views.devices.inventory import Inventory

BACKOFF: Final = Backoff(base=5.0, cap=300.0, jitter=0.0)
"""Between attempts that exceed their budget: each of them is expensive."""
WORKERS: Final = 4
"""Rules and patches that are evaluated in turn, so that one does not block all others."""


class ExpressionEvaluation:
    """A controller that evaluates for another one, key by key."""

    def __init__(self, name: str, evaluator: Evaluator, resume: Callable[[Key], None]) -> None:
        self.name = name
        self._evaluator = evaluator
        self._resume = resume
        self._unfinished: dict[Key, tuple[UnfinishedError, float]] = {}
        self._keys: Channel[Key] = Channel()

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for keys that wait for an evaluation."""
        yield Watch(self._keys, same_key)

    def __contains__(self, key: Key) -> bool:
        """Report whether a key waits for an evaluation."""
        return key in self._unfinished

    def put(self, key: Key, unfinished: UnfinishedError, seconds: float = 0.0) -> None:
        """Evaluate what a key waits for; `seconds` is how long its last slice took."""
        self._unfinished[key] = unfinished, seconds
        self._keys.send(key)

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
        """Wake for rules and patches with pending expressions."""
        yield Watch(self._inventory.choices, same_key)

    async def reconcile(self, key: Key) -> Result:
        """Evaluate what is pending for a rule or patch, as far as its budget allows."""
        owner, choices = Owner(*key), self._inventory.choices
        # What exceeded the budget is retried after a pause, once nothing new is pending.
        retry = choices.next(owner) is None
        budget = CostBudget(self._units, per_slice=SLICE)
        while (content := choices.next(owner, again=retry)) is not None:
            started = self._clock.monotonic()
            try:
                if not choices.evaluate(owner, content, budget):
                    break
            except UnfinishedError as unfinished:
                await self._evaluator.resume(unfinished, self._clock.monotonic() - started)
        self._inventory.evaluated(owner)
        return REQUEUE if choices.exceeds(owner) else DONE
