"""What remains in a terminating namespace, and the conditions that report it. Pure.

Types, reasons and messages are those of the Kubernetes namespace controller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from sully.client.transport import Kind
from sully.controllers.framework.kinds import PartialObjectMetadata

Condition = dict[str, Any]

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


def conditions(old: Iterable[Condition], remaining: Remainder, *, now: str) -> list[Condition]:
    """Return all conditions; one whose status is unchanged keeps its transition time."""
    merged = {condition["type"]: condition for condition in old}
    problems = {problem["type"]: problem for problem in _problems(remaining)}
    for type_, reason, message in _NO_PROBLEM:
        no_problem = {"type": type_, "status": "False", "reason": reason, "message": message}
        new, before = problems.get(type_, no_problem), merged.get(type_, {})
        same = before.get("status") == new["status"]
        since = before.get("lastTransitionTime", now) if same else now
        merged[type_] = new | {"lastTransitionTime": since}
    return list(merged.values())


def _problems(remaining: Remainder) -> Iterator[Condition]:
    if remaining.failures:
        listed = ", ".join(sorted(remaining.failures))
        number = len(remaining.failures)
        text = f"Failed to delete all resource types, {number} remaining: {listed}"
        yield _problem("NamespaceDeletionContentFailure", "ContentDeletionFailed", text)
    if remaining.resources:
        text = f"Some resources are remaining: {_counted(remaining.resources, 'has')}"
        yield _problem("NamespaceContentRemaining", "SomeResourcesRemain", text)
    if remaining.finalizers:
        listed = _counted(remaining.finalizers, "in")
        text = f"Some content in the namespace has finalizers remaining: {listed}"
        yield _problem("NamespaceFinalizersRemaining", "SomeFinalizersRemain", text)


def _counted(counts: Counter[str], word: str) -> str:
    texts = (f"{name} {word} {number} resource instances" for name, number in counts.items())
    return ", ".join(sorted(texts))


def _problem(type_: str, reason: str, message: str) -> Condition:
    return {"type": type_, "status": "True", "reason": reason, "message": message}
