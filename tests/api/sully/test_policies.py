"""Policies that turn conditions of clusters into taints: what a write checks and shows."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import manifests
from api.cluster.hub import Hub
from sully.api import build_scheme
from sully.api.sully.policies.cluster import POLICIES
from sully.api.sully.types import ClusterTaintPolicy
from sully.machinery.compat import Compat

Obj = dict[str, Any]

RULE: Obj = {
    "condition": {"type": "example.com/StorageHealthy", "status": "False"},
    "setAfterSeconds": 30,
    "clearAfterSeconds": 300,
    "taint": {"key": "example.com/storage", "value": "bad", "effect": "NoSelect"},
}


def _policy(*rules: Obj, **spec: Any) -> Obj:
    return manifests.body("ClusterTaintPolicy", "storage", {"rules": list(rules), **spec})


def _with(**parts: Any) -> Obj:
    return {
        name: {**RULE[name], **part} if isinstance(part, dict) else part
        for name, part in (RULE | parts).items()
    }


WRONG: dict[str, tuple[Obj, str]] = {
    "no rules": (_policy(), "spec.rules: Required value: a policy without rules does nothing"),
    "too many rules": (
        _policy(*[RULE] * 65),
        "spec.rules: Too many: 65: must have at most 64 items",
    ),
    "no condition": (
        _policy(_with(condition={"type": "", "status": ""})),
        "[spec.rules[0].condition.type: Required value,"
        " spec.rules[0].condition.status: Required value]",
    ),
    "another status": (
        _policy(_with(condition={"status": "Bad"})),
        'spec.rules[0].condition.status: Unsupported value: "Bad": supported values: "False",'
        ' "True", "Unknown"',
    ),
    "back in time, and indefinitely": (
        _policy(_with(setAfterSeconds=-1, clearAfterSeconds=2**62)),
        "[spec.rules[0].setAfterSeconds: Invalid value: -1: must be between 0 and 31536000,"
        " inclusive, spec.rules[0].clearAfterSeconds: Invalid value: 4611686018427387904: must be"
        " between 0 and 31536000, inclusive]",
    ),
    "a taint of the hub": (
        _policy(_with(taint={"key": "cluster.open-cluster-management.io/unreachable"})),
        "spec.rules[0].taint.key: Invalid value:"
        ' "cluster.open-cluster-management.io/unreachable": is set by the hub from the cluster\'s'
        " health",
    ),
    "no taint": (
        _policy(_with(taint={"key": "", "effect": ""})),
        "[spec.rules[0].taint.key: Required value, spec.rules[0].taint.effect: Required value]",
    ),
    "an effect of devices": (
        _policy(_with(taint={"effect": "NoExecute"})),
        'spec.rules[0].taint.effect: Unsupported value: "NoExecute": supported values: "NoSelect",'
        ' "NoSelectIfNew", "PreferNoSelect"',
    ),
    "another status in addition to, and the same again": (
        _policy(_with(condition={"orStatuses": ["Bad", "False"]})),
        '[spec.rules[0].condition.orStatuses[0]: Unsupported value: "Bad": supported values:'
        ' "False", "True", "Unknown", spec.rules[0].condition.orStatuses[1]: Duplicate value:'
        ' "False"]',
    ),
    "one flap": (
        _policy(RULE, flaps={"count": 1, "within": "soon"}),
        "[spec.flaps.count: Invalid value: 1: must be between 2 and 32, inclusive,"
        ' spec.flaps.within: Invalid value: "soon": must be a duration, for example 15s or 1h30m]',
    ),
    "more than all": (
        _policy(RULE, maxUnavailable="101%"),
        'spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
    ),
    "less than none": (
        _policy(RULE, maxUnavailable=-1),
        "spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0",
    ),
    "a selector that cannot select": (
        _policy(RULE, clusterSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
        "spec.clusterSelector.matchExpressions[0].values: Required value: must be specified when"
        " `operator` is 'In' or 'NotIn'",
    ),
}


@pytest.mark.parametrize(("body", "want"), WRONG.values(), ids=WRONG.keys())
async def test_refused(body: Obj, want: str) -> None:
    got = await Hub().create(body)

    assert (got.code, got.problems) == (422, want)


async def test_a_policy_can_be_read_as_a_value() -> None:
    got = await Hub().create(_policy(RULE, clusterSelector={"matchLabels": {"env": "prod"}}))

    read = msgspec.convert(got.obj, ClusterTaintPolicy)

    assert read.spec.cluster_selector is not None
    assert read.spec.cluster_selector.match_labels == {"env": "prod"}
    assert msgspec.to_builtins(read.spec.rules[0]) == RULE
    assert read.metadata.generation == 1


async def test_no_limit_and_a_limit_of_none_stay_apart() -> None:
    hub = Hub()
    without = await hub.create(_policy(RULE))
    none = await hub.patch(_policy(), {"spec": {"maxUnavailable": 0}})

    assert "maxUnavailable" not in without.obj["spec"]
    assert none.obj["spec"]["maxUnavailable"] == 0
    assert msgspec.convert(none.obj, ClusterTaintPolicy).spec.max_unavailable == 0


async def test_no_selector_and_an_empty_one_stay_apart() -> None:
    hub = Hub()
    without = await hub.create(_policy(RULE))
    everything = await hub.patch(_policy(), {"spec": {"clusterSelector": {}}})

    assert "clusterSelector" not in without.obj["spec"]
    assert everything.obj["spec"]["clusterSelector"] == {}
    assert everything.obj["metadata"]["generation"] == 2


async def test_conditions_are_written_to_the_status() -> None:
    hub = Hub()
    condition = {
        "type": "sully.dev/Applied",
        "status": "True",
        "reason": "Applied",
        "message": "2 clusters",
        "lastTransitionTime": "2030-01-01T12:00:00Z",
    }
    await hub.create(_policy(RULE) | {"status": {"conditions": [condition]}})

    change = {"status": {"conditions": [condition]}, "spec": {"rules": []}}
    got = await hub.patch(_policy(), change, subresource="status")
    wrong = await hub.patch(
        _policy(), {"status": {"conditions": [condition | {"status": "X"}]}}, subresource="status"
    )

    assert got.obj["status"]["conditions"] == [condition]
    assert got.obj["spec"]["rules"] == [RULE]
    assert wrong.code == 422


def test_row() -> None:
    obj = {"metadata": {"name": "storage"}, "spec": {"rules": [RULE, RULE]}}
    now = datetime(2030, 1, 1, tzinfo=UTC)

    assert [column.cell(obj, now) for column in POLICIES.columns][:5] == [
        "storage",
        "example.com/StorageHealthy",
        "False",
        "example.com/storage",
        "NoSelect",
    ]


def test_kubernetes_has_no_policies() -> None:
    scheme = build_scheme(Compat.KUBERNETES)

    assert scheme.find("sully.dev", "v1alpha1", "clustertaintpolicies") is None
