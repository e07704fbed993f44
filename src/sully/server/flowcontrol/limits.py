"""Limits on what one client, one priority level and all together may have in progress.

Reads are counted apart from writes, and both apart from watches. Bytes of request bodies and of
responses that clients have not read yet are counted, too: they take memory. Each level has
reserved seats; beyond them all levels compete for the shared rest, and one flow (priority.py) gets
at most half of what its level can have. A request over a limit gets 429
with Retry-After; members of system:masters are exempt, so that an administrator can always
connect.
"""

import math
from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from sully.machinery.errors import TooManyRequests
from sully.runtime.metrics import Metrics
from sully.server.flowcontrol import priority
from sully.server.flowcontrol.priority import EXEMPT, Flow

RETRY_SECONDS = 1
READ, WRITE, WATCH = "readOnly", "mutating", "watch"
BODY, UNREAD = "requestBody", "unreadResponse"

# Percent of all seats that a level always has; the rest is shared.
RESERVED = {
    priority.LEADER_ELECTION: 5,
    priority.NODE_HIGH: 20,
    priority.SYSTEM: 10,
    priority.WORKLOAD_HIGH: 15,
    priority.WORKLOAD_LOW: 10,
    priority.GLOBAL_DEFAULT: 10,
    priority.CATCH_ALL: 2,
}


class Allowance(msgspec.Struct, frozen=True):
    """The limit of each kind; zero or less means no limit."""

    reads: int = 400
    writes: int = 200
    watches: int = 1000  # of one flow
    body_bytes: int = 128 << 20
    unread_bytes: int = 256 << 20


class SeatPool:
    """The seats of one kind; bytes are seats, too."""

    def __init__(self, kind: str, total: int, *, of_flow: int = 0) -> None:
        self.kind = kind
        self._shared: float = math.inf
        self._reserved = dict.fromkeys(RESERVED, 0)
        self._of_flow: dict[str, float] = dict.fromkeys(
            RESERVED, of_flow if of_flow > 0 else math.inf
        )
        if total > 0:
            self._reserved = {level: total * part // 100 for level, part in RESERVED.items()}
            self._shared = total - sum(self._reserved.values())
            self._of_flow = {
                level: max(1, (seats + self._shared) // 2)
                for level, seats in self._reserved.items()
            }
        self._borrowed = 0
        self.levels = dict.fromkeys(RESERVED, 0)
        self.flows: dict[Flow, int] = {}

    def take(self, flow: Flow, amount: int) -> int:
        """Take seats if they are free; return how many, 0 if not.

        One request takes at most what a flow may have, so that it can succeed.
        """

        level, limit = flow.level, self._of_flow[flow.level]
        amount = amount if amount <= limit else int(limit)
        taken, used = self.flows.get(flow, 0) + amount, self.levels[level] + amount
        over = min(amount, used - self._reserved[level])
        if taken > limit or (over > 0 and self._borrowed + over > self._shared):
            return 0
        if over > 0:
            self._borrowed += over
        self.flows[flow] = taken
        self.levels[level] = used
        return amount

    def release(self, flow: Flow, amount: int) -> None:
        """Release seats."""
        level = flow.level
        over = min(amount, self.levels[level] - self._reserved[level])
        if over > 0:
            self._borrowed -= over
        self.levels[level] -= amount
        if self.flows[flow] == amount:
            # Otherwise memory would grow with every user name.
            del self.flows[flow]
        else:
            self.flows[flow] -= amount


class Slot:
    """The seats of one request; released once."""

    __slots__ = ("_flow", "_pool", "_rejected", "_seats")

    def __init__(self, pool: SeatPool, flow: Flow, rejected: Callable[[Flow, str], None]) -> None:
        self._pool = pool
        self._flow = flow
        self._rejected = rejected
        self._seats = 0

    def grow(self, amount: int) -> None:
        """Take more seats; raises TooManyRequests and keeps the seats taken before."""
        if self._flow.level == EXEMPT:
            return
        taken = self._pool.take(self._flow, amount)
        if not taken:
            self._rejected(self._flow, self._pool.kind)
            raise too_many()
        self._seats += taken

    def release(self) -> None:
        """Release the seats; a second call does nothing."""
        seats, self._seats = self._seats, 0
        if seats:
            self._pool.release(self._flow, seats)


class Limits:
    """Counts requests in progress."""

    def __init__(
        self, allowance: Allowance | None = None, metrics: "FlowMetrics | None" = None
    ) -> None:
        allowed = allowance or Allowance()
        pools = (
            SeatPool(READ, allowed.reads),
            SeatPool(WRITE, allowed.writes),
            SeatPool(WATCH, 0, of_flow=allowed.watches),
            SeatPool(BODY, allowed.body_bytes),
            SeatPool(UNREAD, allowed.unread_bytes),
        )
        metrics = metrics or FlowMetrics(Metrics())
        metrics.show(pools)
        self._rejected = metrics.rejected
        self._pools = {pool.kind: pool for pool in pools}

    def enter(self, flow: Flow, kind: str, amount: int = 1) -> Slot:
        """Take seats; raises TooManyRequests."""
        slot = Slot(self._pools[kind], flow, self._rejected)
        if amount:
            slot.grow(amount)
        return slot

    @property
    def idle(self) -> bool:
        """Report whether no request is in progress."""
        return not any(pool.flows for pool in self._pools.values())


class FlowMetrics:
    """Metrics of priority levels."""

    def __init__(self, metrics: Metrics) -> None:
        self._executing = metrics.gauge(
            "apiserver_flowcontrol_current_executing_requests",
            "Requests in progress, by priority level.",
            ("priority_level", "request_kind"),
        )
        self._bytes = metrics.gauge(
            "sully_flowcontrol_held_bytes",
            "Bytes of request bodies, and of responses that clients have not read yet.",
            ("priority_level", "kind"),
        )
        self._rejected = metrics.counter(
            "apiserver_flowcontrol_rejected_requests_total",
            "Requests rejected with 429, by flow schema, priority level and kind of request.",
            ("flow_schema", "priority_level", "request_kind"),
        )

    def show(self, pools: Iterable[SeatPool]) -> None:
        """Publish the seats in use."""
        for pool in pools:
            family = self._bytes if pool.kind in (BODY, UNREAD) else self._executing
            for level in RESERVED:
                gauge = family.labels(level, pool.kind)
                gauge.set_function(partial(pool.levels.__getitem__, level))

    def rejected(self, flow: Flow, kind: str) -> None:
        """Count a rejection."""
        self._rejected.labels(flow.schema, flow.level, kind).inc()


def too_many() -> TooManyRequests:
    """Return 429 with Retry-After."""
    return TooManyRequests(
        "Too many requests, please try again later.",
        details={"retryAfterSeconds": RETRY_SECONDS},
        headers={"Retry-After": str(RETRY_SECONDS)},
    )
