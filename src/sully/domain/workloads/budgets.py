"""What a PodDisruptionBudget allows: how many healthy pods there are, must be, and may go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from sully.api.core.pods.conditions import DISRUPTION_TARGET
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.percentages import scaled
from sully.domain.workloads.workloads import Budget, BudgetCondition, BudgetStatus
from sully.machinery.formats.timestamps import later
from sully.machinery.meta import OwnerReference, find_condition

DELETION_TIMEOUT = timedelta(minutes=2)
"""How long a pod whose eviction was granted counts as evicted although it is still there."""
ALLOWED = "DisruptionAllowed"
_BY_NODE = "TerminationByKubelet"


class Scale(msgspec.Struct, frozen=True):
    """The controller of pods, and its number of replicas."""

    uid: str
    replicas: int


FindScale = Callable[[OwnerReference], Scale | None]


class UnknownControllerError(Exception):
    """The size of a group is unknown, because an unknown controller decides about it."""


class Need(msgspec.Struct, frozen=True):
    """How many pods a budget is reckoned from, and how many of them must be healthy."""

    expected: int
    healthy: int
    unmanaged: tuple[str, ...] = ()
    """Names of pods without a controller: percentages do not count them."""


def need(budget: Budget, pods: Sequence[Pod], scale: FindScale) -> Need:
    """Return what a budget requires, given its pods and their controllers."""
    least, away = budget.spec.min_available, budget.spec.max_unavailable
    if away is not None:
        expected, unmanaged = _expected(pods, scale)
        return Need(expected, max(expected - scaled(away, expected, up=True), 0), unmanaged)
    if isinstance(least, str):
        expected, unmanaged = _expected(pods, scale)
        return Need(expected, scaled(least, expected, up=True), unmanaged)
    return Need(len(pods), least or 0) if least is not None else Need(0, 0)


def _expected(pods: Sequence[Pod], scale: FindScale) -> tuple[int, tuple[str, ...]]:
    """Return the sum of the replicas of the pods' controllers, each once."""
    sizes: dict[str, int] = {}
    counted: set[str] = set()
    unmanaged: list[str] = []
    for pod in pods:
        controller = pod.metadata.controller()
        if controller is None:
            unmanaged.append(pod.metadata.name)
        elif controller.uid not in counted:
            counted.add(controller.uid)
            size = scale(controller)
            if size is None:
                raise UnknownControllerError(f'found no controllers for pod "{pod.metadata.name}"')
            sizes[size.uid] = size.replicas
    return sum(sizes.values()), tuple(unmanaged)


class Count(msgspec.Struct, frozen=True):
    """The pods of a budget at one moment."""

    healthy: int
    disrupted: dict[str, datetime | None]
    overdue: tuple[Pod, ...]
    """Pods that should have been deleted by now and were not."""
    recheck: datetime | None
    """When the next pod that should go will be overdue."""


def count(budget: Budget, pods: Iterable[Pod], now: datetime) -> Count:
    """Count the healthy pods; those that were granted an eviction count as evicted for a while."""
    granted = budget.status.disrupted_pods
    healthy, until, overdue = 0, {}, []
    for pod in pods:
        since = granted.get(pod.metadata.name)
        if pod.is_terminating:
            continue
        if since is not None and later(since, DELETION_TIMEOUT) > now:
            until[pod.metadata.name] = since
            continue
        if since is not None:
            overdue.append(pod)
        healthy += pod.ready
    first = min(until.values(), default=None)
    recheck = None if first is None else later(first, DELETION_TIMEOUT)
    return Count(healthy, dict(until), tuple(overdue), recheck)


def budget_status(budget: Budget, need: Need, count: Count, now: datetime) -> BudgetStatus:
    """Return the status of a budget.

    Without expected pods nothing is allowed: the first pods that appear must not be taken away
    before they were counted.
    """
    spare = count.healthy - need.healthy
    allowed = spare if need.expected > 0 and spare > 0 else 0
    status = BudgetStatus(
        observed_generation=budget.metadata.generation,
        disrupted_pods=count.disrupted,
        disruptions_allowed=allowed,
        current_healthy=count.healthy,
        desired_healthy=need.healthy,
        expected_pods=need.expected,
        conditions=budget.status.conditions,
    )
    state, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    return _with_condition(status, state, reason, "", now)


def failed_status(budget: Budget, why: str, now: datetime) -> BudgetStatus:
    """Return the status of a budget that cannot be reckoned: nothing is allowed."""
    status = replace(budget.status, disruptions_allowed=0)
    return _with_condition(status, "False", "SyncFailed", why, now)


def _with_condition(
    status: BudgetStatus, state: str, reason: str, message: str, now: datetime
) -> BudgetStatus:
    old = find_condition(status.conditions, ALLOWED)
    same = old is not None and old.status == state
    updated = BudgetCondition(
        type=ALLOWED,
        status=state,
        observed_generation=status.observed_generation,
        last_transition_time=old.last_transition_time if old and same else now,
        reason=reason,
        message=message,
    )
    if old is None:
        return replace(status, conditions=(*status.conditions, updated))
    remaining = tuple(
        updated if condition.type == ALLOWED else condition for condition in status.conditions
    )
    return replace(status, conditions=remaining)


def stale_at(pod: Pod) -> datetime | None:
    """Return when the announcement that a pod will be disrupted is no longer to be believed.

    A node may announce it long before the end, and a pod that is terminating or has finished needs
    no correction; for those there is no such time.
    """
    target = pod.condition(DISRUPTION_TARGET)
    if target is None or target.status != "True" or target.reason == _BY_NODE or not pod.is_active:
        return None
    since = target.last_transition_time
    return None if since is None else later(since, DELETION_TIMEOUT)
