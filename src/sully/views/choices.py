"""Which devices rules and patches select where expressions decide, without long evaluations.

Devices are merged whenever somebody asks, in the middle of whatever they do. So with `defer` only
what costs next to nothing is evaluated there. The rest is `pending`: it selects nothing, and
`controllers/evaluation.py` evaluates it step by step. What exceeds the budget of its rule or patch
selects nothing either, until another pass gets further: nobody is evicted by an expression that
nobody has evaluated. Without `defer`, as in commands, everything is evaluated immediately, within
the same budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from sully.api.resource.types import DeviceTaintSelector
from sully.client.transport import Key
from sully.domain.devices import EffectiveDevice
from sully.domain.rules import Choice, Classes, choose_by_content
from sully.domain.selectors import Content
from sully.machinery.cel import CostBudget, UnfinishedError

LIGHT: Final = 200
"""Cost units that may be spent on one device while somebody waits: some twenty microseconds."""
PENDING: Final = Choice(selected=False, problem="its expressions are being evaluated")


class Owner(NamedTuple):
    """Whose expressions they are: a rule's or a patch's."""

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
        """What is said of those that exceeded the budget."""
        self._listeners: list[Callable[[Key], None]] = []

    def choose(self, owner: Owner, selector: DeviceTaintSelector, content: Content) -> Choice:
        """Decide whether a selector selects a device whose names are known to fit."""
        if not self._defer:
            budget = self._budgets.setdefault(owner, CostBudget())
            return choose_by_content(selector, content, self.classes, budget)
        if content in self._exceeded.get(owner, ()):
            return self._problems[owner]
        try:
            light = CostBudget(per_slice=LIGHT)
            return choose_by_content(selector, content, self.classes, light)
        except UnfinishedError:
            self._postpone(owner, {content: selector})
            return PENDING

    def is_pending(self, device: EffectiveDevice) -> bool:
        """Say whether it is not known yet what selects a device."""
        return bool(self._pending) and any(
            device.content in contents or device.published.content in contents
            for contents in self._pending.values()
        )

    def forget(self, owner: Owner) -> None:
        """Drop what is to be evaluated for a rule or patch: it changed, or its class did."""
        for known in (self._budgets, self._pending, self._exceeded, self._problems):
            known.pop(owner, None)

    def next(self, owner: Owner) -> Content | None:
        """Return the next device that expressions must be evaluated on; None: there is none."""
        return next(iter(self._pending.get(owner, ())), None)

    def evaluate(self, owner: Owner, content: Content, budget: CostBudget) -> None:
        """Evaluate what is pending for a device; raise UnfinishedError at the end of a slice."""
        selector = self._pending.get(owner, {}).get(content)
        if selector is None:
            return
        choice = choose_by_content(selector, content, self.classes, budget)
        if choice.over_budget:
            self._problems[owner] = choice
            self._exceeded.setdefault(owner, {}).update(self._pending.pop(owner))
            return
        self._done(owner, content)

    def exceeds(self, owner: Owner) -> bool:
        """Say whether a rule or patch is too expensive to evaluate at once."""
        return owner in self._exceeded

    def retry(self, owner: Owner) -> None:
        """Evaluate what exceeded the budget the last time."""
        self._postpone(owner, self._exceeded.pop(owner, {}))

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys of rules and patches that have something to be evaluated to a queue."""

        def handle(owner: Key) -> None:
            for key in to_keys(owner):
                add(key)

        self._listeners.append(handle)
        for owner in self._pending:
            handle(Key(*owner))
        return lambda: self._listeners.remove(handle)

    def _postpone(self, owner: Owner, contents: dict[Content, DeviceTaintSelector]) -> None:
        if not contents:
            return
        self._pending.setdefault(owner, {}).update(contents)
        for listener in list(self._listeners):
            listener(Key(*owner))

    def _done(self, owner: Owner, content: Content) -> None:
        pending = self._pending.get(owner, {})
        pending.pop(content, None)
        if not pending:
            self._pending.pop(owner, None)
