"""What is left in a namespace that should be empty, and how its status says so. Pure.

Types, reasons and messages are those of the Kubernetes namespace controller: people search for
them when a namespace does not go away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sully.client.transport import Kind
from sully.controllers.kinds import Item

Condition = dict[str, Any]

_FINE = (
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
"""All conditions in order, with what they say when there is no problem."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """What a round of deleting left, by resource and by finalizer, and what went wrong."""

    resources: Counter[str] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    failures: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Report whether the namespace must wait."""
        return bool(self.resources or self.failures)

    def __add__(self, other: Remainder) -> Remainder:
        """Return what two kinds left."""
        return Remainder(
            self.resources + other.resources,
            self.finalizers + other.finalizers,
            self.failures + other.failures,
        )


def remainder(kind: Kind[Any], namespace: str, items: Sequence[Item]) -> Remainder:
    """Sum up the objects of a kind that are there after all of them were deleted.

    What is marked for deletion waits for a finalizer or its grace period; what is not should not
    be there at all.
    """
    if not items:
        return Remainder()
    failures: tuple[str, ...] = ()
    if not all(item.is_terminating for item in items):
        place = f"{kind.group}/{kind.version}, Resource={kind.plural}"
        failures = (f"unexpected items still remain in namespace: {namespace} for gvr: {place}",)
    return Remainder(
        Counter({f"{kind.plural}.{kind.group}": len(items)}),
        Counter(name for item in items for name in item.metadata.finalizers),
        failures,
    )


def conditions(old: Iterable[Condition], left: Remainder, *, now: str) -> list[Condition]:
    """Return all conditions for what is left; what did not change keeps its transition time."""
    found = {condition["type"]: condition for condition in old}
    problems = {problem["type"]: problem for problem in _problems(left)}
    for type_, reason, message in _FINE:
        fine = {"type": type_, "status": "False", "reason": reason, "message": message}
        new, before = problems.get(type_, fine), found.get(type_, {})
        same = before.get("status") == new["status"]
        since = before.get("lastTransitionTime", now) if same else now
        found[type_] = new | {"lastTransitionTime": since}
    return list(found.values())


def _problems(left: Remainder) -> Iterator[Condition]:
    if left.failures:
        listed = ", ".join(sorted(left.failures))
        number = len(left.failures)
        text = f"Failed to delete all resource types, {number} remaining: {listed}"
        yield _problem("NamespaceDeletionContentFailure", "ContentDeletionFailed", text)
    if left.resources:
        text = f"Some resources are remaining: {_counted(left.resources, 'has')}"
        yield _problem("NamespaceContentRemaining", "SomeResourcesRemain", text)
    if left.finalizers:
        listed = _counted(left.finalizers, "in")
        text = f"Some content in the namespace has finalizers remaining: {listed}"
        yield _problem("NamespaceFinalizersRemaining", "SomeFinalizersRemain", text)


def _counted(found: Counter[str], word: str) -> str:
    texts = (f"{name} {word} {number} resource instances" for name, number in found.items())
    return ", ".join(sorted(texts))


def _problem(type_: str, reason: str, message: str) -> Condition:
    return {"type": type_, "status": "True", "reason": reason, "message": message}
