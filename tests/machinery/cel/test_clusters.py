"""Predicates over clusters: what they see, and what comes with them."""

from typing import Any

import pytest

from sully.machinery.cel.environments.clusters import cluster_environment, cluster_input
from sully.machinery.cel.errors import CompileError, CostLimitError, EvaluationError

CLUSTER: dict[str, Any] = {
    "metadata": {
        "name": "c1",
        "labels": {"env": "prod", "tier": "2"},
        "annotations": {
            "j": '{"a": {"b": [1, 2]}}',
            "half": r'{"a": "x\ud800"}',
            "bad": "{",
            "deep": "[" * 100_000,
            "huge": '{"a": 1' + "0" * 400 + "}",
            "nan": '{"a": NaN}',
        },
    },
    "spec": {"taints": [{"key": "k", "effect": "NoSelect"}], "leaseDurationSeconds": 0},
    "status": {
        "allocatable": {"cpu": "8", "memory": 1024},
        "capacity": {"cpu": "8500m", "memory": "0.5Gi", "odd": "a lot"},
        "version": {"kubernetes": "v1.30.2"},
        "clusterClaims": [{"name": "region", "value": "eu"}],
    },
}
SCORES = {"demo": [{"name": "cpu", "value": 60}, {"name": "gpu", "value": -5}], "empty": []}
INPUT = cluster_input(CLUSTER, SCORES.get)

TRUE = (
    'managedCluster.metadata.labels["env"] == "prod"',
    'managedCluster.metadata.name.matches("^c[0-9]$")',
    'int(managedCluster.metadata.labels["tier"]) > 1',
    'managedCluster.status.clusterClaims.exists(c, c.name == "region" && c.value == "eu")',
    'semver(managedCluster.status.version.kubernetes.substring(1)).isGreaterThan(semver("1.29.0"))',
    'quantity(managedCluster.status.allocatable.cpu).isGreaterThan(quantity("4"))',
    'managedCluster.metadata.annotations["j"].parseJSON().a.b[1] == 2',
    'managedCluster.metadata.annotations["half"].parseJSON().a.matches("^x.$")',
    'managedCluster.scores("demo").filter(s, s.name == "cpu").all(e, e.value > 50)',
    'managedCluster.scores("demo").exists(s, s.value < 0)',
    'size(managedCluster.scores("empty")) == 0',
    # What the types of OCM always write.
    "managedCluster.spec.hubAcceptsClient == false",
    "managedCluster.spec.taints[0].timeAdded == null",
    "managedCluster.status.conditions == null",
    "!has(managedCluster.spec.leaseDurationSeconds)",
    'managedCluster.status.allocatable.memory == "1024"',
    'managedCluster.status.capacity == {"cpu": "8500m", "memory": "512Mi", "odd": "a lot"}',
    'managedCluster.metadata.?labels["nothing"].orValue("none") == "none"',
)


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    program = cluster_environment().compile(expression)

    assert program.evaluate(INPUT) is True
    assert program.evaluate_counted(INPUT, 1_000_000)[0] is True


FAILING = {
    'managedCluster.metadata.labels["x"] == "y"': "no such key: x",
    'managedCluster.scores("none").size() > 0': '"none" not found',
    'managedCluster.metadata.annotations["bad"].parseJSON().a == 1': "failed to parse JSON",
    'managedCluster.metadata.annotations["deep"].parseJSON().a == 1': "failed to parse JSON",
    'managedCluster.metadata.annotations["huge"].parseJSON().a < 1.5': "failed to parse JSON",
    'managedCluster.metadata.annotations["nan"].parseJSON().a < 1.5': "failed to parse JSON",
    'managedCluster.metadata.scores("demo").size() > 0': "no such overload",
}


@pytest.mark.parametrize(("expression", "want"), FAILING.items(), ids=FAILING.keys())
def test_failing(expression: str, want: str) -> None:
    program = cluster_environment().compile(expression)

    with pytest.raises(EvaluationError, match=want):
        program.evaluate(INPUT)


def test_a_cluster_without_scores_has_none_by_any_name() -> None:
    program = cluster_environment().compile('managedCluster.scores("demo").size() == 0')

    with pytest.raises(EvaluationError, match="not found"):
        program.evaluate(cluster_input(CLUSTER))


def test_times_are_seen_in_utc() -> None:
    turned = {"type": "A", "status": "True", "lastTransitionTime": "2026-01-01T01:00:00+02:00"}
    seen = cluster_input(CLUSTER | {"status": {"conditions": [turned]}})
    expression = 'managedCluster.status.conditions[0].lastTransitionTime == "2025-12-31T23:00:00Z"'

    assert cluster_environment().compile(expression).evaluate(seen) is True


def test_any_type_compiles_and_is_what_it_is() -> None:
    assert cluster_environment().compile("'text'").evaluate(INPUT) == "text"


@pytest.mark.parametrize("expression", ["1 +", "cluster.metadata", "device.driver == ''", ""])
def test_not_an_expression(expression: str) -> None:
    with pytest.raises(CompileError) as caught:
        cluster_environment().compile(expression)

    assert caught.value.detail.startswith("compilation failed: ERROR: <input>:1:")


def test_a_budget_can_be_overrun() -> None:
    program = cluster_environment().compile(TRUE[4])

    with pytest.raises(CostLimitError):
        program.evaluate_counted(INPUT, 5)


def test_the_object_is_not_changed() -> None:
    assert "hubAcceptsClient" not in CLUSTER["spec"]


# What OCM's environment of predicates has and does not have, other than that of Kubernetes.
ACCEPTED: dict[str, tuple[str, object]] = {
    "reversed text": ('"abc".reverse()', "cba"),
    "a list of several types": ('[1, "a"]', [1, "a"]),
    "a map of several types": ('{"a": 1, "b": "c"}', {"a": 1, "b": "c"}),
    "numbers of several types, one of them unknown": ("dyn(1) < 2.5 && 2u >= dyn(1)", True),
    "loops of one variable": ("[1, 2].exists_one(x, x > 1)", True),
    "an optional mapping": ("optional.of(1).optMap(x, x + 1).value()", 2),
    "a sum": ("[1, 2].sum()", 3),
}


@pytest.mark.parametrize(("expression", "want"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(expression: str, want: object) -> None:
    assert cluster_environment().compile(expression).evaluate(INPUT) == want


REFUSED = {
    "numbers of several types": "1 < 2.0",
    "a binding": "cel.bind(x, 1, x == 1)",
    "a loop of two variables": "[1, 2].all(i, x, x > i)",
    "the other name of exists_one": "[1, 2].existsOne(x, x > 1)",
    "a list transformed": "[1, 2].transformList(i, x, x).size() == 2",
    "a list sorted": "[2, 1].sort() == [1, 2]",
    "a list sorted by a key": "[2, 1].sortBy(x, x) == [1, 2]",
    "a range": "lists.range(3).size() == 3",
    "sets": "sets.contains([1], [1])",
    "a normalized version": 'semver("v1.2", true).major() == 1',
    "a template for another type": '"%d".format(["a"]) == "a"',
    "a template with too few values": '"%s".format([]) == "a"',
    "a check of a normalized version": 'isSemver("v1.2", true)',
}


@pytest.mark.parametrize("expression", REFUSED.values(), ids=REFUSED.keys())
def test_refused(expression: str) -> None:
    with pytest.raises(CompileError):
        cluster_environment().compile(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'timestamp("bad") == timestamp("bad")',
        'duration("1x") == duration("1s")',
        '"a".matches("(")',
        'bool("maybe")',
    ],
)
def test_literals_are_read_when_they_are_evaluated(expression: str) -> None:
    program = cluster_environment().compile(expression)

    with pytest.raises(EvaluationError):
        program.evaluate(INPUT)
