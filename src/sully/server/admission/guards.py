"""Checks of a write that need the objects and who writes, for all kinds alike.

A guard runs after a kind's own admission, before validation; it refuses by raising. Who has the
right to call an endpoint at all was decided before (authorization/). One that relies on something
besides the object itself adds to `AdmissionAttributes.also` what must hold when the write happens.
"""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from sully.machinery.errors import forbidden
from sully.machinery.strategy import Obj
from sully.server.requests import Request
from sully.store.base import Op


class AdmissionAttributes(msgspec.Struct, frozen=True):
    """A write as it is about to happen, in hub form; never modify the objects."""

    request: Request
    operation: str  # create, update, delete, or connect (a subresource with verbs of its own)
    obj: Obj | None  # None: it is to go
    old: Obj | None  # None: it does not exist yet, or is not part of what is written
    also: list[Op] = msgspec.field(default_factory=list)  # goes into the transaction of an update


class NamespaceLifecycle:
    """Keeps the namespaces that everything else takes for granted."""

    NAMES = frozenset(("default", "kube-public", "kube-system"))

    def check(self, attempt: AdmissionAttributes) -> None:
        """Refuse to delete one of them."""
        target = attempt.request.target
        going = attempt.operation == "delete" and target.resource.storage_key == "namespaces"
        if going and target.name in self.NAMES:
            raise forbidden("namespaces", "", target.name, "this namespace may not be deleted")


class AdmissionPlugin(Protocol):
    """May reject a write."""

    def check(self, attempt: AdmissionAttributes) -> None:
        """Raise the answer if this must not happen."""
        ...


class Recorder(Protocol):
    """Adds records of a change to its transaction."""

    def ops(self, request: Request, old: Obj, new: Obj | None) -> Iterable[Op]:
        """Return what to write besides; without a new object the old one goes."""
        ...
