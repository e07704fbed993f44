"""What every object has, as frozen values: metadata, owners, conditions, selectors.

The types are generated from the table of the meta package (api/meta/meta.fields).
"""

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

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
    "TrackedMeta",
    "Wire",
    "find_condition",
    "owner_in_order",
]

_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


class ObjectIdentity(Wire, frozen=True, kw_only=True):
    """The metadata that every reader of objects needs, as a base for more specific metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class TrackedMeta(ObjectMeta, frozen=True, kw_only=True):
    """Metadata with the owners of fields, for the few kinds whose readers need them."""

    managed_fields: tuple[Any, ...] = ()


class _Typed(Protocol):
    @property
    def type(self) -> str: ...


class _WithStatus(_Typed, Protocol):
    @property
    def status(self) -> str: ...


ConditionT = TypeVar("ConditionT", bound=_Typed)


def is_condition_true(conditions: Iterable[_WithStatus], type_: str) -> bool:
    """Report whether the condition of a type is there and True."""
    condition = find_condition(conditions, type_)
    return condition is not None and condition.status == "True"


def find_condition(conditions: Iterable[ConditionT], type_: str) -> ConditionT | None:
    """Return the condition of a type, or None."""
    return next((condition for condition in conditions if condition.type == type_), None)


def owner_in_order(owner: dict[str, Any]) -> dict[str, Any]:
    """Return an owner reference with its fields in the order in which error texts quote them."""
    return {name: owner[name] for name in _OWNER_FIELDS if name in owner}
