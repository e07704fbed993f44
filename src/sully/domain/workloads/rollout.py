"""How old pods make way for new ones: the next sizes of a Deployment's ReplicaSets.

Each function answers with the sizes to set now, by name; nothing to set means that the step is
over or must wait for pods. The Deployment controller asks again whenever a ReplicaSet reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from sully.domain.workloads.percentages import scaled
from sully.domain.workloads.revisions import DESIRED, MAXIMUM, by_age, noted
from sully.domain.workloads.workloads import Deployment, ReplicaSet

Sizes = dict[str, int]


class Limits(msgspec.Struct, frozen=True):
    """How many pods there may be above the desired number, and how many may be missing."""

    surge: int = 0
    unavailable: int = 0


def limits(deployment: Deployment) -> Limits:
    """Return the limits of a rolling update in pods; others have none."""
    steps, desired = deployment.spec.strategy.rolling_update, deployment.spec.replicas
    if not is_rolling(deployment) or steps is None:
        return Limits()
    surge = scaled(steps.max_surge, desired, up=True)
    missing = scaled(steps.max_unavailable, desired, up=False)
    if surge == 0 and missing == 0:
        # Two percentages may both round to nothing, and the rollout must go on.
        missing = 1
    return Limits(surge, min(missing, desired))


def is_rolling(deployment: Deployment) -> bool:
    """Report whether pods are exchanged a few at a time."""
    return deployment.spec.strategy.type == "RollingUpdate"


def total(sets: Iterable[ReplicaSet]) -> int:
    """Return how many pods ReplicaSets are to have."""
    return sum(replica_set.spec.replicas for replica_set in sets)


def active(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Return the ReplicaSets that are to have pods."""
    return [replica_set for replica_set in sets if replica_set.spec.replicas > 0]


def new_size(deployment: Deployment, sets: Sequence[ReplicaSet], current: int) -> int:
    """Return to what the present ReplicaSet may grow from `current`; `sets` are all there are."""
    desired = deployment.spec.replicas
    if not is_rolling(deployment):
        return desired
    room = desired + limits(deployment).surge - total(sets)
    return current if room <= 0 else current + min(room, desired - current)


def grow(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> Sizes:
    """Return how the present ReplicaSet grows in a rolling update, or shrinks if it is too big."""
    desired, size = deployment.spec.replicas, new.spec.replicas
    goal = desired if size > desired else new_size(deployment, [*old, new], size)
    return {} if goal == size else {new.name: goal}


def shrink(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> Sizes:
    """Return how the old ReplicaSets shrink in a rolling update."""
    least = deployment.spec.replicas - limits(deployment).unavailable
    coming = new.spec.replicas - new.status.available_replicas
    spare = total([*old, new]) - least - coming
    if spare <= 0 or not active(old):
        return {}
    sizes = {replica_set.name: replica_set.spec.replicas for replica_set in by_age(active(old))}
    before = dict(sizes)
    _drop_unhealthy(sizes, old, spare)
    available = sum(replica_set.status.available_replicas for replica_set in (*active(old), new))
    left = available - least
    for name in sizes:
        if left <= 0:
            break
        step = min(sizes[name], left)
        sizes[name] -= step
        left -= step
    return {name: size for name, size in sizes.items() if size != before[name]}


def _drop_unhealthy(sizes: Sizes, old: Sequence[ReplicaSet], most: int) -> None:
    """Give up pods that do not serve anyway; they would keep the rollout from moving."""
    for replica_set in by_age(active(old)):
        step = min(most, replica_set.spec.replicas - replica_set.status.available_replicas)
        if step > 0:
            sizes[replica_set.name] -= step
            most -= step


def resize(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> Sizes:
    """Return the sizes after the Deployment itself was scaled.

    Those that stay are named too: they take note of the new size of the whole.
    """
    desired = deployment.spec.replicas
    single = _only(new, old)
    if single is not None:
        return {single.name: desired}
    if not is_rolling(deployment) or (new is not None and _saturated(deployment, new)):
        return {replica_set.name: 0 for replica_set in active(old)}
    return _in_proportion(deployment, active([*old, *([new] if new is not None else [])]))


def _only(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """Return the one ReplicaSet that takes all changes: the one with pods, or the newest."""
    everyone = [*old, *([new] if new is not None else [])]
    with_pods = active(everyone)
    if len(with_pods) > 1 or not everyone:
        return None
    return with_pods[0] if with_pods else (new or by_age(old)[-1])


def _saturated(deployment: Deployment, new: ReplicaSet) -> bool:
    sizes = (new.spec.replicas, new.status.available_replicas, noted(new, DESIRED))
    return all(size == deployment.spec.replicas for size in sizes)


def _in_proportion(deployment: Deployment, sets: list[ReplicaSet]) -> Sizes:
    """Spread a change of size over ReplicaSets by their size, the largest first.

    Among equals the newer one grows first and the older one shrinks first.
    """
    desired = deployment.spec.replicas
    allowed = desired + limits(deployment).surge if desired else 0
    change = allowed - total(sets)
    ordered = by_age(sets)
    if change > 0:
        ordered.reverse()
    ordered.sort(key=lambda replica_set: -replica_set.spec.replicas)
    sizes, done = {}, 0
    for replica_set in ordered:
        share = _share(deployment, replica_set, allowed, change, done)
        sizes[replica_set.name] = replica_set.spec.replicas + share
        done += share
    # A Deployment that was paused from the start has no set to scale.
    if change and ordered:
        largest = ordered[0].name
        sizes[largest] = max(sizes[largest] + change - done, 0)
    return sizes


def _share(
    deployment: Deployment, replica_set: ReplicaSet, allowed: int, change: int, done: int
) -> int:
    if change == done:
        return 0
    size = replica_set.spec.replicas
    if deployment.spec.replicas == 0:
        part = -size
    else:
        # What the whole was when this one got its size.
        whole = noted(replica_set, MAXIMUM) or deployment.status.replicas or size
        part = (2 * size * allowed + whole) // (2 * whole) - size
    return min(part, change - done) if change > 0 else max(part, change - done)


def scaled_since(deployment: Deployment, sets: Iterable[ReplicaSet]) -> bool:
    """Report whether the Deployment has another size than when its ReplicaSets got theirs."""
    seen = (noted(replica_set, DESIRED) for replica_set in active(sets))
    return any(size is not None and size != deployment.spec.replicas for size in seen)
