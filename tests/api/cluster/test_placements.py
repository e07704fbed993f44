"""Placements: what is warned of immediately, and the first version of the kind."""

from typing import Any

import pytest

from api.cluster.hub import Hub, placement

Obj = dict[str, Any]

SELECTOR = "spec.predicates[0].requiredClusterSelector"


def _selector(**parts: Any) -> Obj:
    return {"predicates": [{"requiredClusterSelector": parts}]}


def _cel(*expressions: str) -> Obj:
    return _selector(celSelector={"celExpressions": list(expressions)})


def _scores(*coordinates: Obj, **policy: Any) -> Obj:
    configurations = [{"scoreCoordinate": one} for one in coordinates]
    return {"prioritizerPolicy": {"configurations": configurations, **policy}}


BAD_KEY = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
COORDINATE = "spec.prioritizerPolicy.configurations[0].scoreCoordinate"
FINE = {
    "everything": {},
    "tolerations": {
        "tolerations": [
            {"operator": "Exists"},
            {"key": "k", "value": "v", "tolerationSeconds": 90},
            {"key": "k", "operator": "Equal", "effect": "NoSelect"},
        ]
    },
    "expressions": _cel(
        "managedCluster.metadata.labels.region == 'eu'",
        "managedCluster.scores('demo').exists(s, s.name == 'cpu' && s.value > 50)",
        "managedCluster.metadata.annotations['x'].parseJSON().a == 1",
    ),
    "all prioritizers": _scores(
        *({"builtIn": name} for name in ("Balance", "Steady", "ResourceAllocatableCPU")),
        {"type": "AddOn", "addOn": {"resourceName": "r", "scoreName": "s"}},
        mode="Exact",
    ),
    "a share": {"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "25%"}}},
}


@pytest.mark.parametrize("spec", FINE.values(), ids=FINE.keys())
async def test_nothing_to_state(spec: Obj) -> None:
    got = await Hub().create(placement(dict(spec)))

    assert (got.code, got.warnings) == (201, ())


DOUBTFUL: dict[str, tuple[Obj, str]] = {
    "no key": (
        {"tolerations": [{"value": "v"}]},
        "spec.tolerations[0]: If the key is empty, operator must be Exists.",
    ),
    "Exists with a value": (
        {"tolerations": [{"key": "k", "operator": "Exists", "value": "v"}]},
        "spec.tolerations[0]: If the operator is Exists, the value should be empty.",
    ),
    "unknown operator": (
        {"tolerations": [{"key": "k", "operator": "Like"}]},
        'spec.tolerations[0].operator: "Like" is unknown and tolerates nothing',
    ),
    "no time at all": (
        {"tolerations": [{"key": "k", "tolerationSeconds": 0}]},
        "spec.tolerations[0].tolerationSeconds: tolerates nothing: the time is over immediately",
    ),
    "an expression that is none": (
        _cel("true", "managedCluster.("),
        f"{SELECTOR}.celSelector.celExpressions[1]: compilation failed: ERROR: <input>:1:16:",
    ),
    "an unknown name": (
        _cel("cluster.metadata.name == 'a'"),
        f"{SELECTOR}.celSelector.celExpressions[0]: compilation failed: ERROR: <input>:1:1:"
        " undeclared reference to 'cluster'",
    ),
    "labels": (_selector(labelSelector=BAD_KEY), f"{SELECTOR}.labelSelector: "),
    "claims": (_selector(claimSelector=BAD_KEY), f"{SELECTOR}.claimSelector: "),
    "less than none": (
        {"numberOfClusters": -1},
        "spec.numberOfClusters: a negative number selects no cluster",
    ),
    "a negative group": (
        {"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": -2}}},
        "spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup: a negative number makes one"
        " group of all",
    ),
    "a group that selects badly": (
        {
            "decisionStrategy": {
                "groupStrategy": {
                    "decisionGroups": [
                        {"groupName": "aa", "groupClusterSelector": {"labelSelector": BAD_KEY}}
                    ]
                }
            }
        },
        "spec.decisionStrategy.groupStrategy.decisionGroups[0].groupClusterSelector.labelSelector:",
    ),
    "a prioritizer that only the text names": (
        _scores({"builtIn": "Spread"}),
        f"{COORDINATE}.builtIn: incorrect builtin prioritizer: Spread",
    ),
    "an add-on without name": (
        _scores({"type": "AddOn"}),
        f"{COORDINATE}.addOn: addOn should not be empty",
    ),
    "another mode": (
        _scores(mode="Random"),
        "spec.prioritizerPolicy.mode: incorrect prioritizer policy mode: Random",
    ),
    "spreading": (
        {"spreadPolicy": {"spreadConstraints": [{"topologyKey": "z", "topologyKeyType": "Label"}]}},
        "spec.spreadPolicy: stored, but clusters are not spread by it",
    ),
    "order of scores": (
        {"sortBy": "Score"},
        "spec.sortBy: stored, but decisions stay in order of name",
    ),
}


@pytest.mark.parametrize(("spec", "want"), DOUBTFUL.values(), ids=DOUBTFUL.keys())
async def test_accepted_with_a_warning(spec: Obj, want: str) -> None:
    got = await Hub().create(placement(dict(spec)))

    assert got.code == 201
    assert len(got.warnings) == 1
    assert got.warnings[0].startswith(want)


async def test_what_is_very_long_is_not_read_and_reported_once() -> None:
    got = await Hub().create(
        placement(_cel(*[f"{number} + {'1' * 17_000}" for number in range(30)]))
    )

    assert got.code == 201
    assert len(got.warnings) == 20
    assert got.warnings[0].endswith("longer than 16384 characters, and so not checked")


@pytest.mark.parametrize("spec", [one[0] for one in DOUBTFUL.values()], ids=DOUBTFUL.keys())
async def test_kubernetes_states_nothing(spec: Obj) -> None:
    got = await Hub(strict=True).create(placement(dict(spec)))

    assert (got.code, got.warnings) == (201, ())


@pytest.mark.parametrize("spec", [None, {}], ids=("none", "empty"))
async def test_the_first_version_goes_without_a_spec(spec: Obj | None) -> None:
    hub = Hub()

    made = await hub.create(placement(spec, version="v1alpha1"))
    changed = await hub.patch(placement({}), {"spec": {"numberOfClusters": 2}})

    assert made.code == 201
    assert changed.obj["spec"]["numberOfClusters"] == 2


async def test_both_versions_share_owners_of_fields() -> None:
    hub = Hub()
    old = placement({"tolerations": [{"key": "k", "operator": "Exists"}]}, version="v1alpha1")
    await hub.apply(old, "design")

    got = await hub.apply(placement({"numberOfClusters": 1}), "other")

    assert got.obj["spec"]["tolerations"][0]["key"] == "k"
    assert [entry["manager"] for entry in got.obj["metadata"]["managedFields"]] == [
        "design",
        "other",
    ]


def test_kubernetes_does_not_serve_the_first_version() -> None:
    find = Hub(strict=True).api.scheme.find
    group = "cluster.open-cluster-management.io"

    assert find(group, "v1alpha1", "placements") is None
    assert find(group, "v1beta1", "placements") is not None
    assert find(group, "v1alpha1", "addonplacementscores") is not None
