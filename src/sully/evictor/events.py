"""The events of the evictor: changes of the cluster, and the answers to its effects.

`controllers/eviction` sends them as its caches and the API report them,
`planning/simulation/evictor.py` as its copy of the cluster changes.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sully.client.transport import Key
from sully.domain.workloads.workloads import Budget

# -- changes --------------------------------------------------------------------------------------


class PodChanged(msgspec.Struct, frozen=True, gc=False):
    """A pod, its claims, or the taints on its devices may have changed."""

    key: Key


class Requeued(msgspec.Struct, frozen=True, gc=False):
    """A `Requeue` or `RequeueAt` is due, and the pod is known to be unchanged: only in plans."""

    key: Key


class BudgetChanged(msgspec.Struct, frozen=True, gc=False):
    """A PodDisruptionBudget was added, changed or deleted."""

    old: Budget | None
    new: Budget | None


class CacheConfirmed(msgspec.Struct, frozen=True, gc=False):
    """The server has confirmed a cache, by its number."""

    cache: int


# -- answers --------------------------------------------------------------------------------------


class PodRead(msgspec.Struct, frozen=True, gc=False):
    """The answer to `ReadPod`."""

    key: Key
    terminating: bool = False
    marked: bool = False
    """It has the condition DisruptionTarget already."""
    ready: bool = False
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)


class EvictionAllowed(msgspec.Struct, frozen=True, gc=False):
    """The answer to `TryEviction`: the budgets of the pod allow its eviction."""

    key: Key


class EvictionRefused(msgspec.Struct, frozen=True, gc=False):
    """The answer to `TryEviction` or `EvictPod`: a budget does not allow it now."""

    key: Key
    labels: Mapping[str, str]
    ready: bool | None
    """None under several budgets: none of them can allow it, however many disruptions it allows."""
    budgets: tuple[Key, ...] | None = None
    """The budgets that select it, where the caller knows them."""


class EvictionRecorded(msgspec.Struct, frozen=True, gc=False):
    """The answer to `RecordEviction`."""

    key: Key


class RecordWithdrawn(msgspec.Struct, frozen=True, gc=False):
    """The answer to `WithdrawRecord`."""

    key: Key
    uid: str


class PodMarked(msgspec.Struct, frozen=True, gc=False):
    """The answer to `MarkPod`."""

    key: Key


class PodDeleted(msgspec.Struct, frozen=True, gc=False):
    """The answer to `DeletePod` and `EvictPod`."""

    key: Key


class EvictionCommitted(msgspec.Struct, frozen=True, gc=False):
    """The answer to `CommitEviction`: the pod is recorded, marked and deleted."""

    key: Key


class RulesReported(msgspec.Struct, frozen=True, gc=False):
    """The answer to `CommitEviction`: nothing was written, but rules had their chance to report."""

    key: Key


class CommitRejected(msgspec.Struct, frozen=True, gc=False):
    """The answer to `CommitEviction`: one of the writes was rejected, so there was none."""

    key: Key


class PodNotFound(msgspec.Struct, frozen=True, gc=False):
    """The answer to any effect on a pod that is gone, or whose name another pod has now."""

    key: Key


Answer = (
    PodRead
    | EvictionAllowed
    | EvictionRefused
    | EvictionRecorded
    | PodMarked
    | PodDeleted
    | EvictionCommitted
    | RulesReported
    | CommitRejected
    | PodNotFound
)
"""What takes an eviction to its next step."""
Event = PodChanged | Requeued | BudgetChanged | CacheConfirmed | RecordWithdrawn | Answer
