"""Validating admission plugins: checks of a write that need other objects or the user.

A plugin runs after a kind's own admission, before validation; it rejects by raising. The request
was authorized before (authorization/). A plugin that relies on other objects adds to
`AdmissionAttributes.also` what must hold when the write is committed.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from sully.api.core.pods.creation.priorities import SYSTEM_PRIORITIES
from sully.machinery.errors import forbidden
from sully.machinery.fields import FieldError
from sully.machinery.memo import Memo
from sully.machinery.strategy import Obj
from sully.server.requests import Request, Target
from sully.store.base import Op

_MAX_HANDLERS = 8192
"""Operations on resources and subresources; definitions add some."""


class AdmissionAttributes(msgspec.Struct, frozen=True):
    """A write as it is about to happen, in stored form; never modify the objects."""

    request: Request
    operation: str  # create, update, delete, or connect (a subresource with verbs of its own)
    obj: Obj | None  # None: a deletion
    old: Obj | None  # None: a creation, or a subresource
    # Added to the transaction of an update.
    extra_ops: list[Op] = msgspec.field(default_factory=list)
    # Reported with what else is invalid.
    problems: list[FieldError] = msgspec.field(default_factory=list)


class NamespaceLifecycle:
    """Protects the system namespaces, as the plugin of that name."""

    NAMES = frozenset(("default", "kube-public", "kube-system"))

    def handles(self, target: Target, operation: str) -> bool:
        """Report whether the plugin checks an operation on a resource."""
        return operation == "delete" and target.resource.storage_key == "namespaces"

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject the deletion of a system namespace."""
        target = attributes.request.target
        if target.name in self.NAMES:
            raise forbidden("namespaces", "", target.name, "this namespace may not be deleted")


class SystemPriorityClasses:
    """Protects the classes that the system needs."""

    def handles(self, target: Target, operation: str) -> bool:
        """Report whether the plugin checks an operation on a resource."""
        return operation == "delete" and target.resource.plural == "priorityclasses"

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject the deletion of a class of the system."""
        target = attributes.request.target
        if target.name in SYSTEM_PRIORITIES:
            text = "this is a system priority class and cannot be deleted"
            raise forbidden(target.resource.plural, target.resource.group, target.name, text)


class PolicyReviewer(Protocol):
    """Applies policies to a write that is valid."""

    def review(
        self, request: Request, operation: str, obj: Obj | None, old: Obj | None = None
    ) -> list[str]:
        """Return warnings for the client; raise an ApiError to reject the write."""
        ...


class AdmissionPlugin(Protocol):
    """May reject a write."""

    def handles(self, target: Target, operation: str) -> bool:
        """Report whether the plugin checks an operation on a resource, whatever its name."""
        ...

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Raise an ApiError to reject the write."""
        ...


class AdmissionChain:
    """The plugins, in order."""

    def __init__(self, plugins: Sequence[AdmissionPlugin] = ()) -> None:
        self.plugins = plugins
        self._handlers: Memo[tuple[str, ...], tuple[AdmissionPlugin, ...]] = Memo(_MAX_HANDLERS)

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Ask the plugins that handle a write; raise an ApiError to reject it."""
        target, operation = attributes.request.target, attributes.operation
        resource = target.resource
        key = (operation, resource.group, resource.plural, target.subresource)
        handlers = self._handlers.get(key)
        if handlers is None:
            handlers = tuple(one for one in self.plugins if one.handles(target, operation))
            self._handlers.keep(key, handlers)
        for plugin in handlers:
            plugin.validate(attributes)


class Recorder(Protocol):
    """Adds records of a change to its transaction."""

    def ops(self, request: Request, old: Obj, new: Obj | None) -> Iterable[Op]:
        """Return further operations; without a new object the old one is deleted."""
        ...
