"""Takes back the announcement that a pod will be disrupted, if it is still there minutes later.

Whoever evicts a pod first sets its condition `DisruptionTarget` and then deletes it. If the second
step never came, the condition would count against the pod for ever. Reads pods, writes their
status. What counts as stale is `domain.budgets.stale_at`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.client.informers.informer import own_key
from sully.client.options import PatchType
from sully.client.transport import Key, Transport
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.workloads import PODS, Pods
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.budgets import TARGET, stale_at
from sully.machinery.timestamps import format_time
from sully.runtime.clock import Clock


class StaleMarksController:
    """Corrects pods that were to be disrupted and were not."""

    name = "stale-pod-disruption"

    def __init__(self, *, pods: Pods, transport: Transport, clock: Clock) -> None:
        self._pods = pods
        self._transport = transport
        self._clock = clock

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for pods that carry the announcement."""
        yield Watch(self._pods.informer, _marked)

    async def reconcile(self, key: Key) -> Result:
        """Take the announcement back when it is stale."""
        pod = self._pods.informer.get(key)
        at = stale_at(pod) if pod is not None else None
        if pod is None or at is None:
            return DONE
        now = self._clock.now()
        if at > now:
            return Result(requeue_after=at - now)
        condition = {"type": TARGET, "status": "False", "lastTransitionTime": format_time(now)}
        change = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        await self._transport.patch(PODS, key, change, PatchType.STRATEGIC, "status")
        return DONE


def _marked(pod: Pod) -> Iterable[Key]:
    return own_key(pod) if stale_at(pod) is not None else ()
