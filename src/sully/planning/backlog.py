"""Pods that wait behind one that asks the same and was refused: they need not be looked at.

When a thousand equal pods find no place, the scheduler would be asked a thousand times for every
device that comes free. One of them stands for all; when it gets a node, the next steps forward. The
order is that of the queue, because equal pods are served in the order in which they came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from sully.api.resource.claim_types import ResourceClaim
from sully.domain.planning.objects import PlannedPod
from sully.domain.planning.replacing import Replacement

Shape = bytes


@dataclass(slots=True)
class _Line:
    first: str
    """The uid of the pod that stands for all."""
    behind: deque[Replacement] = field(default_factory=deque)


class Backlog:
    """Lines of equal pods."""

    def __init__(self, is_refused: Callable[[str], bool]) -> None:
        self._is_refused = is_refused
        self._lines: dict[Shape, _Line] = {}
        self._shapes: dict[str, Shape] = {}

    def takes(self, made: Replacement) -> bool:
        """Let a pod wait behind an equal one, if there is one that was refused; say whether."""
        shape = _shape(made.pod, made.claims)
        uid = made.pod.metadata.uid
        self._shapes[uid] = shape
        line = self._lines.get(shape)
        if line is not None and self._is_refused(line.first):
            line.behind.append(made)
            return True
        if line is None or not line.behind:
            self._lines[shape] = _Line(uid)
        return False

    def next_after(self, uid: str) -> Replacement | None:
        """Return who steps forward when a pod got a node."""
        line = self._lines.get(self._shapes.get(uid, b""))
        if line is None or line.first != uid or not line.behind:
            return None
        found = line.behind.popleft()
        line.first = found.pod.metadata.uid
        return found

    def stands_for(self, uid: str) -> str:
        """Return the pod whose refusal is also that of this one."""
        line = self._lines.get(self._shapes.get(uid, b""))
        return line.first if line is not None else uid


def _shape(pod: PlannedPod, claims: Iterable[ResourceClaim]) -> Shape:
    """Return all that decides where a pod goes, and who asks.

    Not the whole spec: the volumes of a service account have another name in every pod.
    """
    spec = pod.spec
    asked = (
        pod.metadata.namespace,
        pod.owner.uid if pod.owner is not None else pod.metadata.uid,
        (spec.priority, spec.node_selector, spec.affinity, spec.tolerations),
        (spec.overhead, spec.resources),
        [each.get("resources") for each in (*spec.init_containers, *spec.containers)],
        [each.resource_claim_name for each in spec.resource_claims],
        [each.spec for each in claims],
    )
    return msgspec.json.encode(asked, order="deterministic")
