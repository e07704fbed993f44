"""Derived attributes: a request computes them from a device, for its constraints.

They are computed after the selectors, once per expression and content, and only constraints see
them: two requests may use the same name for different attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from sully.api.resource.types import DeviceAttribute, DeviceDerivedAttribute
from sully.domain.devices.selectors import Content, Phase
from sully.machinery.cel import (
    CompileError,
    CostBudget,
    EvaluationError,
    NoSuchKeyError,
    Program,
    Programs,
    Spending,
    device_environment,
)
from sully.machinery.formats.semver import Semver
from sully.machinery.memo import Memo

_MEMBERS: Final = (
    # In Python bool is a subclass of int, so it must be checked first.
    (bool, "bool_value", "bools"),
    (int, "int_value", "ints"),
    (str, "string_value", "strings"),
    (Semver, "version_value", "versions"),
)

_MOST_VALUES = 8192
"""Values cached, for an attempt that evaluates in slices."""


class DerivedError(Exception):
    """A derived attribute that cannot be evaluated."""

    def __init__(
        self, name: str, phase: Phase, error: str, *, reads_missing_key: bool = False
    ) -> None:
        super().__init__(error)
        self.name = name
        self.phase: Phase = phase
        """An expression that does not compile fails for every device."""
        self.error = error
        self.reads_missing_key = reads_missing_key


def derive(
    derived: Sequence[DeviceDerivedAttribute], content: Content, budget: CostBudget
) -> Content:
    """Return a device with derived attributes added; raise DerivedError if one has no value."""
    if not derived:
        return content
    added = {attribute.name: _evaluate(attribute, content, budget) for attribute in derived}
    attributes: Mapping[str, DeviceAttribute] = {**content.attributes, **added}
    return Content(content.driver, attributes, content.capacity, content.allow_multiple_allocations)


def _evaluate(
    derived: DeviceDerivedAttribute, content: Content, budget: CostBudget
) -> DeviceAttribute:
    program = _programs.get(derived.expression, budget)
    if isinstance(program, CompileError):
        raise DerivedError(derived.name, "compile", str(program))
    value = _values.get((program, content))
    if value is None:
        value = budget.run(partial(_run, program, content))
    if isinstance(value, EvaluationError):
        missing = isinstance(value, NoSuchKeyError)
        raise DerivedError(derived.name, "runtime", str(value), reads_missing_key=missing)
    return value


_values: Memo[tuple[Program, Content], DeviceAttribute | EvaluationError] = Memo(_MOST_VALUES)


def _run(
    program: Program, content: Content, spending: Spending
) -> DeviceAttribute | EvaluationError:
    value: DeviceAttribute | EvaluationError
    try:
        value = attribute_of(spending.evaluate(program, content.input(), program.limit)[0])
    except EvaluationError as error:
        # Without the frames, which would keep alive what they evaluated.
        value = error.with_traceback(None)
    return _values.keep((program, content), value)


def attribute_of(value: Any) -> DeviceAttribute:
    """Return the result of an expression as an attribute: a scalar, or a list of one kind."""
    several = isinstance(value, list | tuple)
    values = list(value) if several else [value]
    for kind, single, plural in _MEMBERS:
        if values and all(isinstance(item, kind) for item in values):
            plain = [str(item) if kind is Semver else item for item in values]
            return DeviceAttribute(**({plural: tuple(plain)} if several else {single: plain[0]}))
        if kind is bool and any(isinstance(item, bool) for item in values):
            break
    raise EvaluationError("the result is neither a scalar nor a list of scalars of one type")


_programs = Programs(
    partial(device_environment, consumable_capacity=True, list_attributes=True, derived=True)
)
"""Expressions that are stored, so under all gates."""
