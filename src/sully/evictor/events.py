"""What the evictor is told: changes of the cluster, and the answers to its effects.

`controllers/eviction` sends them as its caches and the API report them, `planning/evicting.py` as
its copy of the cluster changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sully.client.transport import Key
from sully.domain.workloads.workloads import Budget

# -- changes --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PodChanged:
    """A pod, its claims, or the taints on its devices may have changed."""

    key: Key


@dataclass(frozen=True, slots=True)
class Requeued:
    """A `Requeue` or `RequeueAt` of the evictor is due, and nothing else is known to be new."""

    key: Key


@dataclass(frozen=True, slots=True)
class BudgetChanged:
    """A PodDisruptionBudget was added, changed or deleted."""

    old: Budget | None
    new: Budget | None


@dataclass(frozen=True, slots=True)
class CacheConfirmed:
    """The server has confirmed a cache, by its number."""

    cache: int


# -- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PodRead:
    """The answer to `ReadPod`."""

    key: Key
    terminating: bool = False
    marked: bool = False
    """It has the condition DisruptionTarget already."""
    ready: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EvictionAllowed:
    """The answer to `TryEviction`: the budgets of the pod allow its eviction."""

    key: Key


@dataclass(frozen=True, slots=True)
class EvictionRefused:
    """The answer to `TryEviction` or `EvictPod`: a budget does not allow it now."""

    key: Key
    labels: Mapping[str, str]
    ready: bool | None
    """None under several budgets: none of them can allow it, however many disruptions it allows."""


@dataclass(frozen=True, slots=True)
class EvictionRecorded:
    """The answer to `RecordEviction`."""

    key: Key


@dataclass(frozen=True, slots=True)
class RecordWithdrawn:
    """The answer to `WithdrawRecord`."""

    key: Key
    uid: str


@dataclass(frozen=True, slots=True)
class PodMarked:
    """The answer to `MarkPod`."""

    key: Key


@dataclass(frozen=True, slots=True)
class PodDeleted:
    """The answer to `DeletePod` and `EvictPod`."""

    key: Key


@dataclass(frozen=True, slots=True)
class PodNotFound:
    """The answer to any effect on a pod that is gone, or whose name another pod has now."""

    key: Key


Answer = (
    PodRead
    | EvictionAllowed
    | EvictionRefused
    | EvictionRecorded
    | PodMarked
    | PodDeleted
    | PodNotFound
)
"""What takes an eviction to its next step."""
Event = PodChanged | Requeued | BudgetChanged | CacheConfirmed | RecordWithdrawn | Answer
