"""Which taints of a cluster came from policies, as an annotation keeps it, and how policies fare.

What policies want is clusterpolicies.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from sully.api.cluster.types import ManagedCluster
from sully.api.sully.policy_types import ClusterTaintPolicy
from sully.domain.clusterpolicies import Mark
from sully.domain.placement.conditions import Finding
from sully.domain.placement.predicates import select_labels
from sully.domain.placement.status import MisconfiguredError
from sully.machinery.labels import Selector

OWNED = "sully.dev/policy-taints"
"""The annotation of a cluster that lists the taints which policies set."""
APPLIED = "sully.dev/Applied"


def write_marks(marks: Iterable[Mark]) -> str:
    """Write taints down: `key=value:effect`, in order, with commas between."""
    return ",".join(sorted(_text(*mark) for mark in marks))


def _text(key: str, value: str, effect: str) -> str:
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def read_marks(text: str) -> frozenset[Mark]:
    """Read what was written; of what somebody wrote by hand, what cannot be read is nobody's."""
    found = set()
    for each in filter(None, text.split(",")):
        name, colon, effect = each.rpartition(":")
        key, _, value = name.partition("=")
        if colon and key:
            found.add((key, value, effect))
    return frozenset(found)


def policy_finding(policy: ClusterTaintPolicy, clusters: Iterable[ManagedCluster]) -> Finding:
    """Say for how many clusters a policy is, and how many have a taint of it."""
    if policy.spec.cluster_selector is None:
        text = "There is no clusterSelector, so the policy is for no cluster."
        return Finding(APPLIED, "False", "NoSelector", text)
    try:
        selector = select_labels(policy.spec.cluster_selector)
    except MisconfiguredError as error:
        return Finding(APPLIED, "False", "InvalidSelector", str(error))
    selected, tainted = _count(policy, selector, clusters)
    text = f"{selected} clusters selected, {tainted} tainted."
    if not selected:
        return Finding(APPLIED, "False", "NoCluster", text)
    return Finding(APPLIED, "True", "Applied", text)


def _count(
    policy: ClusterTaintPolicy, selector: Selector, clusters: Iterable[ManagedCluster]
) -> tuple[int, int]:
    marks = {(rule.taint.key, rule.taint.value, rule.taint.effect) for rule in policy.spec.rules}
    selected = tainted = 0
    for cluster in clusters:
        if selector.matches(cluster.metadata.labels):
            selected += 1
            owned = cluster.metadata.annotations.get(OWNED, "")
            tainted += bool(owned) and not marks.isdisjoint(read_marks(owned))
    return selected, tainted
