"""What became of evicted pods: which of their replacements run again, and which are Pending.

A replacement is a pod of the same controller that did not exist before the evictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from sully.api.core.pods.conditions import POD_SCHEDULED
from sully.domain.scheduling.objects import Pod


class Aftermath(msgspec.Struct, frozen=True):
    """The replacements of evicted pods."""

    running: int = 0
    pending: tuple[str, ...] = ()
    """Those that are unschedulable, by namespace and name."""
    starting: int = 0
    """Those that are scheduled or not tried yet, and do not run."""
    missing: int = 0
    """How many of the pods have a controller that has not recreated them."""
    unmanaged: int = 0
    """How many of the pods have no controller, so that nothing recreates them."""

    @property
    def settled(self) -> bool:
        """Report whether waiting does not change it soon."""
        return not self.starting and not self.missing


def aftermath_of(
    evicted: Mapping[str, int], known: Collection[str], pods: Iterable[Pod]
) -> Aftermath:
    """Return what became of evicted pods.

    `evicted` has how many pods each controller lost, by its uid (empty: those without one),
    `known` the uids of all pods before the evictions.
    """
    states: dict[str, Counter[str]] = {uid: Counter() for uid in evicted}
    pending: list[str] = []
    for pod in pods:
        controller = pod.metadata.controller()
        owner = controller.uid if controller is not None else ""
        if not owner or owner not in evicted or pod.metadata.uid in known or not _counts(pod):
            continue
        state = _state(pod)
        states[owner][state] += 1
        if state == "pending":
            pending.append(pod.label)
    managed = {uid: count for uid, count in evicted.items() if uid}
    return Aftermath(
        running=sum(min(count, states[uid]["running"]) for uid, count in managed.items()),
        pending=tuple(sorted(pending)),
        starting=sum(states[uid]["starting"] for uid in managed),
        missing=sum(max(0, count - states[uid].total()) for uid, count in managed.items()),
        unmanaged=evicted.get("", 0),
    )


def _counts(pod: Pod) -> bool:
    # A pod of a Job may have finished meanwhile, which is not a failure.
    return not pod.is_terminating and pod.status.phase != "Failed"


def _state(pod: Pod) -> str:
    if pod.status.phase in ("Running", "Succeeded"):
        return "running"
    scheduled = pod.condition(POD_SCHEDULED)
    unschedulable = scheduled is not None and scheduled.status == "False"
    return "pending" if unschedulable and not pod.spec.node_name else "starting"
