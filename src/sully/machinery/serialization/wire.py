"""The base of every typed object, and what generated types can do.

Writes travel as dicts (decode.py); readers and decisions use these. `null` and absent are the
same on the wire, so an absent value is None here, and a value that was given empty is empty.
"""

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from sully.machinery.meta import OwnerReference


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of the typed kinds: immutable, camelCase on the wire, zero values left out.

    Fields stand in the order in which Kubernetes writes them, because error texts quote objects.
    What comes from JSON and never changes cannot refer to itself, so the garbage collector need not
    look at it: caches hold such values by the hundred thousand.
    """


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
