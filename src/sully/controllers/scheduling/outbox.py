"""What was decided about pods and is still to be written: from controller.py to binder.py.

There is one decision per pod. A placement stays until it is done or given up, and its pod is not
looked at meanwhile; a refusal may be overtaken by a newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from sully.api.resource.claim_types import AllocationResult, ResourceClaim
from sully.client.transport import Key
from sully.domain.scheduling.account import Account
from sully.domain.scheduling.decisions import Refuse
from sully.domain.scheduling.extended import Mapped
from sully.domain.scheduling.objects import Pod


@dataclass(frozen=True, slots=True)
class Look:
    """When and how often a pod was looked at, for those who count."""

    began: float = 0.0
    queued: float = 0.0
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class ClaimWrite:
    """A claim that is to be reserved for a pod."""

    claim: ResourceClaim
    allocation: AllocationResult | None = None
    """None if it has one already."""
    record: str = ""
    """What its devices are, for its annotation."""


@dataclass(frozen=True, slots=True)
class ExtendedWrite:
    """The claim for a pod's extended resources, which is to be created."""

    claim: ResourceClaim
    """With the name it gets; its uid is a placeholder."""
    mappings: tuple[Mapped, ...]
    allocation: AllocationResult
    record: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """A pod that gets a node."""

    pod: Pod
    node: str
    claims: tuple[ClaimWrite, ...] = ()
    extended: ExtendedWrite | None = None
    look: Look = Look()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A pod that gets none."""

    pod: Pod
    why: Refuse
    deallocate: ResourceClaim | None = None
    """A claim that is allocated where the pod cannot go, and that nobody else uses."""
    delete: ResourceClaim | None = None
    """A claim for extended resources that an earlier attempt left behind."""
    account: Account | None = None
    pause: timedelta | None = None
    """How long it must not be looked at; None: until something changes."""


@dataclass(frozen=True, slots=True)
class Again:
    """A pod whose placement failed, and which is to be looked at again after a while."""


@dataclass(frozen=True, slots=True)
class Tidy:
    """A pod that has a node, and still an account of why it had none."""

    pod: Pod


Decision = Placement | Refusal | Again | Tidy


class Outbox:
    """Decisions by pod."""

    def __init__(self) -> None:
        self._decisions: dict[Key, Decision] = {}
        self.accounted: set[Key] = set()
        """Pods that an account was written for, though the cache may not show it yet."""
        self._listeners: list[Callable[[Key], None]] = []

    def __len__(self) -> int:
        """Return how many decisions are not written yet."""
        return len(self._decisions)

    def put(self, key: Key, decision: Decision) -> None:
        """Have a decision written."""
        self._decisions[key] = decision
        for listener in list(self._listeners):
            listener(key)

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a pod that is gone; what is being written goes on."""
        self.accounted.discard(key)

    def drop(self, key: Key) -> None:
        """Drop what is not worth writing any more."""
        self._decisions.pop(key, None)

    def replace(self, key: Key, decision: Decision) -> None:
        """Change what is to be done for a pod, when it comes back to its worker."""
        self._decisions[key] = decision

    def get(self, key: Key) -> Decision | None:
        """Return what was decided about a pod, or None."""
        return self._decisions.get(key)

    def is_busy(self, key: Key) -> bool:
        """Say whether a pod must not be looked at now."""
        return isinstance(self._decisions.get(key), Placement | Again)

    def backing_off(self) -> int:
        """Return how many pods are looked at again after a while."""
        return sum(isinstance(each, Again) for each in self._decisions.values())

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
