"""Policies that turn conditions of clusters into taints, with delays either way.

A rule sets its taint once the condition has had the status long enough, and clears it once the
condition has had another status long enough; in between the taint does not change. Which taints are
a policy's own must be recorded by the writer: one that another user set is never taken away. The
hub's own health taints are in health.py, a single rule in policy_rules.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

import msgspec
from msgspec.structs import replace

from sully.api.cluster.taints.policy_states import RuleState, StateKey
from sully.api.cluster.taints.policy_taints import TaintId, write_taint_ids
from sully.api.cluster.types import ManagedCluster, Taint
from sully.api.sully.types import ClusterTaintPolicy, ClusterTaintPolicyRule
from sully.domain.clusters.policy_rules import judge_rule
from sully.domain.devicepolicies.settings import flap_settings
from sully.domain.placement.predicates import select_labels
from sully.domain.placement.results.status import MisconfiguredError


def taint_id(taint: Taint) -> TaintId:
    """Return what makes a taint the same as another."""
    return taint.key, taint.value, taint.effect


class PolicyVerdict(msgspec.Struct, frozen=True):
    """The taints of a cluster after policies, which of them are theirs, and when to requeue it."""

    taints: tuple[Taint, ...]
    owned: frozenset[TaintId]
    requeue_at: datetime | None = None
    states: tuple[RuleState, ...] = ()


Refusal = Callable[[ClusterTaintPolicy], str]
"""Returns which limit keeps a policy from tainting another cluster; empty if none does."""


def policy_taints(
    cluster: ManagedCluster,
    policies: Iterable[ClusterTaintPolicy],
    owned: frozenset[TaintId],
    now: datetime,
    *,
    states: Iterable[RuleState] = (),
    refusal: Refusal = lambda _: "",
) -> PolicyVerdict:
    """Bring the taints of a cluster in line with all policies that are for it."""
    present = {taint_id(taint) for taint in cluster.spec.taints}
    ours = owned & present
    desired: dict[TaintId, None] = {}
    times: list[datetime] = []
    recorded = {state.key(): state for state in states}
    new_states: dict[StateKey, RuleState] = {}
    for policy, rule in _rules(cluster, policies):
        at = _id(rule)
        old = _state(policy, rule, recorded)
        flaps = flap_settings(policy.spec.flaps)
        verdict = judge_rule(rule, cluster, now, present=at in ours, state=old, flaps=flaps)
        is_set, state = verdict.is_set, verdict.state
        if is_set and at not in present and not _taints(policy, {*ours, *desired}):
            state = replace(state, held_back=refusal(policy))
            is_set = not state.held_back
        if is_set:
            desired[at] = None
        if verdict.requeue_at is not None:
            times.append(verdict.requeue_at)
        new_states[state.key()] = state
    remaining = [
        one for one in cluster.spec.taints if taint_id(one) not in ours or taint_id(one) in desired
    ]
    added = [at for at in desired if at not in present]
    new = (Taint(key=key, value=value, effect=effect) for key, value, effect in added)
    return PolicyVerdict(
        (*remaining, *new),
        frozenset((*ours.intersection(desired), *added)),
        min(times, default=None),
        tuple(new_states[key] for key in sorted(new_states) if not new_states[key].is_empty()),
    )


def _id(rule: ClusterTaintPolicyRule) -> TaintId:
    return rule.taint.key, rule.taint.value, rule.taint.effect


def policy_ids(policy: ClusterTaintPolicy) -> set[TaintId]:
    """Return the taints that a policy sets."""
    return set(map(_id, policy.spec.rules))


def _taints(policy: ClusterTaintPolicy, ids: Iterable[TaintId]) -> bool:
    """Report whether a cluster with these taints counts as tainted by a policy."""
    return not policy_ids(policy).isdisjoint(ids)


def _state(
    policy: ClusterTaintPolicy,
    rule: ClusterTaintPolicyRule,
    recorded: dict[StateKey, RuleState],
) -> RuleState:
    """Return what a rule recorded for a cluster."""
    new = RuleState(
        policy=policy.metadata.name,
        condition=f"{rule.condition.type}={rule.condition.status}",
        taint=write_taint_ids((_id(rule),)),
    )
    return recorded.get(new.key(), new)


def _rules(
    cluster: ManagedCluster, policies: Iterable[ClusterTaintPolicy]
) -> Iterator[tuple[ClusterTaintPolicy, ClusterTaintPolicyRule]]:
    """Yield the rules that are for a cluster, those of the first policy by name first."""
    for policy in sorted(policies, key=lambda one: one.metadata.name):
        selector = policy.spec.cluster_selector
        if selector is None or policy.metadata.deletion_timestamp is not None:
            continue
        try:
            if select_labels(selector).matches(cluster.metadata.labels):
                yield from ((policy, rule) for rule in policy.spec.rules)
        except MisconfiguredError:
            # A selector that cannot be read selects nothing; its policy's status shows it.
            continue
