"""What was decided about pods and is still to be written: from controller.py to binder.py.

There is one decision per pod. A placement stays until it is done or given up, and its pod is not
looked at meanwhile; a refusal may be overtaken by a newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sully.api.resource.claim_types import AllocationResult, ResourceClaim
from sully.client.transport import Key
from sully.domain.scheduling.decisions import Refuse
from sully.domain.scheduling.objects import Pod


@dataclass(frozen=True, slots=True)
class ClaimWrite:
    """A claim that is to be reserved for a pod."""

    claim: ResourceClaim
    allocation: AllocationResult | None = None
    """None if it has one already."""
    record: str = ""
    """What its devices are, for its annotation."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A pod that gets a node."""

    pod: Pod
    node: str
    claims: tuple[ClaimWrite, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A pod that gets none."""

    pod: Pod
    why: Refuse
    deallocate: ResourceClaim | None = None
    """A claim that is allocated where the pod cannot go, and that nobody else uses."""


@dataclass(frozen=True, slots=True)
class Again:
    """A pod whose placement failed, and which is to be looked at again after a while."""


Decision = Placement | Refusal | Again


class Outbox:
    """Decisions by pod."""

    def __init__(self) -> None:
        self._decisions: dict[Key, Decision] = {}
        self._listeners: list[Callable[[Key], None]] = []

    def __len__(self) -> int:
        """Return how many decisions are not written yet."""
        return len(self._decisions)

    def put(self, key: Key, decision: Decision) -> None:
        """Have a decision written."""
        self._decisions[key] = decision
        for listener in list(self._listeners):
            listener(key)

    def replace(self, key: Key, decision: Decision) -> None:
        """Change what is to be done for a pod, when it comes back to its worker."""
        self._decisions[key] = decision

    def get(self, key: Key) -> Decision | None:
        """Return what was decided about a pod, or None."""
        return self._decisions.get(key)

    def is_busy(self, key: Key) -> bool:
        """Say whether a pod must not be looked at now."""
        return isinstance(self._decisions.get(key), Placement | Again)

    def done(self, key: Key, decision: Decision) -> None:
        """Note that a decision was written; not if there is a newer one."""
        if self._decisions.get(key) is decision:
            del self._decisions[key]

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys of pods that something was decided about to a queue."""

        def handle(pod: Key) -> None:
            for key in to_keys(pod):
                add(key)

        self._listeners.append(handle)
        for key in list(self._decisions):
            handle(key)
        return lambda: self._listeners.remove(handle)
