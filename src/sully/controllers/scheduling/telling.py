"""Tells pods why they have no node: the condition that Kubernetes has, and our account beside it.

The text of PodScheduled is Kubernetes' and rarely changes. The account changes with every device
that is taken or freed, so alone it is written at most every half minute; what came in between is
left out, the last state is not.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from sully.client.events import EventRecorder, reference
from sully.client.options import PatchType
from sully.client.transport import Key, Transport
from sully.controllers.framework import DONE, Result
from sully.controllers.scheduling.kinds import PODS
from sully.controllers.scheduling.outbox import Outbox, Refusal
from sully.domain.scheduling import account as accounts
from sully.domain.scheduling.account import Account
from sully.domain.scheduling.decisions import Refuse
from sully.domain.scheduling.objects import Pod, PodCondition
from sully.machinery.compat import Compat
from sully.machinery.errors import Conflict, NotFound
from sully.machinery.timestamps import format_time
from sully.runtime.clock import Clock

SCHEDULED: Final = "PodScheduled"
PAUSE: Final = timedelta(seconds=30)
"""Between two accounts of one pod, if nothing else is to be told."""

Obj = dict[str, Any]


class Teller:
    """Writes why a pod has no node."""

    def __init__(
        self,
        *,
        outbox: Outbox,
        transport: Transport,
        recorder: EventRecorder,
        clock: Clock,
        compat: Compat,
    ) -> None:
        self._outbox = outbox
        self._transport = transport
        self._recorder = recorder
        self._clock = clock
        self._compat = compat

    async def tell(self, key: Key, refusal: Refusal) -> Result:
        """Write a refusal, unless all of it stands there; say when to write the rest."""
        pod, why, now = refusal.pod, refusal.why, self._clock.now()
        said = _says(pod.condition(SCHEDULED), why)
        account = self._account(pod, refusal.account, now)
        if said and account is not None and (wait := _pause(pod, now)) > timedelta(0):
            return Result(requeue_after=wait)
        changes = [] if said else [_condition(pod, why, now)]
        changes += [account] if account is not None else []
        if changes and not await self._patch(key, pod, changes):
            return DONE
        if refusal.account is not None and self._compat.explains_pending_pods:
            self._outbox.accounted.add(key)
        if not (said and self._compat.reports_failed_scheduling_on_change):
            about = reference(PODS, pod)
            self._recorder.event(about, "Warning", "FailedScheduling", why.message)
        return DONE

    async def tidy(self, key: Key, pod: Pod) -> None:
        """Take the account away from a pod that has a node."""
        self._outbox.accounted.discard(key)
        await self._patch(key, pod, [_gone()])

    async def _patch(self, key: Key, pod: Pod, conditions: list[Obj]) -> bool:
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": conditions}}
        try:
            await self._transport.patch(PODS, key, patch, PatchType.STRATEGIC, "status")
        except (NotFound, Conflict):
            # The pod is gone, or another one has its name.
            return False
        return True

    def _account(self, pod: Pod, account: Account | None, now: datetime) -> Obj | None:
        """Return what changes in the condition with the account; None for nothing."""
        known = pod.condition(accounts.CONDITION)
        if not self._compat.explains_pending_pods:
            return None
        if account is None:
            return _gone() if known is not None else None
        text = accounts.encode(account)
        if known is not None and (known.reason, known.message) == (account.reason, text):
            return None
        same = known is not None and known.reason == account.reason
        since = known.last_transition_time if known is not None and same else None
        return {
            "type": accounts.CONDITION,
            "status": "True",
            "reason": account.reason,
            "message": text,
            "lastProbeTime": format_time(now),
            "lastTransitionTime": format_time(since or now),
        }


def _says(known: PodCondition | None, why: Refuse) -> bool:
    told = ("False", why.reason, why.message)
    return known is not None and (known.status, known.reason, known.message) == told


def _condition(pod: Pod, why: Refuse, now: datetime) -> Obj:
    known = pod.condition(SCHEDULED)
    since = known.last_transition_time if known is not None and known.status == "False" else None
    return {
        "type": SCHEDULED,
        "status": "False",
        "reason": why.reason,
        "message": why.message,
        "lastTransitionTime": format_time(since or now),
    }


def _gone() -> Obj:
    return {"type": accounts.CONDITION, "$patch": "delete"}


def _pause(pod: Pod, now: datetime) -> timedelta:
    """Return how long an account alone has to wait."""
    known = pod.condition(accounts.CONDITION)
    if known is None or known.last_probe_time is None:
        return timedelta(0)
    return known.last_probe_time + PAUSE - now
