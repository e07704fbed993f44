"""The effects of the evictor, for the caller to execute; events.py has their answers.

The first group needs no answer and cannot fail. Of the second, an effect that fails is not
answered: the next `PodChanged` of its pod starts over, with the rate token and the record it has.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from sully.api.sully.types import EvictedPod
from sully.client.transport import Key
from sully.domain.eviction.judge import EvictingTaint, Rules
from sully.domain.eviction.pod_events import EvictionStep
from sully.evictor.events import PodRead

# -- without an answer ----------------------------------------------------------------------------


class Requeue(msgspec.Struct, frozen=True, gc=False):
    """Judge a pod again now."""

    key: Key


class RequeueAt(msgspec.Struct, frozen=True, gc=False):
    """Judge a pod again at a time."""

    key: Key
    at: datetime


class RefreshCache(msgspec.Struct, frozen=True, gc=False):
    """Have the server confirm a cache, and send `CacheConfirmed`."""

    cache: int


class ReportProgress(msgspec.Struct, frozen=True, gc=False):
    """The number of pods that rules evicted or will evict has changed."""

    rules: Rules


class CountEviction(msgspec.Struct, frozen=True, gc=False):
    """A pod was evicted by this process, so many seconds after it was due."""

    key: Key
    delay: float


class Announce(msgspec.Struct, frozen=True, gc=False):
    """Record an Event about a pod."""

    key: Key
    uid: str
    step: EvictionStep


class SkipPod(msgspec.Struct, frozen=True, gc=False):
    """A pod is due that `Evictor.exempt` was called for."""

    key: Key


# -- with an answer -------------------------------------------------------------------------------


class ReadPod(msgspec.Struct, frozen=True, gc=False):
    """Read a pod from the API, after the rules that evict it had a chance to report so."""

    key: Key
    uid: str
    rules: Rules


class TryEviction(msgspec.Struct, frozen=True, gc=False):
    """Ask the eviction subresource, as a dry run."""

    key: Key
    uid: str
    read: PodRead


class RecordEviction(msgspec.Struct, frozen=True, gc=False):
    """Create the record of an eviction, before the pod is deleted."""

    key: Key
    pod: EvictedPod
    reasons: tuple[EvictingTaint, ...]
    claims: tuple[str, ...]
    """The claims of the pod, by name."""
    due: datetime
    at: datetime


class WithdrawRecord(msgspec.Struct, frozen=True, gc=False):
    """Delete the record of an eviction that did not happen."""

    key: Key
    uid: str
    sent: bool
    """The deletion of the pod was requested: keep the record, without an answer, if it happened."""


class MarkPod(msgspec.Struct, frozen=True, gc=False):
    """Set the condition DisruptionTarget."""

    key: Key
    uid: str


class DeletePod(msgspec.Struct, frozen=True, gc=False):
    """Delete a pod."""

    key: Key
    uid: str
    reasons: tuple[EvictingTaint, ...]


class CommitEviction(msgspec.Struct, frozen=True, gc=False):
    """Record an eviction, mark the pod and delete it, in one transaction, or do nothing.

    The pod need not be read before: it must be as the cache shows it.
    """

    key: Key
    uid: str
    resource_version: str
    record: RecordEviction | None
    """None: it is recorded, or evictions are not."""
    rules: Rules
    """Rules that should get a chance to report the eviction before."""


class EvictPod(msgspec.Struct, frozen=True, gc=False):
    """Delete a pod through the eviction subresource, which asks its budgets."""

    key: Key
    uid: str
    reasons: tuple[EvictingTaint, ...]
    read: PodRead | None
    """None with an authoritative cache."""


Effect = (
    Requeue
    | RequeueAt
    | RefreshCache
    | ReportProgress
    | CountEviction
    | Announce
    | SkipPod
    | ReadPod
    | TryEviction
    | RecordEviction
    | WithdrawRecord
    | MarkPod
    | DeletePod
    | CommitEviction
    | EvictPod
)
