"""The base of every typed object, and what generated types can do.

Writes travel as dicts (decode.py); readers and decisions use these. `null` and absent are the
same on the wire, so an absent value is None here, and a value that was set to empty is empty.
"""

from copy import copy
from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

if TYPE_CHECKING:
    from sully.machinery.meta import OwnerReference


T = TypeVar("T")


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of the typed kinds: immutable, camelCase on the wire, zero values left out.

    Fields stand in the order in which Kubernetes writes them, because error texts quote objects.
    What comes from JSON and never changes cannot refer to itself, so the garbage collector need not
    look at it: caches hold such values by the hundred thousand.
    """


def share(obj: Wire, *fields: str) -> None:
    """Use one string or tuple for the equal values that these fields have in many objects.

    For `__post_init__`. A cache of pods has thousands that only differ in their names.
    """
    for field in fields:
        value = getattr(obj, field)
        if value:
            first = intern(value) if isinstance(value, str) else _first_equal(value)
            msgspec.structs.force_setattr(obj, field, first)


def amended(obj: T, **changes: Any) -> T:
    """Return a copy with other values, as `msgspec.structs.replace` does.

    It does not look again for equal values to `share`: what is copied is shared already. That makes
    it five times as fast for metadata and specs of pods, of which a plan makes several per pod.
    """
    new: Any = copy(obj)
    for field, value in changes.items():
        msgspec.structs.force_setattr(new, field, value)
    return cast("T", new)


@lru_cache(maxsize=1024)
def _first_equal(value: T) -> T:
    return value


class HasController(Wire, frozen=True, kw_only=True):
    """Metadata with owner references, one of which may be the controller."""

    if TYPE_CHECKING:

        @property
        def owner_references(self) -> "tuple[OwnerReference, ...]": ...

    def controller(self) -> "OwnerReference | None":
        """Return the owner that manages the object, if there is one."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None

    def is_controlled_by(self, uid: str) -> bool:
        """Report whether the owner with this uid manages the object, as metav1.IsControlledBy."""
        owner = self.controller()
        return owner is not None and owner.uid == uid
