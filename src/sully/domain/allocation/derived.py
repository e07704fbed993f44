"""Attributes that a request works out from those of a device, for its constraints to compare.

They are computed after the selectors, once per expression and content, and seen by nothing but
constraints: two requests may call different things by the same name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from sully.api.resource.types import DeviceAttribute, DeviceDerivedAttribute
from sully.domain.devices.selectors import Content
from sully.machinery.cel import (
    CompileError,
    CostBudget,
    EvaluationError,
    Program,
    Programs,
    Spending,
    device_environment,
)
from sully.machinery.memo import Memo
from sully.machinery.semver import Semver

_MEMBERS: Final = (
    # A truth value is a number to Python, so it must be asked about first.
    (bool, "bool_value", "bools"),
    (int, "int_value", "ints"),
    (str, "string_value", "strings"),
    (Semver, "version_value", "versions"),
)

_MOST_VALUES = 8192
"""Values remembered, for an attempt that evaluates in slices."""


class DerivedError(Exception):
    """An attribute that cannot be worked out."""

    def __init__(self, name: str, phase: str, error: str) -> None:
        super().__init__(error)
        self.name = name
        self.phase = phase
        """`compile` or `runtime`: the first is so for every device."""
        self.error = error


def derive(
    wanted: Sequence[DeviceDerivedAttribute], content: Content, budget: CostBudget
) -> Content:
    """Return a device with derived attributes added; raise DerivedError if one has no value."""
    if not wanted:
        return content
    added = {each.name: _attribute(each, content, budget) for each in wanted}
    attributes: Mapping[str, DeviceAttribute] = {**content.attributes, **added}
    return Content(content.driver, attributes, content.capacity, content.allow_multiple_allocations)


def _attribute(
    wanted: DeviceDerivedAttribute, content: Content, budget: CostBudget
) -> DeviceAttribute:
    program = _programs.get(wanted.expression, budget)
    if isinstance(program, CompileError):
        raise DerivedError(wanted.name, "compile", str(program))
    known = _values.get((program, content))
    if known is None:
        known = budget.run(partial(_evaluate, program, content))
    if isinstance(known, str):
        raise DerivedError(wanted.name, "runtime", known)
    return known


_values: Memo[tuple[Program, Content], DeviceAttribute | str] = Memo(_MOST_VALUES)


def _evaluate(program: Program, content: Content, spending: Spending) -> DeviceAttribute | str:
    found: DeviceAttribute | str
    try:
        found = attribute_of(spending.evaluate(program, content.input(), program.limit)[0])
    except EvaluationError as error:
        found = str(error)
    return _values.keep((program, content), found)


def attribute_of(value: Any) -> DeviceAttribute:
    """Return the result of an expression as an attribute: a scalar, or a list of one kind."""
    several = isinstance(value, list | tuple)
    values = list(value) if several else [value]
    for kind, single, plural in _MEMBERS:
        if values and all(isinstance(each, kind) for each in values):
            plain = [str(each) if kind is Semver else each for each in values]
            return DeviceAttribute(**({plural: tuple(plain)} if several else {single: plain[0]}))
        if kind is bool and any(isinstance(each, bool) for each in values):
            break
    raise EvaluationError("the result is neither a scalar nor a list of scalars of one type")


_programs = Programs(
    partial(device_environment, consumable_capacity=True, list_attributes=True, derived=True)
)
"""Expressions that are stored, so under all gates."""
