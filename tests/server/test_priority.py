"""Which priority level a request belongs to, and to whom it counts."""

from __future__ import annotations

import pytest

from sully.server.authentication.groups import ANONYMOUS
from sully.server.authentication.service_accounts import account_groups
from sully.server.authorization.attributes import Attributes
from sully.server.flowcontrol.priority import LEVELS, flow_of
from sully.server.requests import User


def account(namespace: str, name: str) -> User:
    groups = (*account_groups(namespace), "system:authenticated")
    return User(f"system:serviceaccount:{namespace}:{name}", groups)


ALICE = User("alice", ("system:authenticated",))
NODE = User("system:node:n", ("system:nodes", "system:authenticated"))
SCHEDULER = User("system:kube-scheduler", ("system:authenticated",))
ROOT = User("root", ("system:masters", "system:authenticated"))
PODS = Attributes("list", "", "v1", "pods")
LEASE = Attributes("update", "coordination.k8s.io", "v1", "leases", "", "kube-system", "x")
STATUS = Attributes("patch", "", "v1", "nodes", "status", "", "n")

# name → (who, what, level, whom it counts to)
CASES = {
    "a user": (ALICE, PODS, "global-default", "alice"),
    "a user's lease": (ALICE, LEASE, "global-default", "alice"),
    "nobody in particular": (ANONYMOUS, PODS, "catch-all", "system:anonymous"),
    "a member of system:masters": (ROOT, PODS, "exempt", "root"),
    "a node's lease": (NODE, LEASE, "node-high", "system:node:n"),
    "a node's status": (NODE, STATUS, "node-high", "system:node:n"),
    "a node's pods": (NODE, PODS, "system", "system:node:n"),
    "a user's view of a node": (ALICE, STATUS, "global-default", "alice"),
    "the scheduler": (SCHEDULER, PODS, "workload-high", "system:kube-scheduler"),
    "the scheduler's lease": (SCHEDULER, LEASE, "leader-election", "system:kube-scheduler"),
    "a controller": (
        account("kube-system", "gc"),
        PODS,
        "workload-high",
        "system:serviceaccount:kube-system:gc",
    ),
    "an account": (account("shop", "web"), PODS, "workload-low", "shop"),
    "another account of its namespace": (account("shop", "db"), PODS, "workload-low", "shop"),
    "an account's lease": (account("shop", "web"), LEASE, "workload-low", "shop"),
}


@pytest.mark.parametrize("name", CASES)
def test_level(name: str) -> None:
    user, attributes, level, counts_to = CASES[name]

    flow = flow_of(user, attributes)

    assert (flow.level, flow.distinguisher) == (level, counts_to)


def test_every_level_is_used() -> None:
    assert {level for _, _, level, _ in CASES.values()} == set(LEVELS)
