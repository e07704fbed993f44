"""What the status of a rule says about eviction: counts, and their texts.

The texts are Kubernetes' own, because people and programs wait for them; whatever else there is to
say belongs into conditions of other types. The decision itself is in eviction.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sully.domain.taints import NO_EXECUTE, NONE

CONDITION = "EvictionInProgress"

_ONCE = (
    "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What a rule selects, whom it makes leave, and who left."""

    published: int = 0
    """Devices in slices of the newest generation of their pool."""
    allocated: int = 0
    """Allocation results: a device that two claims share counts twice."""
    pods: int = 0
    namespaces: int = 0
    evicted: int = 0
    """Pods that left because of the rule since the controller started."""


@dataclass(frozen=True, slots=True)
class Report:
    """A condition without the times."""

    status: str
    reason: str
    message: str


def count_pods(pods: Iterable[tuple[str, str]]) -> tuple[int, int]:
    """Count pods, given as namespace and name, and the namespaces they are in."""
    different = set(pods)
    return len(different), len({namespace for namespace, _ in different})


def report(effect: str, counts: Counts) -> Report:
    """Say how far the eviction is that a rule with this effect asks for."""
    if effect == NO_EXECUTE:
        return _evicting(counts)
    if effect == NONE:
        return Report("False", "NoEffect", _joined(_preview(counts), counts))
    text = "Eviction only happens for the NoExecute effect."
    return Report("False", "OtherEffect", _joined(text, counts))


def _evicting(counts: Counts) -> Report:
    if counts.pods:
        need = "pod needs" if counts.pods == 1 else "pods need"
        text = f"{counts.pods} {need} to be evicted in {_namespaces(counts.namespaces)}."
        return Report("True", "PodsPendingEviction", _joined(text, counts))
    reason = "Completed" if counts.evicted else "NotStarted"
    return Report("False", reason, _joined("", counts))


def _preview(counts: Counts) -> str:
    return (
        f"{_plural(counts.published, 'published device')} selected."
        f" {_plural(counts.allocated, 'allocated device')} selected."
        f" {_plural(counts.pods, 'pod')} would be evicted in {_namespaces(counts.namespaces)}"
        f" if the effect was NoExecute. {_ONCE}"
    )


def _joined(text: str, counts: Counts) -> str:
    if not counts.evicted:
        return text
    evicted = f"{_plural(counts.evicted, 'pod')} evicted since starting the controller."
    return f"{text} {evicted}" if text else evicted


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _namespaces(number: int) -> str:
    return "1 namespace" if number == 1 else f"{number} different namespaces"
