"""Sends a trace of each eviction to an OpenTelemetry collector, over HTTP with JSON.

A collector that does not answer delays nothing: traces wait in a bounded queue, and the oldest are
dropped.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import Final

from sully import __version__
from sully.api.resource.types import DeviceTaintRule, ResourceClaim
from sully.client.informers.informer import Informer
from sully.client.transport import Key
from sully.controllers.notifications.sender import SendError, post
from sully.domain.allocation.usage.conflicts import results_of
from sully.domain.claims.pods import claim_references
from sully.domain.devicepolicies.rules import decode_state, policy_name
from sully.domain.devices.pools import device_of_result
from sully.domain.devices.taints import EVICTING_EFFECTS, SourcedTaint
from sully.domain.notifications.settings import Receiver
from sully.domain.observability.evictions import (
    Begun,
    Ended,
    EvictionEvent,
    EvictionTracker,
    Replaced,
)
from sully.domain.observability.traces import Cause, EvictionTrace, otlp
from sully.domain.scheduling.objects import Pod
from sully.domain.tolerations import taint_text
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.views.devices.inventory import Inventory

log = get_logger("tracing")

OPEN_MAX: Final = 1000
QUEUED_MAX: Final = 1000
BATCH: Final = 100
PATH: Final = "/v1/traces"


class EvictionTraces:
    """Follows evictions, and exports those that are over."""

    def __init__(
        self,
        endpoint: str,
        *,
        pods: Informer[Pod],
        claims: Informer[ResourceClaim],
        inventory: Inventory,
        clock: Clock,
        open_max: int = OPEN_MAX,
    ) -> None:
        self._receiver = Receiver(name="otlp", url=endpoint.rstrip("/") + PATH)
        self._claims = claims
        self._inventory = inventory
        self._clock = clock
        self._open_max = open_max
        self._tracker = EvictionTracker()
        self._open: OrderedDict[str, EvictionTrace] = OrderedDict()
        self._queue: deque[EvictionTrace] = deque(maxlen=QUEUED_MAX)
        self._queued = asyncio.Event()
        pods.on_change(self._changed)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        for event in self._tracker.change(old, new, self._clock.now()):
            self._handle(event, new)

    def _handle(self, event: EvictionEvent, pod: Pod | None) -> None:
        uid = event.eviction.uid
        if isinstance(event, Begun):
            if len(self._open) >= self._open_max:
                # It is perhaps never replaced: export what is known.
                self._export(self._open.popitem(last=False)[1])
            cause = self._cause(pod) if pod is not None else Cause()
            self._open[uid] = EvictionTrace(event.eviction, cause)
            return
        trace = self._open.get(uid)
        if trace is None:
            return
        if isinstance(event, Ended):
            trace.gone = self._clock.now()
        elif isinstance(event, Replaced):
            trace.replaced = self._clock.now()
            trace.replacement = event.replacement.metadata.name
            trace.node = event.replacement.spec.node_name
        if trace.complete:
            del self._open[uid]
            self._export(trace)

    def _export(self, trace: EvictionTrace) -> None:
        self._queue.append(trace)
        self._queued.set()

    def _cause(self, pod: Pod) -> Cause:
        """Return the oldest evicting taint of the devices of a pod."""
        taints = [
            sourced
            for reference in claim_references(pod)
            for sourced in self._taints(Key(pod.metadata.namespace, reference.name))
            if sourced.taint.effect in EVICTING_EFFECTS and sourced.taint.time_added is not None
        ]
        if not taints:
            return Cause()
        first = min(taints, key=lambda one: (str(one.taint.time_added), one.origin.name))
        rule = self._inventory.rule(first.origin.name) if _is_rule(first) else None
        return Cause(
            taint=taint_text(first.taint),
            source=_source(first, rule),
            fault=decode_state(rule).since if rule is not None and policy_name(rule) else None,
            tainted=first.taint.time_added,
        )

    def _taints(self, claim: Key) -> list[SourcedTaint]:
        holder = self._claims.get(claim)
        devices = results_of(holder) if holder is not None else ()
        effective = (self._inventory.device(device_of_result(one)) for one in devices)
        return [taint for device in effective if device is not None for taint in device.taints]

    async def run(self) -> None:
        """Send traces until cancelled."""
        while True:
            self._queued.clear()
            await self._queued.wait()
            while self._queue:
                batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
                try:
                    await post(self._receiver, otlp(batch, __version__))
                except SendError as error:
                    log.warning("traces not sent", traces=len(batch), error=str(error))


def _is_rule(sourced: SourcedTaint) -> bool:
    return sourced.origin.kind == "DeviceTaintRule"


def _source(sourced: SourcedTaint, rule: DeviceTaintRule | None) -> str:
    policy = policy_name(rule) if rule is not None else ""
    return f"DeviceTaintPolicy/{policy}" if policy else str(sourced.origin)
