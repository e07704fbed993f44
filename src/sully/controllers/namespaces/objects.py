"""Namespaces with all their fields, because their status and finalizers are written back."""

from __future__ import annotations

from datetime import datetime

from sully.client.transport import Kind
from sully.controllers.framework.kinds import NAMESPACES
from sully.machinery.meta import ObjectMeta, Wire


class NamespaceSpec(Wire, frozen=True, kw_only=True):
    """What must happen before a namespace may disappear."""

    finalizers: tuple[str, ...] = ()


class NamespaceCondition(Wire, frozen=True, kw_only=True):
    """One aspect of the removal of a namespace."""

    type: str
    status: str
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class NamespaceStatus(Wire, frozen=True, kw_only=True):
    """How far a namespace is in its life."""

    phase: str = ""
    conditions: tuple[NamespaceCondition, ...] = ()


class WholeNamespace(Wire, frozen=True, kw_only=True):
    """A namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


WHOLE_NAMESPACES: Kind[WholeNamespace] = NAMESPACES.read_as(WholeNamespace)
