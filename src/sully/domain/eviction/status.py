"""What the status of a rule reports about eviction: counts, and their texts.

The texts of `EvictionInProgress` are those of Kubernetes, because people and programs wait for
them; everything else is in conditions of our own, here and in preview.py. The decision is in
judge.py.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

import msgspec

from sully.domain.devices.taints import NONE
from sully.domain.eviction.judge import DEFAULT_POLICY
from sully.machinery.formats.integers import parse_natural
from sully.machinery.formats.plurals import number_of
from sully.machinery.meta import Condition

EVICTION_IN_PROGRESS = "EvictionInProgress"
EVICTED = "sully.dev/Evicted"
PAUSED = "sully.dev/Paused"
PREVIEW = "sully.dev/Preview"
SELECTOR_PROBLEM = "sully.dev/SelectorProblem"
OURS = (EVICTED, PAUSED, SELECTOR_PROBLEM, PREVIEW)
"""The conditions that Kubernetes does not have, the more important ones first."""

REASON_MAX = 1024
"""An annotation may be longer than a condition."""

_SINCE = " evicted since starting the controller."
_ONCE = (
    "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The devices that a rule selects, the pods that it will evict, and those that it evicted."""

    published: int = 0
    """Devices in slices of the newest generation of their pool."""
    allocated: int = 0
    """Allocation results: a device that two claims share counts twice."""
    pods: int = 0
    namespaces: int = 0
    evicted: int = 0
    """Pods evicted by the rule since the controller started."""


class Report(msgspec.Struct, frozen=True):
    """A condition without the times."""

    status: str
    reason: str
    message: str


class EvictedCount(msgspec.Struct, frozen=True):
    """How many pods a rule evicted, as far as that was counted."""

    count: int
    complete: bool
    """False: the evictor counts only since it started, so there may have been more."""
    ours: bool = False
    """The evictor is Sully's, which records evictions; that of Kubernetes reports them late."""

    def at_least(self, terminating: int) -> int:
        """Return the count where so many evicted pods are terminating."""
        return self.count if self.ours else max(self.count, terminating)


class KubernetesCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of pods in the message of `EvictionInProgress`."""

    pending: int = 0
    """Pods that have yet to be evicted."""
    since_start: int = 0
    """Pods evicted since the controller that evicts was started."""


def evicted_count(
    conditions: Iterable[Condition], recorded: int = 0, *, has_records: bool = True
) -> EvictedCount:
    """Return how many pods a rule evicted: what is recorded, if Sully's evictor does it.

    `has_records`: the evictor writes records. Only for an evictor that writes none the count is
    read from a condition. Kubernetes writes that up to ten seconds late, so until it reports a
    number, none is known.
    """
    conditions = tuple(conditions)
    ours = any(condition.type == EVICTED for condition in conditions)
    if ours and has_records:
        return EvictedCount(recorded, complete=True, ours=True)
    unrecorded = parse_kubernetes_message(conditions).since_start
    complete = ours or (has_records and not unrecorded)
    return EvictedCount(max(recorded, unrecorded), complete, ours)


def parse_kubernetes_message(conditions: Iterable[Condition]) -> KubernetesCounts:
    """Read the numbers of pods from the message of Kubernetes' condition `EvictionInProgress`.

    No field has them, and the evictor of Kubernetes writes no records. Nothing else reads a number
    from a message. Whether pods are pending is in the status, so their number is only shown.
    """
    progress = next(
        (condition for condition in conditions if condition.type == EVICTION_IN_PROGRESS), None
    )
    if progress is None:
        return KubernetesCounts()
    before, separator, _ = progress.message.partition(_SINCE)
    return KubernetesCounts(
        pending=max(1, _first_number(progress.message)) if progress.status == "True" else 0,
        since_start=_first_number(" ".join(before.split()[-2:])) if separator else 0,
    )


def _first_number(message: str) -> int:
    number = message.partition(" ")[0]
    return parse_natural(number) or 0


def count_pods(pods: Iterable[tuple[str, str]]) -> tuple[int, int]:
    """Count pods, by namespace and name, and the namespaces they are in."""
    different = set(pods)
    return len(different), len({namespace for namespace, _ in different})


def report(effect: str, counts: Counts, effects: Container[str] = DEFAULT_POLICY.effects) -> Report:
    """Report the progress of the eviction by a rule with this effect, if it is one of `effects`."""
    if effect in effects:
        return _evicting(counts)
    if effect == NONE:
        return Report("False", "NoEffect", _joined(_preview(counts), counts))
    text = "Eviction only happens for the NoExecute effect."
    return Report("False", "OtherEffect", _joined(text, counts))


def evicted(number: int) -> Report | None:
    """Report how many pods a rule ever evicted."""
    if not number:
        return None
    return Report("True", "PodsEvicted", f"{number_of(number, 'pod')} evicted.")


def paused(reason: str | None) -> Report | None:
    """Report that a rule currently evicts no pod, and why, as its author wrote."""
    if reason is None:
        return None
    text = "No pod is evicted while the annotation sully.dev/paused is set."
    return Report("True", "Paused", text if reason == "true" else reason[:REASON_MAX])


def _evicting(counts: Counts) -> Report:
    if counts.pods:
        need = "pod needs" if counts.pods == 1 else "pods need"
        text = f"{counts.pods} {need} to be evicted in {_namespaces(counts.namespaces)}."
        return Report("True", "PodsPendingEviction", _joined(text, counts))
    reason = "Completed" if counts.evicted else "NotStarted"
    return Report("False", reason, _joined("", counts))


def _preview(counts: Counts) -> str:
    return (
        f"{number_of(counts.published, 'published device')} selected."
        f" {number_of(counts.allocated, 'allocated device')} selected."
        f" {number_of(counts.pods, 'pod')} would be evicted in {_namespaces(counts.namespaces)}"
        f" if the effect was NoExecute. {_ONCE}"
    )


def _joined(text: str, counts: Counts) -> str:
    if not counts.evicted:
        return text
    evicted = f"{number_of(counts.evicted, 'pod')}{_SINCE}"
    return f"{text} {evicted}" if text else evicted


def _namespaces(number: int) -> str:
    return "1 namespace" if number == 1 else f"{number} different namespaces"
