"""What every object has, as frozen values: metadata, owners, conditions, selectors.

The types are generated from the table of the meta package (api/meta/meta.fields).
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from sully.machinery._generated.meta import (
    Condition,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    OwnerReference,
)
from sully.machinery.serialization.wire import HasController, Wire

__all__ = [
    "Condition",
    "HasController",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ObjectIdentity",
    "ObjectMeta",
    "OwnerReference",
    "Wire",
    "find_condition",
]


class ObjectIdentity(Wire, frozen=True, kw_only=True):
    """The metadata that every reader of objects needs, as a base for more specific metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Typed(Protocol):
    @property
    def type(self) -> str: ...


ConditionT = TypeVar("ConditionT", bound=_Typed)


def find_condition(conditions: Iterable[ConditionT], type_: str) -> ConditionT | None:
    """Return the condition of a type, or None."""
    return next((condition for condition in conditions if condition.type == type_), None)
