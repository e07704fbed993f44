"""Puts together those who keep the history, and adds them to a manager."""

from __future__ import annotations

from datetime import timedelta

from sully.client.transport import Transport
from sully.controllers.history.controller import TaintHistoryController
from sully.controllers.history.retention import (
    DEFAULT,
    RetentionController,
    deletion_time,
    evicted_since,
)
from sully.controllers.history.tally import Tally
from sully.controllers.manager import Manager
from sully.controllers.workloads import PODS
from sully.runtime.clock import Clock
from sully.views.kinds import PAST_EVICTIONS, RULES, TAINT_RECORDS


def add_history(
    manager: Manager, transport: Transport, *, clock: Clock, keep: timedelta = DEFAULT
) -> None:
    """Remember rules, and forget what is older than `keep`."""
    evictions, records = manager.informer(PAST_EVICTIONS), manager.informer(TAINT_RECORDS)
    manager.add(
        TaintHistoryController(
            rules=manager.informer(RULES),
            records=records,
            tally=Tally(evictions, manager.informer(PODS)),
            transport=transport,
            clock=clock,
        )
    )
    manager.add(
        RetentionController(evictions, evicted_since, transport=transport, clock=clock, keep=keep)
    )
    manager.add(
        RetentionController(records, deletion_time, transport=transport, clock=clock, keep=keep)
    )
