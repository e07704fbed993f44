"""One rule of a ClusterTaintPolicy and one cluster: whether the taint should be there.

The delays count from the transition of the condition. What that does not show is recorded in a
state: when a fault with several statuses began, and how often the cluster has failed.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec.structs import replace

from sully.api.cluster.taints.policy_states import RuleState
from sully.api.cluster.types import ManagedCluster
from sully.api.resource.annotations import CLEARED_AT
from sully.api.sully.types import ClusterTaintPolicyRule
from sully.domain.clusters.health import condition
from sully.domain.devicepolicies.flaps import count_faults, is_declared_healthy
from sully.domain.devicepolicies.rules import time_in
from sully.domain.devicepolicies.settings import Flaps
from sully.machinery.formats.timestamps import later


class RuleVerdict(msgspec.Struct, frozen=True):
    """Whether the taint should be there, when that may change by itself, and what to record."""

    is_set: bool
    requeue_at: datetime | None
    state: RuleState


class _Observation(msgspec.Struct, frozen=True):
    """Whether the cluster is faulty, and since when."""

    faulty: bool
    since: datetime


def judge_rule(
    rule: ClusterTaintPolicyRule,
    cluster: ManagedCluster,
    now: datetime,
    *,
    present: bool,
    state: RuleState,
    flaps: Flaps | None = None,
) -> RuleVerdict:
    """Decide about the taint of a rule, which is present if a policy has set it."""
    seen = _observe(rule, cluster, state, now)
    seconds = rule.set_after_seconds if seen.faulty else rule.clear_after_seconds
    turn = later(seen.since, seconds)
    is_due = now >= turn
    state = _next_state(rule, seen, state, flaps, now, counts=present or is_due)
    if seen.faulty or not present:
        is_set = seen.faulty and (present or is_due)
        # Without a fault and without a taint there is nothing to keep.
        state = state if seen.faulty else replace(state, flapping=False)
        return _verdict(state, flaps, is_set, turn if seen.faulty and not is_set else None)
    if not is_due:
        return _verdict(state, flaps, True, turn)
    cleared = time_in(cluster.metadata.annotations, CLEARED_AT)
    if not state.flapping:
        return _verdict(state, flaps, False, None)
    if is_declared_healthy(seen.since, cleared, now):
        return _verdict(replace(state, flapping=False, fault_times=()), flaps, False, None)
    return _verdict(state, flaps, True, None)


def _verdict(
    state: RuleState, flaps: Flaps | None, is_set: bool, turn: datetime | None
) -> RuleVerdict:
    times = [turn] if turn is not None else []
    if flaps is not None and state.fault_times and not state.flapping:
        # When one of them is forgotten.
        times.append(later(min(state.fault_times), flaps.within))
    return RuleVerdict(is_set, min(times, default=None), state)


def _observe(
    rule: ClusterTaintPolicyRule, cluster: ManagedCluster, state: RuleState, now: datetime
) -> _Observation:
    current = condition(cluster, rule.condition.type)
    status = current.status if current is not None else "Unknown"
    since = (current.last_transition_time if current is not None else None) or _born(cluster, now)
    faulty = status == rule.condition.status or status in rule.condition.or_statuses
    if faulty and rule.condition.or_statuses and state.since is not None:
        # One clock: the condition only shows when it got its current status.
        since = min(since, state.since)
    return _Observation(faulty, since)


def _next_state(
    rule: ClusterTaintPolicyRule,
    seen: _Observation,
    state: RuleState,
    flaps: Flaps | None,
    now: datetime,
    *,
    counts: bool,
) -> RuleState:
    times = state.fault_times
    if seen.faulty and counts and seen.since not in times:
        times = (*times, seen.since)
    recent, flapping = count_faults(flaps, times, now, flapping=state.flapping, faulty=seen.faulty)
    since = seen.since if seen.faulty and rule.condition.or_statuses else None
    return replace(state, since=since, fault_times=recent, flapping=flapping, held_back="")


def _born(cluster: ManagedCluster, now: datetime) -> datetime:
    """Return since when a condition without a time may have been as it is."""
    return cluster.metadata.creation_timestamp or now
