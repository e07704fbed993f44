"""What the status of a rule says about eviction: counts, and their texts.

The texts of `EvictionInProgress` are Kubernetes' own, because people and programs wait for them;
whatever else there is to say stands in conditions of our own, here and in preview.py. The decision
itself is in eviction.py.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from sully.domain.devices.taints import NONE
from sully.domain.eviction.judge import DEFAULT_POLICY
from sully.machinery.meta import Condition

CONDITION = "EvictionInProgress"
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


@dataclass(frozen=True, slots=True)
class Tally:
    """How many pods left because of a rule, as far as anybody counted."""

    count: int
    complete: bool
    """False: whoever evicts counts only since it started, so there may have been more."""
    ours: bool = False
    """Sully's evictor says so, and at once; Kubernetes' own is up to ten seconds late."""

    def at_least(self, number: int) -> int:
        """Return the count, where so many are seen on their way out."""
        return self.count if self.ours else max(self.count, number)


def tally(conditions: Iterable[Condition], recorded: int = 0, *, kept: bool = True) -> Tally:
    """Put together what the status of a rule and its record say; `kept`: there are records.

    Our evictor says in a condition of its own how many ever left, or has nothing to say. One that
    counts in Kubernetes' own words alone is not ours, and forgets.
    """
    found = {each.type: each.message for each in conditions}
    ours, theirs = evicted_before(found.get(EVICTED, "")), since_start(found.get(CONDITION, ""))
    said = EVICTED in found
    return Tally(max(recorded, ours, theirs), said or (kept and not theirs), said)


def since_start(message: str) -> int:
    """Read how many pods left since the controller started, from what `report` said."""
    before, found, _ = message.partition(_SINCE)
    number = before.split()[-2:-1]
    return int(number[0]) if found and number and number[0].isdecimal() else 0


def count_pods(pods: Iterable[tuple[str, str]]) -> tuple[int, int]:
    """Count pods, given as namespace and name, and the namespaces they are in."""
    different = set(pods)
    return len(different), len({namespace for namespace, _ in different})


def report(effect: str, counts: Counts, effects: Container[str] = DEFAULT_POLICY.effects) -> Report:
    """Say how far the eviction is that a rule with this effect asks for, if it is one of those."""
    if effect in effects:
        return _evicting(counts)
    if effect == NONE:
        return Report("False", "NoEffect", _joined(_preview(counts), counts))
    text = "Eviction only happens for the NoExecute effect."
    return Report("False", "OtherEffect", _joined(text, counts))


def evicted(number: int) -> Report | None:
    """Say how many pods ever left because of a rule."""
    if not number:
        return None
    return Report("True", "PodsEvicted", f"{plural(number, 'pod')} evicted.")


def evicted_before(message: str) -> int:
    """Read how many pods had left, from what `evicted` said."""
    number = message.partition(" ")[0]
    return int(number) if number.isdecimal() else 0


def paused(reason: str | None) -> Report | None:
    """Say that a rule evicts nobody for now, and why, as its author put it."""
    if reason is None:
        return None
    text = "Nobody is evicted while the annotation sully.dev/paused is there."
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
        f"{plural(counts.published, 'published device')} selected."
        f" {plural(counts.allocated, 'allocated device')} selected."
        f" {plural(counts.pods, 'pod')} would be evicted in {_namespaces(counts.namespaces)}"
        f" if the effect was NoExecute. {_ONCE}"
    )


def _joined(text: str, counts: Counts) -> str:
    if not counts.evicted:
        return text
    evicted = f"{plural(counts.evicted, 'pod')}{_SINCE}"
    return f"{text} {evicted}" if text else evicted


def plural(number: int, noun: str) -> str:
    """Write a number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _namespaces(number: int) -> str:
    return "1 namespace" if number == 1 else f"{number} different namespaces"
