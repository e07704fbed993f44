"""Conditions that become taints, with delays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from fleets import expression, labelled, later
from sully.api.cluster.taints.policy_taints import TaintId
from sully.api.cluster.types import LabelSelector, ManagedCluster, Taint
from sully.api.sully.types import (
    ClusterTaintPolicy,
    ClusterTaintPolicyRule,
)
from sully.domain.clusters.policies import PolicyVerdict, policy_taints
from sully.testing.builders import cluster, cluster_policy, cluster_policy_rule, cluster_taint
from sully.testing.clock import NOON

EVERYWHERE = LabelSelector()


def rule(
    status: str = "False", *, after: int = 30, clear: int = 60, key: str = "hot"
) -> ClusterTaintPolicyRule:
    return cluster_policy_rule(
        "Cool", status, key=key, set_after_seconds=after, clear_after_seconds=clear
    )


def policy(
    *rules: ClusterTaintPolicyRule, selector: LabelSelector | None = EVERYWHERE
) -> ClusterTaintPolicy:
    return cluster_policy(*rules, selector=selector)


HOT: TaintId = ("hot", "", "NoSelect")
NEW, OLD = cluster_taint("hot", "", added=None), cluster_taint("hot", "", added=-90)
BORN: dict[str, Any] = {"creation_timestamp": NOON}


def one(status: str, *taints: Taint) -> ManagedCluster:
    """Return a cluster whose condition has had its status since noon."""
    return cluster("c", *taints, conditions={"Cool": status}, **BORN)


@dataclass(frozen=True)
class Case:
    cluster: ManagedCluster
    at: float
    taints: tuple[Taint, ...] = ()
    owned: bool = False
    look: float | None = None
    policies: tuple[ClusterTaintPolicy, ...] = (policy(rule()),)
    was_owned: bool = False


CASES = {
    "not yet": Case(one("False"), 29, look=30),
    "long enough": Case(one("False"), 30, (NEW,), owned=True),
    "set and lasting": Case(one("False", OLD), 50, (OLD,), owned=True, was_owned=True),
    "otherwise, not yet long": Case(
        one("True", OLD), 59, (OLD,), owned=True, look=60, was_owned=True
    ),
    "otherwise, long enough": Case(one("True", OLD), 60, was_owned=True),
    "back before it was cleared": Case(one("False", OLD), 1, (OLD,), owned=True, was_owned=True),
    "another user's is not cleared": Case(one("True", OLD), 999, (OLD,)),
    "another user's is not doubled, nor claimed": Case(one("False", OLD), 999, (OLD,)),
    "removed by a user, it is set again": Case(
        one("False"), 999, (NEW,), owned=True, was_owned=True
    ),
    "no policy any more": Case(one("False", OLD), 1, policies=(), was_owned=True),
    "not for this cluster": Case(
        one("False"), 99, policies=(policy(rule(), selector=labelled(a="b")),)
    ),
    "for no cluster": Case(one("False"), 99, policies=(policy(rule(), selector=None),)),
    "a selector that cannot be read": Case(
        one("False"),
        99,
        policies=(
            policy(
                rule(),
                selector=LabelSelector(match_expressions=(expression("a", "Like"),)),
            ),
        ),
    ),
    "a missing condition is Unknown, since the cluster exists": Case(
        cluster("c", **BORN), 30, (NEW,), owned=True, policies=(policy(rule("Unknown")),)
    ),
    "two rules for one taint: one is enough": Case(
        one("False"),
        0,
        (NEW,),
        owned=True,
        look=30,
        policies=(policy(rule(), rule(after=0)),),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_policy(case: Case) -> None:
    before = frozenset((HOT,)) if case.was_owned else frozenset()
    got = policy_taints(case.cluster, case.policies, before, later(case.at))

    look = later(case.look) if case.look is not None else None
    assert got == PolicyVerdict(case.taints, frozenset((HOT,)) if case.owned else frozenset(), look)


def test_other_taints_keep_their_places() -> None:
    result = one("False", cluster_taint("a"), OLD, cluster_taint("b"))
    cleared = policy_taints(result, (), frozenset((HOT,)), later(0))
    added = policy_taints(
        one("False", cluster_taint("a")), [policy(rule())], frozenset(), later(30)
    )

    assert cleared.taints == (cluster_taint("a"), cluster_taint("b"))
    assert added.taints == (cluster_taint("a"), NEW)
