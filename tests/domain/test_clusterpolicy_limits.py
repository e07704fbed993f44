"""How many clusters a policy may taint: a table, and random orders of events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fleets import labelled, later
from sully.api.cluster.taints.policy_states import STATES, write_states
from sully.api.cluster.taints.policy_taints import OWNED, read_taint_ids, write_taint_ids
from sully.api.cluster.types import LabelSelector, ManagedCluster
from sully.api.sully.types import (
    ClusterTaintPolicy,
)
from sully.domain.clusters.policies import policy_taints
from sully.domain.clusters.policy_limits import Member, limit_refusal
from sully.domain.clusters.policy_status import policy_findings
from sully.domain.workloads.percentages import scaled
from sully.testing.builders import cluster, cluster_policy, cluster_policy_rule

DOWN = frozenset((("down", "", "NoSelect"),))
CLUSTERS = 6


def policy(
    most: int | str | None, selector: LabelSelector | None = None, *keys: str
) -> ClusterTaintPolicy:
    rules = (cluster_policy_rule("Up", key=key) for key in keys or ("down",))
    return cluster_policy(*rules, selector=selector or LabelSelector(), max_unavailable=most)


def members(tainted: int, total: int = 10) -> list[Member]:
    return [
        Member(f"c{at}", {"half": str(at % 2)}, DOWN if at < tainted else frozenset())
        for at in range(total)
    ]


FULL = "2 of 2 clusters of the policy unavailable"
LIMITS: dict[str, tuple[ClusterTaintPolicy, int, str]] = {
    "no limit": (policy(None), 9, ""),
    "room": (policy(2), 1, ""),
    "reached": (policy(2), 2, FULL),
    "more than the limit, which was lowered": (
        policy(2),
        3,
        "3 of 2 clusters of the policy unavailable",
    ),
    "percent": (policy("20%"), 1, ""),
    "percent, reached": (policy("20%"), 2, FULL),
    "percent, rounded up": (policy("11%"), 1, ""),
    "none": (policy(0), 0, "0 of 0 clusters of the policy unavailable"),
    "of the selected ones": (policy("40%", labelled(half="1")), 3, ""),
    "taints of other policies do not count": (policy(2, None, "other"), 5, ""),
    "not a number": (policy("many"), 0, "0 of 0 clusters of the policy unavailable"),
}


@pytest.mark.parametrize(("limited", "tainted", "want"), LIMITS.values(), ids=LIMITS)
def test_limit(limited: ClusterTaintPolicy, tainted: int, want: str) -> None:
    assert limit_refusal(limited, "c9", members(tainted)) == want


class Fleet:
    """Clusters under one policy, reconciled one by one as the controller does it."""

    def __init__(self, policy: ClusterTaintPolicy) -> None:
        self.policy = policy
        self.clusters: dict[str, ManagedCluster] = {}
        for at in range(CLUSTERS):
            self.turn(f"c{at}", "True")

    def turn(self, name: str, status: str) -> None:
        old = self.clusters.get(name)
        new = cluster(name, conditions={"Up": status}, creation_timestamp=later(0))
        if old is not None:
            new = replace(old, status=new.status)
        self.clusters[name] = new

    def reconcile(self, name: str) -> None:
        one = self.clusters[name]
        owned = read_taint_ids(one.metadata.annotations.get(OWNED, ""))
        verdict = policy_taints(
            one,
            [self.policy],
            owned,
            later(1),
            refusal=lambda policy: limit_refusal(policy, name, self._members()),
        )
        annotations = {OWNED: write_taint_ids(verdict.owned), STATES: write_states(verdict.states)}
        self.clusters[name] = replace(
            one,
            metadata=replace(one.metadata, annotations=annotations),
            spec=replace(one.spec, taints=verdict.taints),
        )

    def tainted(self) -> set[str]:
        return {name for name, one in self.clusters.items() if one.spec.taints}

    def faulty(self) -> set[str]:
        return {
            name
            for name, one in self.clusters.items()
            if one.status.conditions[0].status == "False"
        }

    def _members(self) -> list[Member]:
        return [
            Member(
                name,
                one.metadata.labels,
                read_taint_ids(one.metadata.annotations.get(OWNED, "")),
            )
            for name, one in self.clusters.items()
        ]


names = st.integers(0, CLUSTERS - 1).map(lambda at: f"c{at}")
events = st.lists(st.tuples(names, st.sampled_from(("True", "False", ""))), max_size=40)


@given(
    st.one_of(st.integers(0, CLUSTERS), st.sampled_from(("0%", "20%", "50%", "100%"))),
    events,
    st.permutations([f"c{at}" for at in range(CLUSTERS)]),
)
def test_never_more_than_the_limit_and_the_order_does_not_matter(
    most: int | str, history: list[tuple[str, str]], order: list[str]
) -> None:
    fleet, limit = Fleet(policy(most)), scaled(most, CLUSTERS, up=True)
    for name, status in history:
        before = fleet.tainted()
        if status:
            fleet.turn(name, status)
        else:
            fleet.reconcile(name)
        assert len(fleet.tainted()) <= limit
        # Only a cluster that is reconciled changes: a limit removes no taint.
        assert fleet.tainted() ^ before <= {name}
    for name in (*order, *order):
        fleet.reconcile(name)

    assert fleet.tainted() <= fleet.faulty()
    assert len(fleet.tainted()) == min(limit, len(fleet.faulty()))


def test_a_tainted_cluster_gets_the_other_taints_of_the_policy() -> None:
    fleet = Fleet(policy(1, None, "down", "offline"))
    for name in ("c1", "c0"):
        fleet.turn(name, "False")
        fleet.reconcile(name)

    assert [taint.key for taint in fleet.clusters["c1"].spec.taints] == ["down", "offline"]
    assert fleet.tainted() == {"c1"}


def test_the_condition_names_a_cluster_that_waits() -> None:
    fleet = Fleet(policy(1))
    for name in ("c0", "c1", "c2"):
        fleet.turn(name, "False")
        fleet.reconcile(name)

    applied, held = policy_findings(fleet.policy, list(fleet.clusters.values()))

    assert applied.message == "6 clusters selected, 1 tainted."
    assert (held.type, held.status, held.reason, held.message) == (
        "sully.dev/HeldBack",
        "True",
        "LimitReached",
        "2 clusters wait, for instance c1: 1 of 1 clusters of the policy unavailable.",
    )
