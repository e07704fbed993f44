"""Policies that turn conditions of clusters into taints, with delays either way.

A rule sets its taint once the condition has had the status long enough, and clears it once the
condition has had another status long enough; in between the taint does not change. Which taints are
a policy's own must be remembered by the writer: one that another user set is never taken away. The
hub's own health taints are in health.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from sully.api.cluster.policy_taints import TaintId
from sully.api.cluster.types import ManagedCluster, Taint
from sully.api.sully.types import ClusterTaintPolicy, ClusterTaintPolicyRule
from sully.domain.clusters.health import condition
from sully.domain.placement.predicates import select_labels
from sully.domain.placement.results.status import MisconfiguredError


def taint_id(taint: Taint) -> TaintId:
    """Return what makes a taint the same as another."""
    return taint.key, taint.value, taint.effect


class PolicyVerdict(msgspec.Struct, frozen=True):
    """The taints of a cluster after policies, which of them are theirs, and when to requeue it."""

    taints: tuple[Taint, ...]
    owned: frozenset[TaintId]
    look_at: datetime | None = None


def policy_taints(
    cluster: ManagedCluster,
    policies: Iterable[ClusterTaintPolicy],
    owned: frozenset[TaintId],
    now: datetime,
) -> PolicyVerdict:
    """Bring the taints of a cluster in line with all policies that are for it."""
    present = {taint_id(taint) for taint in cluster.spec.taints}
    ours = owned & present
    wanted: dict[TaintId, None] = {}
    looks: list[datetime] = []
    for rule in _rules(cluster, policies):
        at = rule.taint.key, rule.taint.value, rule.taint.effect
        is_set, look_at = judge_rule(rule, cluster, now, present=at in ours)
        if is_set:
            wanted[at] = None
        if look_at is not None:
            looks.append(look_at)
    kept = [
        one for one in cluster.spec.taints if taint_id(one) not in ours or taint_id(one) in wanted
    ]
    added = [at for at in wanted if at not in present]
    new = (Taint(key=key, value=value, effect=effect) for key, value, effect in added)
    return PolicyVerdict(
        (*kept, *new), frozenset((*ours.intersection(wanted), *added)), min(looks, default=None)
    )


def judge_rule(
    rule: ClusterTaintPolicyRule, cluster: ManagedCluster, now: datetime, *, present: bool
) -> tuple[bool, datetime | None]:
    """Report whether the taint of a rule should be there, and when that may change by itself."""
    current = condition(cluster, rule.condition.type)
    status = current.status if current is not None else "Unknown"
    since = (current.last_transition_time if current is not None else None) or _born(cluster, now)
    holds = status == rule.condition.status
    if holds == present:
        return present, None
    seconds = rule.set_after_seconds if holds else rule.clear_after_seconds
    turn = since + timedelta(seconds=seconds)
    return (holds, None) if now >= turn else (present, turn)


def _born(cluster: ManagedCluster, now: datetime) -> datetime:
    """Return since when a condition without a time may have been as it is."""
    return cluster.metadata.creation_timestamp or now


def _rules(
    cluster: ManagedCluster, policies: Iterable[ClusterTaintPolicy]
) -> Iterator[ClusterTaintPolicyRule]:
    """Yield the rules that are for a cluster, those of the first policy by name first."""
    for policy in sorted(policies, key=lambda one: one.metadata.name):
        selector = policy.spec.cluster_selector
        if selector is None or policy.metadata.deletion_timestamp is not None:
            continue
        try:
            if select_labels(selector).matches(cluster.metadata.labels):
                yield from policy.spec.rules
        except MisconfiguredError:
            # A selector that cannot be read selects nothing; its policy's status shows it.
            continue
