"""A pod that is to be evicted, as the evictor keeps it until that is done or not needed."""

from __future__ import annotations

from datetime import datetime

import msgspec

from sully.domain.claims.pods import Pod
from sully.domain.eviction.judge import Evict, EvictingTaint, Hold, Wait
from sully.evictor.checks import Delayed, DueEviction
from sully.evictor.events import PodRead


class PendingEviction(msgspec.Struct):
    """A pod that is to be evicted, now or later."""

    pod: Pod
    decision: Hold | Wait | DueEviction
    delayed: Delayed | None = None
    """Why it has not been evicted yet."""
    read: PodRead | None = None
    """The pod as the API returned it for the eviction that is under way."""

    reported: bool = False
    """Its rules had a chance to report the eviction that is under way."""
    separate: bool = False
    """A transaction was rejected: it is read, recorded, marked and deleted by separate writes."""

    @property
    def uid(self) -> str:
        """Return the uid of the pod."""
        return self.pod.metadata.uid

    @property
    def verdict(self) -> Hold | Wait | Evict:
        """Return the verdict of the judge."""
        decision = self.decision
        return decision.verdict if isinstance(decision, DueEviction) else decision

    @property
    def reasons(self) -> tuple[EvictingTaint, ...]:
        """Return the taints that evict it, those that are paused included."""
        verdict = self.verdict
        if isinstance(verdict, Hold):
            return verdict.because
        return verdict.because + verdict.paused

    @property
    def at(self) -> datetime | None:
        """Return since or from when on it is due; None while all its taints are paused."""
        match self.verdict:
            case Evict(since):
                return since
            case Wait(until):
                return until
            case Hold():
                return None

    def reports_as(self, other: PendingEviction) -> bool:
        """Report whether the rules have the same to report about it."""
        return (self.uid, self.at, self.reasons) == (other.uid, other.at, other.reasons)
