"""What the drain core takes and returns: pods, events, effects and the result."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum

import msgspec

from sully.api.resource.eviction_rate import EvictionRate

RETRY = timedelta(seconds=5)
"""When a pod is tried again whose eviction a budget refused; as often as `kubectl drain` does."""
PENDING_TIMEOUT = timedelta(minutes=1)
"""How long a replacement may be unschedulable before the drain stops."""
TAINT_TIMEOUT = timedelta(minutes=2)
"""How long the eviction controller may take once the rules have the effect NoExecute."""


class DrainPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod on a drained device, or of a workload that has one there."""

    namespace: str
    name: str
    uid: str
    workload: str = ""
    """Namespace, kind and name of what recreates it; empty if nothing does."""
    awaited: bool = True
    """Whether its replacement is expected to run elsewhere."""
    on_devices: bool = False
    """Whether it uses a drained device."""
    ready: bool = False
    terminating: bool = False
    unschedulable: bool = False
    tolerates: bool = False
    """Whether its claims tolerate the taint, so that it may be scheduled to the same device."""

    def __str__(self) -> str:
        """Return namespace/name."""
        return f"{self.namespace}/{self.name}"


class DrainSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a drain."""

    rate: EvictionRate | None = None
    """None: no limit."""
    max_unavailable: int | str | None = None
    """How many evicted pods may be without a Ready replacement; None: any number.

    A percentage is of all pods to evict, also those of earlier runs, and rounds up as in a
    PodDisruptionBudget.
    """
    wait_ready: timedelta | None = timedelta(minutes=10)
    """How long a replacement may take to become Ready; None: replacements are not waited for."""
    timeout: timedelta | None = None
    """After this time the drain fails, or `use_no_execute`; None: never."""
    use_no_execute: bool = False
    evicts: bool = True
    """False: wait until the pods finish by themselves."""


class DrainState(msgspec.Struct, frozen=True):
    """What another run of the same drain has to know."""

    full_at: datetime | None = None
    """When the token bucket is full again."""
    evicted: int = 0
    workloads: tuple[str, ...] = ()
    """Workloads whose evicted pods may not have a Ready replacement yet."""


# -- events ---------------------------------------------------------------------------------------


class PodsChanged(msgspec.Struct, frozen=True):
    """All pods on the devices, and all pods of their workloads."""

    pods: tuple[DrainPod, ...]


class PodEvicted(msgspec.Struct, frozen=True):
    """The server accepted the eviction of a pod."""

    uid: str


class DrainEvictionRefused(msgspec.Struct, frozen=True):
    """A budget does not allow the eviction of a pod now, or the server did not answer."""

    uid: str
    message: str
    answered: bool = True
    """False: the pod may have been evicted."""


class EvictionsPostponed(msgspec.Struct, frozen=True):
    """Pods were not evicted, because another run of the same drain evicts pods."""

    uids: tuple[str, ...]


class StateChanged(msgspec.Struct, frozen=True):
    """The state that the rules carry now: another run of the same drain may have saved it."""

    state: DrainState


class DrainPodNotFound(msgspec.Struct, frozen=True):
    """The pod to evict does not exist any more."""

    uid: str


class RulesDeleted(msgspec.Struct, frozen=True):
    """The rules of the cordon were deleted."""


Event = (
    PodsChanged
    | PodEvicted
    | DrainEvictionRefused
    | EvictionsPostponed
    | DrainPodNotFound
    | RulesDeleted
    | StateChanged
)

# -- effects --------------------------------------------------------------------------------------


class EvictDrainPod(msgspec.Struct, frozen=True):
    """Evict a pod through the Eviction API, and report the answer."""

    pod: DrainPod


class WaitUntil(msgspec.Struct, frozen=True):
    """Decide again when something changed, at the latest at this time; None: only then."""

    time: datetime | None


class UseNoExecute(msgspec.Struct, frozen=True):
    """Give the rules the effect NoExecute."""


class DrainOutcome(Enum):
    """How a drain ended."""

    DONE = "Done"
    TIMED_OUT = "TimedOut"
    REPLACEMENT_PENDING = "ReplacementPending"
    REPLACEMENT_NOT_READY = "ReplacementNotReady"
    NOT_RECREATED = "NotRecreated"
    EVICTION_LOOP = "EvictionLoop"
    UNCORDONED = "Uncordoned"


class Stop(msgspec.Struct, frozen=True):
    """The drain is over: evict no more pods."""

    outcome: DrainOutcome
    pods: tuple[DrainPod, ...] = ()
    """The pods because of which it ended."""
    workload: str = ""
    """The workload that did not recreate a pod."""


Effect = EvictDrainPod | WaitUntil | UseNoExecute | Stop


class DrainProgress(msgspec.Struct, frozen=True):
    """How far a drain is."""

    evicted: int
    """Evicted by this run."""
    remaining: int
    """Still to be evicted, or to finish."""
    terminating: int
    """Evicted, and still terminating."""
    refused: dict[str, str]
    """The answers of the server about pods whose eviction it refused last, by uid."""
    ready: int
    """Replacements that are Ready."""
    waiting: tuple[DrainPod, ...]
    """Replacements that are not Ready."""
    unavailable: int
    """Evicted pods without a Ready replacement."""
