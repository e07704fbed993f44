"""Where a pod goes: the nodes that fit, the best of them, or why there is none.

Nodes come with the emptiest first, so the first that fits is the best unless devices differ in how
well they suit. Nothing here waits or writes; what must change before it is worth asking again is
part of a refusal (`Concern`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import Flag, auto
from typing import Protocol

import msgspec

from sully.domain.allocation.verdicts import Allocated, Failed, FailureCause, Refused
from sully.domain.scheduling import messages
from sully.domain.scheduling.filters import NodeState, Rejection, rejects
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import Amounts

UNSCHEDULABLE = "Unschedulable"
ERROR = "SchedulerError"


class Concern(Flag):
    """What must change before a pod is worth another look."""

    NOTHING = 0
    NODES = auto()
    ROOM = auto()
    DEVICES = auto()
    CLASSES = auto()
    TAINTS = auto()
    """Those on devices that it has already: it is no help if others become free."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """No node for a pod."""

    message: str
    reason: str = UNSCHEDULABLE
    concern: Concern = Concern.NOTHING
    back_off: bool = False
    """Another attempt may succeed although nothing changes, but not immediately."""
    failure: FailureCause | None = None
    """What the attempt failed on, if it failed and that is known."""


class Place(msgspec.Struct, frozen=True):
    """A node for a pod, and the devices it gets there."""

    node: str
    allocated: Allocated


NO_DEVICES = Allocated((), ())


class Devices(Protocol):
    """Answers for one pod which devices it can have on a node."""

    @property
    def backed(self) -> Container[str]:
        """Return the resources that devices may provide where a node has none of its own."""

    def settles(self, allocated: Allocated) -> bool:
        """Say whether no other node could serve the pod better."""

    def on(self, state: NodeState) -> Allocated | Refused | Failed:
        """Choose devices on a node."""

    def dislikes(self, allocated: Allocated) -> int:
        """Count what speaks against devices without forbidding them."""

    def clear(self) -> str:
        """Say what is done so that another attempt may succeed; empty if nothing."""


def decide(
    pod: Pod,
    requests: Amounts,
    nodes: Iterable[NodeState],
    devices: Devices,
    refusing: set[str] | None = None,
) -> Place | Refuse:
    """Find a node for a pod; nodes that were asked in vain are added to `refusing`."""
    refusing = set() if refusing is None else refusing
    rejections: list[Rejection] = []
    concern, no_devices = Concern.NODES, False
    best: tuple[tuple[int, int], Place] | None = None
    for state in nodes:
        rejection = rejects(state, pod, requests, devices.backed)
        if rejection is not None:
            concern |= _concern(rejection)
            rejections.append(rejection)
            refusing.add(state.place.name)
            continue
        match devices.on(state):
            case Allocated() as allocated:
                place = Place(state.node.metadata.name, allocated)
                if devices.settles(allocated):
                    return place
                rank = (devices.dislikes(allocated), -allocated.preference)
                best = (rank, place) if best is None or rank < best[0] else best
            case Refused(reason):
                no_devices = True
                rejections.append(Rejection((reason,)))
                refusing.add(state.place.name)
            case Failed(error, over_budget, cause):
                text = messages.in_filter(error)
                return Refuse(text, ERROR, ~Concern.NOTHING, back_off=over_budget, failure=cause)
    if best is not None:
        return best[1]
    if no_devices:
        concern |= Concern.DEVICES | Concern.CLASSES
    return _refuse(pod, rejections, devices, concern)


def _concern(rejection: Rejection) -> Concern:
    concern = Concern.NOTHING
    if rejection.helped_by_leaving:
        concern |= Concern.ROOM
    if rejection.helped_by_classes:
        concern |= Concern.CLASSES
    return concern


def _refuse(pod: Pod, rejections: list[Rejection], devices: Devices, concern: Concern) -> Refuse:
    if not rejections:
        return Refuse(messages.NO_NODES, concern=concern)
    never = pod.spec.preemption_policy == "Never"
    done = [text for text in (devices.clear(),) if text]
    after = [*done, messages.preemption(rejections, never=never)]
    return Refuse(messages.by_nodes(rejections, after), concern=concern)


def refuse_leftover(pod: Pod, nodes: int) -> Refuse:
    """Refuse a pod whose claim for extended resources is left over from an earlier attempt.

    It is deleted, and when it is gone the pod is looked at anew.
    """
    if not nodes:
        return Refuse(messages.NO_NODES, concern=Concern.NODES)
    rejections = [Rejection((messages.LEFTOVER,))] * nodes
    never = pod.spec.preemption_policy == "Never"
    after = [messages.DELETED, messages.preemption_nowhere(nodes, never=never)]
    return Refuse(messages.by_nodes(rejections, after))


def refuse_everywhere(pod: Pod, reason: str, nodes: int, concern: Concern) -> Refuse:
    """Refuse a pod for a reason that has nothing to do with nodes."""
    if not nodes:
        return Refuse(messages.NO_NODES, concern=concern | Concern.NODES)
    never = pod.spec.preemption_policy == "Never"
    told = messages.preemption_nowhere(nodes, never=never)
    return Refuse(messages.by_pod(nodes, reason, [told]), concern=concern)
