"""What every object shares, as frozen values: metadata, owners, conditions.

Writes travel as dicts (decode.py); whoever reads and decides reads these. `null` and absent are the
same on the wire, so an absent value is None here, and a value that was given empty is empty.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of the typed kinds: immutable, camelCase on the wire, zero values left out.

    Fields stand in the order in which Kubernetes writes them, because error texts quote objects.
    What comes from JSON and never changes cannot refer to itself, so the garbage collector need not
    look at it: caches hold such values by the hundred thousand.
    """


class OwnerReference(Wire, frozen=True, kw_only=True):
    """An object this one exists for."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Wire, frozen=True, kw_only=True):
    """Facts every stored object carries."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[Any, ...] = ()

    def controller(self) -> OwnerReference | None:
        """Return the owner that manages the object, if one does."""
        for each in self.owner_references:
            if each.controller:
                return each
        return None


class Condition(Wire, frozen=True, kw_only=True):
    """One aspect of an object's state."""

    type: str
    status: str
    observed_generation: int = 0
    last_transition_time: datetime | None = None
    reason: str
    message: str


class _Typed(Protocol):
    @property
    def type(self) -> str: ...


ConditionT = TypeVar("ConditionT", bound=_Typed)


def find_condition(conditions: Iterable[ConditionT], type_: str) -> ConditionT | None:
    """Return one aspect of an object's state, or None where nothing is said about it."""
    return next((each for each in conditions if each.type == type_), None)
