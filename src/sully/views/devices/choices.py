"""Which devices rules and patches select by expressions, without long evaluations.

Devices are merged whenever they are read, in the middle of other work. So with `defer` only cheap
expressions are evaluated there. The rest is `pending`: it selects nothing, and
`controllers/evaluation.py` evaluates it step by step. What exceeds the budget of its rule or patch
selects nothing either, until another pass gets further: no pod is evicted by an expression that
is not evaluated. Without `defer`, as in commands, everything is evaluated immediately, within
the same budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from sully.api.resource.types import DeviceTaintSelector
from sully.client.transport import Key
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.rules import Choice, Classes, choose_by_content
from sully.domain.devices.selectors import Content, compile_all
from sully.machinery.cel import CostBudget, CostBudgetExceededError, UnfinishedError
from sully.machinery.cel.programs import UNITS_PER_CHARACTER

EVALUATION_LIMIT: Final = 200
"""Cost units for one device while it is read: some twenty microseconds."""
COMPILATION_LIMIT: Final = 1024 * UNITS_PER_CHARACTER
"""Cost units for compiling the expressions of a rule or patch: some ten milliseconds, once."""
PENDING: Final = Choice(selected=False, problem="its expressions are being evaluated")


class Owner(NamedTuple):
    """The rule or patch that has the expressions."""

    kind: str
    name: str


class Choices:
    """What rules and patches select by more than names."""

    def __init__(self, classes: Classes, *, defer: bool = False) -> None:
        self.classes = classes
        self._defer = defer
        self._budgets: dict[Owner, CostBudget] = {}
        self._pending: dict[Owner, dict[Content, DeviceTaintSelector]] = {}
        self._exceeded: dict[Owner, dict[Content, DeviceTaintSelector]] = {}
        self._problems: dict[Owner, Choice] = {}
        """The choice for all devices of a rule or patch that exceeded its budget."""
        self._listeners: list[Callable[[Key], None]] = []

    def choose(self, owner: Owner, selector: DeviceTaintSelector, content: Content) -> Choice:
        """Decide whether a selector selects a device whose names match."""
        if not self._defer:
            budget = self._budgets.setdefault(owner, CostBudget())
            return choose_by_content(selector, content, self.classes, budget)
        if content in self._exceeded.get(owner, ()):
            return self._problems[owner]
        try:
            self._compile(selector, CostBudget(per_slice=COMPILATION_LIMIT))
            budget = CostBudget(per_slice=EVALUATION_LIMIT)
            return choose_by_content(selector, content, self.classes, budget)
        except UnfinishedError:
            self._postpone(owner, content, selector)
            return PENDING

    def is_pending(self, device: EffectiveDevice) -> bool:
        """Report whether it is not known yet what selects a device."""
        return bool(self._pending) and any(
            device.content in contents or device.published.content in contents
            for contents in self._pending.values()
        )

    def forget(self, owner: Owner) -> None:
        """Drop the evaluations of a rule or patch: it or its class changed."""
        for by_owner in (self._budgets, self._pending, self._exceeded, self._problems):
            by_owner.pop(owner, None)

    def next(self, owner: Owner, *, again: bool = False) -> Content | None:
        """Return the next content that expressions must be evaluated on, or None.

        With `again`, also one of those that exceeded the budget before.
        """
        content = next(iter(self._pending.get(owner, ())), None)
        if content is None and again:
            content = next(iter(self._exceeded.get(owner, ())), None)
        return content

    def evaluate(self, owner: Owner, content: Content, budget: CostBudget) -> bool:
        """Evaluate expressions on a device; raise UnfinishedError at the end of a slice.

        Returns whether to continue: not once the budget is exceeded.
        """
        pending, exceeded = self._pending.get(owner, {}), self._exceeded.get(owner, {})
        selector = pending.get(content) or exceeded.get(content)
        if selector is None:
            return True
        self._compile(selector, budget)
        choice = choose_by_content(selector, content, self.classes, budget)
        if choice.over_budget:
            self._problems[owner] = choice
            self._exceeded.setdefault(owner, {}).update(self._pending.pop(owner, {}))
            return False
        for contents in (self._pending, self._exceeded):
            contents.get(owner, {}).pop(content, None)
            if not contents.get(owner, True):
                del contents[owner]
        return True

    def exceeds(self, owner: Owner) -> bool:
        """Report whether a rule or patch is too expensive to evaluate immediately."""
        return owner in self._exceeded

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys of rules and patches with pending evaluations to a queue."""

        def handle(owner: Key) -> None:
            for key in to_keys(owner):
                add(key)

        self._listeners.append(handle)
        for owner in self._pending:
            handle(Key(*owner))
        return lambda: self._listeners.remove(handle)

    def _compile(self, selector: DeviceTaintSelector, budget: CostBudget) -> None:
        class_ = self.classes(selector.device_class_name) if selector.device_class_name else None
        with suppress(CostBudgetExceededError):
            compile_all(class_.spec.selectors if class_ is not None else (), budget)
            compile_all(selector.selectors, budget)

    def _postpone(self, owner: Owner, content: Content, selector: DeviceTaintSelector) -> None:
        self._pending.setdefault(owner, {})[content] = selector
        for listener in list(self._listeners):
            listener(Key(*owner))
