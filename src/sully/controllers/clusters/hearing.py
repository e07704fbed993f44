"""Since when the hub could have heard of an agent: silence counts only while somebody listens.

A server that was down for a while finds every lease old when it starts, though no agent could have
renewed one. What it finds then counts from the start, and what was silent while the line to
the server was broken from when it last was; a renewal that was seen is taken at its word.
"""

from __future__ import annotations

from datetime import datetime

from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.kinds import ClusterLease
from sully.runtime.clock import Clock


class Hearing:
    """Knows whose renewals were heard, and since when the others' would have been."""

    def __init__(
        self, leases: Informer[ClusterLease], *, clock: Clock, since: datetime | None
    ) -> None:
        self._leases = leases
        self._clock = clock
        self._since = since
        """When the server began; None: so long ago that it does not matter."""
        self._heard: dict[Key, datetime] = {}
        """When a renewal was last heard."""
        leases.on_change(self._changed)

    def since(self, lease: Key) -> datetime | None:
        """Return since when a renewal of a lease would have been heard; None: ever since it is."""
        contact = self._leases.freshness
        if contact.problem is not None:
            return self._clock.now()
        heard = self._heard.get(lease)
        if heard is not None and (contact.last_failure is None or contact.last_failure <= heard):
            return None
        return max(filter(None, (self._since, contact.last_failure)), default=None)

    def _changed(self, old: ClusterLease | None, new: ClusterLease | None) -> None:
        if new is None:
            self._heard.pop(key_of(old), None)
        elif self._is_news(old, new):
            self._heard[key_of(new)] = self._clock.now()

    def _is_news(self, old: ClusterLease | None, new: ClusterLease) -> bool:
        """Report whether a lease tells of something that happened while we listened."""
        if old is None:
            return self._leases.synced
        return old.spec.renew_time != new.spec.renew_time
