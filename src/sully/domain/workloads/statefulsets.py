"""StatefulSets: pods with fixed names, created in order of their ordinals or all in parallel.

With the policy OrderedReady, the first missing pod is created if all before it are ready, and
nothing happens as long as one of them is not, or is terminating. Plans and the controller share
`next_pods`; `sync_set` is what the controller does next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

import msgspec
from msgspec.structs import replace

from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.history import HASH_LABEL
from sully.domain.workloads.percentages import scaled
from sully.domain.workloads.workloads import BURST, Workload, WorkloadCondition
from sully.machinery.formats.integers import parse_natural
from sully.machinery.meta import Wire


class Ordinals(Wire, frozen=True, kw_only=True):
    """The first ordinal."""

    start: int = 0


class RollingUpdateStatefulSetStrategy(Wire, frozen=True, kw_only=True):
    """Which pods are updated, and how many of them at a time."""

    partition: int | None = None
    max_unavailable: int | str | None = None


class StatefulSetUpdateStrategy(Wire, frozen=True, kw_only=True):
    """How pods are replaced."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdateStatefulSetStrategy | None = None


class StatefulSetSpec(Wire, frozen=True, kw_only=True):
    """How many pods there are, and in which order they are created."""

    replicas: int = 1
    selector: dict[str, Any] | None = None
    template: dict[str, Any] = msgspec.field(default_factory=dict)
    volume_claim_templates: tuple[dict[str, Any], ...] = ()
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: StatefulSetUpdateStrategy = msgspec.field(
        default_factory=StatefulSetUpdateStrategy
    )
    revision_history_limit: int | None = None
    min_ready_seconds: int = 0
    ordinals: Ordinals = msgspec.field(default_factory=Ordinals)


class StatefulSetStatus(Wire, frozen=True, kw_only=True):
    """How many pods there are of which revision."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None
    conditions: tuple[WorkloadCondition, ...] = ()
    available_replicas: int = 0


class StatefulSet(Workload, frozen=True, kw_only=True):
    """Pods with fixed names."""

    spec: StatefulSetSpec = msgspec.field(default_factory=StatefulSetSpec)
    status: StatefulSetStatus = msgspec.field(default_factory=StatefulSetStatus)

    @property
    def is_ordered(self) -> bool:
        """Report whether it waits for each pod before it creates the next."""
        return self.spec.pod_management_policy != "Parallel"

    @property
    def range(self) -> range:
        """Return the ordinals of its pods."""
        start = self.spec.ordinals.start
        return range(start, start + self.spec.replicas)

    @property
    def partition(self) -> int:
        """Return the ordinal from which pods are updated."""
        rolling = self.spec.update_strategy.rolling_update
        partition = rolling.partition if rolling is not None else None
        return self.spec.ordinals.start + (partition or 0)

    @property
    def max_unavailable(self) -> int:
        """Return how many pods may be unavailable during an update."""
        rolling = self.spec.update_strategy.rolling_update
        value = rolling.max_unavailable if rolling is not None else None
        return max(1, scaled(1 if value is None else value, self.spec.replicas, up=True))

    def pod_name(self, ordinal: int) -> str:
        """Return the name of a pod."""
        return f"{self.name}-{ordinal}"


class ReplicaState(Enum):
    """The state of the pod with one ordinal."""

    MISSING = "Missing"
    NOT_READY = "NotReady"
    """It is not ready, or it is terminating."""
    READY = "Ready"


class NextPods(msgspec.Struct, frozen=True):
    """The ordinals to create now, and the one that has to be ready before any other."""

    create: tuple[int, ...] = ()
    waits_for: int | None = None


def next_pods(
    ordinals: Iterable[int], state_of: Callable[[int], ReplicaState], *, ordered: bool
) -> NextPods:
    """Return which pods a StatefulSet creates now: at most `BURST`, the others with the next call.

    It may want billions, of which a quota allows some.
    """
    missing: list[int] = []
    for ordinal in ordinals:
        if len(missing) == BURST:
            return NextPods(tuple(missing), ordinal)
        state = state_of(ordinal)
        if state is ReplicaState.MISSING:
            missing.append(ordinal)
        if ordered and state is not ReplicaState.READY:
            return NextPods(tuple(missing), ordinal)
    return NextPods(tuple(missing))


def ordinal_of(name: str) -> int | None:
    """Return the ordinal in the name of a pod; None if it has none."""
    text = name.rpartition("-")[2]
    return parse_natural(text)


# -- the controller -------------------------------------------------------------------------------


class SetSync(msgspec.Struct, frozen=True):
    """The next step of a StatefulSet."""

    status: StatefulSetStatus
    create: tuple[tuple[int, str], ...] = ()
    """Ordinals with the name of the revision that the pod is created from."""
    delete: tuple[Pod, ...] = ()


def sync_set(owner: StatefulSet, pods: Sequence[Pod], update: str, now: datetime) -> SetSync:
    """Return the next step of a StatefulSet; `update` is the revision of its template."""
    current = owner.status.current_revision or update
    status = _status(owner, pods, current, update, now)
    if owner.is_terminating:
        return SetSync(status)
    by_ordinal = {
        ordinal: pod
        for pod in sorted(pods, key=lambda pod: ordinal_of(pod.metadata.name) or 0)
        if (ordinal := ordinal_of(pod.metadata.name)) is not None
    }
    ended = [pod for o, pod in by_ordinal.items() if o in owner.range and pod.is_terminal]
    if ended:
        # Its name is needed: it is created again when it is deleted.
        return SetSync(status, delete=tuple(pod for pod in ended if not pod.is_terminating))
    state = _states(owner, by_ordinal, now)
    following = next_pods(owner.range, state, ordered=owner.is_ordered)
    create = tuple((o, _revision(owner, o, current, update)) for o in following.create)
    if create or following.waits_for is not None:
        return SetSync(status, create)
    condemned = [pod for o, pod in reversed(by_ordinal.items()) if o not in owner.range]
    if condemned:
        return SetSync(status, delete=_scaled_down(owner, condemned))
    return SetSync(status, delete=_outdated(owner, by_ordinal, update, now))


def _states(
    owner: StatefulSet, by_ordinal: dict[int, Pod], now: datetime
) -> Callable[[int], ReplicaState]:
    def state_of(ordinal: int) -> ReplicaState:
        pod = by_ordinal.get(ordinal)
        if pod is None:
            return ReplicaState.MISSING
        available = pod.available(owner.spec.min_ready_seconds, now)
        return ReplicaState.READY if available and pod.is_active else ReplicaState.NOT_READY

    return state_of


def _revision(owner: StatefulSet, ordinal: int, current: str, update: str) -> str:
    """Return the revision that a missing pod is created from: those below the partition stay."""
    rolling = owner.spec.update_strategy.rolling_update
    if owner.spec.update_strategy.type == "RollingUpdate" and rolling is None:
        remaining = owner.spec.ordinals.start + owner.status.current_replicas
        return current if ordinal < remaining else update
    return current if ordinal < owner.partition else update


def _scaled_down(owner: StatefulSet, condemned: Sequence[Pod]) -> tuple[Pod, ...]:
    if not owner.is_ordered:
        return tuple(pod for pod in condemned if not pod.is_terminating)
    # One after another, from the highest ordinal.
    first = condemned[0]
    return () if first.is_terminating else (first,)


def _outdated(
    owner: StatefulSet, by_ordinal: dict[int, Pod], update: str, now: datetime
) -> tuple[Pod, ...]:
    """Return the pods to delete for an update, from the highest ordinal down to the partition."""
    if owner.spec.update_strategy.type == "OnDelete":
        return ()
    own = {ordinal: pod for ordinal, pod in by_ordinal.items() if ordinal in owner.range}
    seconds = owner.spec.min_ready_seconds
    unavailable = [
        pod for pod in own.values() if not (pod.is_active and pod.available(seconds, now))
    ]
    room = owner.max_unavailable - len(unavailable)
    outdated = [
        pod
        for ordinal, pod in reversed(own.items())
        if ordinal >= owner.partition
        and pod.metadata.labels.get(HASH_LABEL) != update
        and not pod.is_terminating
    ]
    return tuple(outdated[: max(room, 0)])


def _status(
    owner: StatefulSet, pods: Sequence[Pod], current: str, update: str, now: datetime
) -> StatefulSetStatus:
    alive = [pod for pod in pods if not pod.is_terminating]
    updated = sum(pod.metadata.labels.get(HASH_LABEL) == update for pod in alive)
    ready = sum(pod.ready for pod in pods)
    complete = updated == owner.spec.replicas == len(pods) and ready == len(pods)
    rolls = owner.spec.update_strategy.type == "RollingUpdate" and owner.partition == (
        owner.spec.ordinals.start
    )
    if complete and rolls:
        current = update
    return replace(
        owner.status,
        observed_generation=owner.metadata.generation,
        replicas=len(pods),
        ready_replicas=ready,
        available_replicas=sum(pod.available(owner.spec.min_ready_seconds, now) for pod in pods),
        current_replicas=sum(pod.metadata.labels.get(HASH_LABEL) == current for pod in alive),
        updated_replicas=updated,
        current_revision=current,
        update_revision=update,
        collision_count=owner.status.collision_count or 0,
    )
