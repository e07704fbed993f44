"""Whether CEL selectors match a device: compiled once, evaluated once per content.

Expressions see the `Content` of a device, which is kept with the device, so a result is cached as
long as the attributes do not change. Rules (rules.py), patches (patches.py) and classes call this
and decide what an error means. The caller limits what evaluation may cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import msgspec

from sully.api.resource.types import Device, DeviceAttribute, DeviceCapacity, DeviceSelector
from sully.machinery.cel import (
    CompileError,
    CostBudget,
    DeviceInput,
    EvaluationError,
    NoSuchKeyError,
    Program,
    Programs,
    Spending,
    as_bool,
    device_environment,
)
from sully.machinery.memo import Memo

_MOST_CONTENTS = 8192
"""Contents that devices share; devices keep theirs when it is evicted from this cache."""
_MOST_VERDICTS = 1024
"""Expressions cached per content; a content may live as long as the process."""
_MOST_INPUTS = 1024
"""Contents that are prepared for expressions; each takes a kilobyte."""


Phase = Literal["compile", "runtime"]


class DeviceSelectorError(Exception):
    """A selector that cannot be evaluated for a device."""

    def __init__(
        self, index: int, phase: Phase, error: str, missing_key: str | None = None
    ) -> None:
        super().__init__(f"selector #{index}: {phase} error: {error}")
        self.index = index
        self.phase: Phase = phase
        """An expression that does not compile fails for every device."""
        self.error = error
        self.missing_key = missing_key
        """The attribute, capacity or other key that it reads and that is not there."""


class EvaluationFailure(msgspec.Struct, frozen=True):
    """Why an expression has no result for a device."""

    message: str
    missing_key: str | None = None


def _no_verdicts() -> Memo[str, bool | EvaluationFailure]:
    return Memo(_MOST_VERDICTS)


@dataclass(slots=True, eq=False)
class Content:
    """What expressions see of one device, with their cached results.

    The cache is not part of the value.
    """

    driver: str
    attributes: Mapping[str, DeviceAttribute]
    capacity: Mapping[str, DeviceCapacity]
    allow_multiple_allocations: bool | None = None
    _verdicts: Memo[str, bool | EvaluationFailure] = field(default_factory=_no_verdicts, repr=False)

    def same_as(self, other: Content) -> bool:
        """Report whether every expression has the same result for both."""
        return (
            self.driver == other.driver
            and self.attributes == other.attributes
            and self.capacity == other.capacity
            and self.allow_multiple_allocations == other.allow_multiple_allocations
        )

    def verdict(self, program: Program, budget: CostBudget) -> bool | EvaluationFailure:
        """Return whether an expression matches, or why that is unknown."""
        verdict = self._verdicts.get(program.expression)
        if verdict is None:
            verdict = budget.run(partial(self._evaluate, program))
        return verdict

    def _evaluate(self, program: Program, spending: Spending) -> bool | EvaluationFailure:
        verdict: bool | EvaluationFailure
        try:
            device = _inputs.get(self) or _inputs.keep(self, self.input())
            verdict = as_bool(spending.evaluate(program, device, program.limit)[0])
        except EvaluationError as error:
            missing = error.key if isinstance(error, NoSuchKeyError) else None
            verdict = EvaluationFailure(str(error), missing)
        return self._verdicts.keep(program.expression, verdict)

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
    """Return the content that all equal devices share.

    Most devices of a fleet equal many others, so an expression is evaluated once for all of them.
    """
    values = tuple(attributes.items()), tuple(capacity.items())
    key = driver, *values, allow_multiple_allocations
    content = _contents.get(key)
    if content is None:
        content = Content(driver, attributes, capacity, allow_multiple_allocations)
        _contents.keep(key, content)
    return content


def matches(selectors: Iterable[DeviceSelector], content: Content, budget: CostBudget) -> bool:
    """Report whether all selectors match a device; raise SelectorError where one fails."""
    return mismatch(selectors, content, budget) is None


def mismatch(
    selectors: Iterable[DeviceSelector], content: Content, budget: CostBudget
) -> int | None:
    """Return the index of the first selector that does not match a device; None if all do.

    Those after it are not evaluated. Raises SelectorError if one cannot be evaluated, and what the
    budget raises.
    """
    for index, selector in enumerate(selectors):
        expression = selector.cel.expression if selector.cel is not None else ""
        program = _programs.get(expression, budget)
        if isinstance(program, CompileError):
            raise DeviceSelectorError(index, "compile", str(program))
        verdict = content.verdict(program, budget)
        if isinstance(verdict, EvaluationFailure):
            raise DeviceSelectorError(index, "runtime", verdict.message, verdict.missing_key)
        if not verdict:
            return index
    return None


def compile_all(selectors: Iterable[DeviceSelector], budget: CostBudget) -> None:
    """Compile selectors before they are evaluated; raise what the budget raises."""
    for selector in selectors:
        if selector.cel is not None:
            _programs.get(selector.cel.expression, budget)


_programs = Programs(partial(device_environment, consumable_capacity=True, list_attributes=True))
"""Stored expressions, so with all feature gates on."""
