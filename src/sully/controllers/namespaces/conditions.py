"""What remains in a terminating namespace, and the conditions that report it. Pure.

Types, reasons and messages are those of the Kubernetes namespace controller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from sully.client.transport import Kind
from sully.controllers.framework.kinds import PartialObjectMetadata
from sully.controllers.namespaces.objects import NamespaceCondition

_NO_PROBLEM = (
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    (
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
)
"""All conditions in order, with reason and message if there is no problem."""


class Remainder(msgspec.Struct, frozen=True):
    """What remains after a deletion, by resource and by finalizer, and the failures."""

    resources: Counter[str] = msgspec.field(default_factory=Counter)
    finalizers: Counter[str] = msgspec.field(default_factory=Counter)
    failures: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Report whether the namespace cannot be finalized yet."""
        return bool(self.resources or self.failures)

    def __add__(self, other: Remainder) -> Remainder:
        """Return what remains of two kinds."""
        return Remainder(
            self.resources + other.resources,
            self.finalizers + other.finalizers,
            self.failures + other.failures,
        )


def remainder(kind: Kind[Any], namespace: str, items: Sequence[PartialObjectMetadata]) -> Remainder:
    """Return what remains of a kind after all its objects were deleted.

    Terminating objects wait for a finalizer or their grace period; there should be no others.
    """
    if not items:
        return Remainder()
    failures: tuple[str, ...] = ()
    if not all(item.is_terminating for item in items):
        gvr = f"{kind.group}/{kind.version}, Resource={kind.plural}"
        failures = (f"unexpected items still remain in namespace: {namespace} for gvr: {gvr}",)
    return Remainder(
        Counter({f"{kind.plural}.{kind.group}": len(items)}),
        Counter(name for item in items for name in item.metadata.finalizers),
        failures,
    )


def conditions(
    old: Iterable[NamespaceCondition], remaining: Remainder, *, now: datetime
) -> tuple[NamespaceCondition, ...]:
    """Return all conditions; one whose status is unchanged keeps its transition time."""
    merged = {condition.type: condition for condition in old}
    problems = {problem.type: problem for problem in _problems(remaining)}
    for type_, reason, message in _NO_PROBLEM:
        new = problems.get(type_) or _condition(type_, "False", reason, message)
        before = merged.get(type_)
        same = before is not None and before.status == new.status
        since = before.last_transition_time if before is not None and same else now
        merged[type_] = replace(new, last_transition_time=since)
    return tuple(merged.values())


def _problems(remaining: Remainder) -> Iterator[NamespaceCondition]:
    if remaining.failures:
        listed = ", ".join(sorted(remaining.failures))
        number = len(remaining.failures)
        text = f"Failed to delete all resource types, {number} remaining: {listed}"
        yield _condition("NamespaceDeletionContentFailure", "True", "ContentDeletionFailed", text)
    if remaining.resources:
        text = f"Some resources are remaining: {_counted(remaining.resources, 'has')}"
        yield _condition("NamespaceContentRemaining", "True", "SomeResourcesRemain", text)
    if remaining.finalizers:
        listed = _counted(remaining.finalizers, "in")
        text = f"Some content in the namespace has finalizers remaining: {listed}"
        yield _condition("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", text)


def _counted(counts: Counter[str], word: str) -> str:
    texts = (f"{name} {word} {number} resource instances" for name, number in counts.items())
    return ", ".join(sorted(texts))


def _condition(type_: str, status: str, reason: str, message: str) -> NamespaceCondition:
    return NamespaceCondition(type=type_, status=status, reason=reason, message=message)
