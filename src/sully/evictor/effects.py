"""What the evictor wants done; events.py has the answers it expects.

The first group needs no answer and cannot fail. Of the second, an effect that fails is not
answered: the next `PodChanged` of its pod starts over, with the rate token and the record it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sully.api.sully.types import EvictionRecord
from sully.client.transport import Key
from sully.domain.eviction.judge import Reason, Rules
from sully.evictor.events import PodRead

# -- without an answer ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Requeue:
    """Send `Requeued` for a pod now."""

    key: Key


@dataclass(frozen=True, slots=True)
class RequeueAt:
    """Send `Requeued` for a pod at a time."""

    key: Key
    at: datetime


@dataclass(frozen=True, slots=True)
class RefreshCache:
    """Have the server confirm a cache, and send `CacheConfirmed`."""

    cache: int


@dataclass(frozen=True, slots=True)
class ReportProgress:
    """The number of pods that rules evicted or will evict has changed."""

    rules: Rules


@dataclass(frozen=True, slots=True)
class CountEviction:
    """A pod was evicted by this process, so many seconds after it was due."""

    key: Key
    delay: float


@dataclass(frozen=True, slots=True)
class Announce:
    """Record an Event about a pod."""

    key: Key
    uid: str
    message: str


@dataclass(frozen=True, slots=True)
class SkipPod:
    """A pod is due that `Evictor.exempt` was called for."""

    key: Key


# -- with an answer -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadPod:
    """Read a pod from the API, after the rules that evict it had a chance to report so."""

    key: Key
    uid: str
    rules: Rules


@dataclass(frozen=True, slots=True)
class TryEviction:
    """Ask the eviction subresource, as a dry run."""

    key: Key
    uid: str
    read: PodRead


@dataclass(frozen=True, slots=True)
class RecordEviction:
    """Create the record of an eviction, before the pod is deleted."""

    key: Key
    record: EvictionRecord


@dataclass(frozen=True, slots=True)
class WithdrawRecord:
    """Delete the record of an eviction that did not happen."""

    key: Key
    uid: str


@dataclass(frozen=True, slots=True)
class MarkPod:
    """Set the condition DisruptionTarget."""

    key: Key
    uid: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod."""

    key: Key
    uid: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class EvictPod:
    """Delete a pod through the eviction subresource, which asks its budgets."""

    key: Key
    uid: str
    reasons: tuple[Reason, ...]
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
    | EvictPod
)
