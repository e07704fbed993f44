"""Reports that Kubernetes evicts, too, where only Sully's evictor is expected to.

Both evictors together evict all pods immediately, whatever the rates and pauses. What Kubernetes
wrote before this process started is removed from the owners of fields, so that what is there proves
that its controller has run since (domain/capabilities/evictors.py).
"""

from __future__ import annotations

from typing import Any

from sully.client.events import reference
from sully.client.options import WriteOptions
from sully.controllers.framework.controller import ControllerEnv
from sully.domain.capabilities.evictors import OF_KUBERNETES, status_written
from sully.machinery.formats.timestamps import format_time
from sully.runtime.log import get_logger
from sully.views.kinds import RULES

log = get_logger("eviction")
REASON = "AnotherEvictor"
_TEXT = (
    "The eviction controller of Kubernetes evicts, too: all pods are evicted immediately, and"
    " rates, pauses and budgets have no effect"
)
_OPTIONS = WriteOptions(field_manager=OF_KUBERNETES, force=True)


class OtherEvictor:
    """Notices what the eviction controller of Kubernetes has written."""

    def __init__(self, env: ControllerEnv) -> None:
        self._transport, self._recorder, clock = env
        self._started = format_time(clock.now())
        self._reported = False

    async def look_at(self, rule: dict[str, Any]) -> None:
        """Look at the owners of a rule whose status was just written."""
        written = status_written(rule, OF_KUBERNETES)
        if not written:
            return
        metadata = rule["metadata"]
        if written < self._started:
            body = {"metadata": {"name": metadata["name"], "uid": metadata["uid"]}}
            await self._transport.apply(RULES, body, _OPTIONS, "status")
            return
        self._recorder.event(reference(RULES, rule), "Warning", REASON, _TEXT)
        if not self._reported:
            self._reported = True
            log.warning("another evictor is active", rule=metadata["name"], since=written)
