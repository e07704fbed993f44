"""Do CEL selectors match a device: compiled once, asked once per content.

What an expression sees of a device is its `Content`. Whoever keeps devices keeps their contents,
so that a verdict lasts as long as the attributes it was made from. Rules (rules.py), patches
(patches.py) and classes ask here; what an error means is theirs to say. Whoever asks says what new
verdicts may cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from sully.api.resource.types import Device, DeviceAttribute, DeviceCapacity, DeviceSelector
from sully.machinery.cel import (
    CompileError,
    CostBudget,
    DeviceInput,
    EvaluationError,
    Program,
    Programs,
    Spending,
    as_bool,
    device_environment,
)
from sully.machinery.memo import Memo

_MOST_CONTENTS = 8192
"""Looks that are recognised; devices whose look was forgotten keep their content."""
_MOST_VERDICTS = 1024
"""Expressions remembered per content; a content may last as long as the process."""
_MOST_INPUTS = 1024
"""Contents that are ready for the next expression; each weighs a kilobyte."""


class SelectorError(Exception):
    """A selector that cannot be evaluated for a device."""

    def __init__(self, index: int, phase: str, error: str) -> None:
        super().__init__(f"selector #{index}: {phase} error: {error}")
        self.index = index
        self.phase = phase
        """`compile` or `runtime`: the first is so for every device."""
        self.error = error


def _no_verdicts() -> Memo[str, bool | str]:
    return Memo(_MOST_VERDICTS)


@dataclass(slots=True, eq=False)
class Content:
    """What expressions see of one device, with the verdicts they came to.

    The memory is no part of the value: it only saves asking again.
    """

    driver: str
    attributes: Mapping[str, DeviceAttribute]
    capacity: Mapping[str, DeviceCapacity]
    allow_multiple_allocations: bool | None = None
    _verdicts: Memo[str, bool | str] = field(default_factory=_no_verdicts, repr=False)

    def same_as(self, other: Content) -> bool:
        """Report whether every expression must come to the same verdict on both."""
        return (
            self.driver == other.driver
            and self.attributes == other.attributes
            and self.capacity == other.capacity
            and self.allow_multiple_allocations == other.allow_multiple_allocations
        )

    def verdict(self, program: Program, budget: CostBudget) -> bool | str:
        """Return whether an expression matches, or the text of its failure."""
        found = self._verdicts.get(program.expression)
        if found is None:
            found = budget.run(partial(self._judge, program))
        return found

    def _judge(self, program: Program, spending: Spending) -> bool | str:
        found: bool | str
        try:
            seen = _inputs.get(self) or _inputs.keep(self, self.input())
            found = as_bool(spending.evaluate(program, seen, program.limit)[0])
        except EvaluationError as error:
            found = str(error)
        return self._verdicts.keep(program.expression, found)

    def input(self) -> DeviceInput:
        """Return what expressions are evaluated on; raise EvaluationError if they cannot be."""
        return DeviceInput(
            self.driver,
            self.attributes,
            self.capacity,
            allow_multiple_allocations=self.allow_multiple_allocations,
        )


_inputs: Memo[Content, DeviceInput] = Memo(_MOST_INPUTS)
_contents: Memo[tuple[object, ...], Content] = Memo(_MOST_CONTENTS)


def content_of(driver: str, device: Device) -> Content:
    """Return what expressions see of a device as it was published."""
    return shared(driver, device.attributes, device.capacity, device.allow_multiple_allocations)


def shared(
    driver: str,
    attributes: Mapping[str, DeviceAttribute],
    capacity: Mapping[str, DeviceCapacity],
    allow_multiple_allocations: bool | None = None,
) -> Content:
    """Return the content that all devices have which look like this.

    Most devices of a fleet look like many others, so an expression is asked once for all of them.
    """
    looks = tuple(attributes.items()), tuple(capacity.items())
    key = driver, *looks, allow_multiple_allocations
    found = _contents.get(key)
    if found is None:
        found = Content(driver, attributes, capacity, allow_multiple_allocations)
        _contents.keep(key, found)
    return found


def matches(selectors: Iterable[DeviceSelector], content: Content, budget: CostBudget) -> bool:
    """Report whether all selectors match a device; raise SelectorError where one fails."""
    return mismatch(selectors, content, budget) is None


def mismatch(
    selectors: Iterable[DeviceSelector], content: Content, budget: CostBudget
) -> int | None:
    """Return the place of the first selector that does not match a device; None if all do.

    Those after it are not asked. Raises SelectorError if one cannot be evaluated, and what the
    budget raises.
    """
    for index, selector in enumerate(selectors):
        expression = selector.cel.expression if selector.cel is not None else ""
        program = _programs.get(expression, budget)
        if isinstance(program, CompileError):
            raise SelectorError(index, "compile", str(program))
        verdict = content.verdict(program, budget)
        if isinstance(verdict, str):
            raise SelectorError(index, "runtime", verdict)
        if not verdict:
            return index
    return None


def compile_all(selectors: Iterable[DeviceSelector], budget: CostBudget) -> None:
    """Compile selectors before they are asked; raise what the budget raises."""
    for selector in selectors:
        if selector.cel is not None:
            _programs.get(selector.cel.expression, budget)


_programs = Programs(partial(device_environment, consumable_capacity=True, list_attributes=True))
"""Expressions that are stored, so under all gates."""
