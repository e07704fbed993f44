"""Custom resources: what is pruned, defaulted and refused, in OCM's words."""

from typing import Any

import pytest

from api.cluster.hub import Hub, cluster, of_kind, placement, taint
from sully.api.cluster.types import SET_LABEL
from sully.machinery.serialization.codec import copy

Obj = dict[str, Any]

QK = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


def _config(**coordinate: Any) -> Obj:
    return {"prioritizerPolicy": {"configurations": [{"scoreCoordinate": coordinate}]}}


def _group(**strategy: Any) -> Obj:
    return {"decisionStrategy": {"groupStrategy": strategy}}


def _spread(**term: Any) -> Obj:
    return {"spreadPolicy": {"spreadConstraints": [{"topologyKeyType": "Label", **term}]}}


NO_EFFECT = (
    'spec.taints[0].effect: Unsupported value: "": supported values: "NoSelect", "PreferNoSelect",'
    ' "NoSelectIfNew"'
)
NO_KEY = f"spec.taints[0].key: Invalid value: \"\": spec.taints[0].key in body should match '{QK}'"
WRONG: dict[str, tuple[Obj, str]] = {
    "no spec": (placement(None), "spec: Required value"),
    "a text for a number": (
        placement({"numberOfClusters": "two"}),
        'spec.numberOfClusters: Invalid value: "string": spec.numberOfClusters in body must be of'
        ' type integer: "string"',
    ),
    "a fraction for a number": (
        placement({"tolerations": [{"key": "k", "tolerationSeconds": 1.5}]}),
        '[spec.tolerations[0].tolerationSeconds: Invalid value: "float64":'
        ' spec.tolerations[0].tolerationSeconds in body must be of type int64: "float64",'
        ' <nil>: Invalid value: "": Checked value must be of type integer with format int64 in'
        " spec.tolerations[0].tolerationSeconds]",
    ),
    "a number too large": (
        placement({"numberOfClusters": 2**31}),
        '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in'
        " spec.numberOfClusters",
    ),
    "a number for an object": (
        placement(7),
        'spec: Invalid value: "integer": spec in body must be of type object: "integer"',
    ),
    "a number for a text": (
        placement({"clusterSets": [1]}),
        'spec.clusterSets[0]: Invalid value: "integer": spec.clusterSets[0] in body must be of type'
        ' string: "integer"',
    ),
    "a truth for a group size": (
        placement(_group(clustersPerDecisionGroup=True)),
        'spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup: Invalid value: "boolean":'
        " spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup in body must be of type"
        ' integer,string: "boolean"',
    ),
    "unknown effect": (
        placement({"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute"}]}),
        'spec.tolerations[0].effect: Unsupported value: "NoExecute": supported values: "NoSelect",'
        ' "PreferNoSelect", "NoSelectIfNew"',
    ),
    "malformed key": (
        placement({"tolerations": [{"key": "a b", "operator": "Exists"}]}),
        'spec.tolerations[0].key: Invalid value: "a b": spec.tolerations[0].key in body should'
        f" match '{QK}'",
    ),
    "empty key": (
        placement({"tolerations": [{"key": "", "operator": "Exists"}]}),
        'spec.tolerations[0].key: Invalid value: "": spec.tolerations[0].key in body should match'
        f" '{QK}'",
    ),
    "a key that ends in a line break": (
        cluster("c1", taint("k\n")),
        'spec.taints[0].key: Invalid value: "k\\n": spec.taints[0].key in body should match'
        f" '{QK}'",
    ),
    "a key too long": (
        cluster("c1", taint("k" * 317)),
        "spec.taints[0].key: Too long: may not be more than 316 bytes",
    ),
    "no key and no effect": (
        cluster("c1", {"value": "v"}),
        f"[{NO_EFFECT}, {NO_KEY}]",
    ),
    "nothing in a list of taints": (cluster(taints=[None]), f"[{NO_EFFECT}, {NO_KEY}]"),
    "no URL, in a cluster that has all that the webhook adds": (
        cluster(managedClusterClientConfigs=[{}])
        | {"metadata": {"name": "c1", "labels": {SET_LABEL: "default"}}},
        "spec.managedClusterClientConfigs[0].url: Required value",
    ),
    "an empty certificate": (
        cluster(managedClusterClientConfigs=[{"url": "https://c", "caBundle": ""}]),
        'spec.managedClusterClientConfigs[0].caBundle: Invalid value: "":'
        " spec.managedClusterClientConfigs[0].caBundle in body must be of type byte:"
        ' ""',
    ),
    "too heavy": (
        placement(
            {"prioritizerPolicy": {"configurations": [{"scoreCoordinate": {}, "weight": 11}]}}
        ),
        "spec.prioritizerPolicy.configurations[0].weight: Invalid value: 11:"
        " spec.prioritizerPolicy.configurations[0].weight in body should be less than or equal to"
        " 10",
    ),
    "too light": (
        placement(
            {"prioritizerPolicy": {"configurations": [{"scoreCoordinate": {}, "weight": -11}]}}
        ),
        "spec.prioritizerPolicy.configurations[0].weight: Invalid value: -11:"
        " spec.prioritizerPolicy.configurations[0].weight in body should be greater than or equal"
        " to -10",
    ),
    "unknown source of scores": (
        placement(_config(type="Other")),
        "spec.prioritizerPolicy.configurations[0].scoreCoordinate.type: Unsupported value:"
        ' "Other": supported values: "BuiltIn", "AddOn"',
    ),
    "no source of scores": (
        placement({"prioritizerPolicy": {"configurations": [{"weight": 1}]}}),
        "spec.prioritizerPolicy.configurations[0].scoreCoordinate: Required value",
    ),
    "half an add-on": (
        placement(_config(type="AddOn", addOn={"resourceName": "r"})),
        "spec.prioritizerPolicy.configurations[0].scoreCoordinate.addOn.scoreName: Required value",
    ),
    "no share": (
        placement(_group(clustersPerDecisionGroup="0%")),
        'spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup: Invalid value: "0%":'
        " spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup in body should match"
        " '^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$'",
    ),
    "a group without selector": (
        placement(_group(decisionGroups=[{"groupName": "canary"}])),
        "spec.decisionStrategy.groupStrategy.decisionGroups[0].groupClusterSelector: Required"
        " value",
    ),
    "too many constraints": (
        placement({"spreadPolicy": {"spreadConstraints": [{"topologyKey": "k"}] * 9}}),
        "["
        + ", ".join(
            f"spec.spreadPolicy.spreadConstraints[{i}].topologyKeyType: Required value"
            for i in range(9)
        )
        + ", spec.spreadPolicy.spreadConstraints: Too many: 9: must have at most 8 items]",
    ),
    "no skew": (
        placement(_spread(topologyKey="zone", maxSkew=0)),
        "spec.spreadPolicy.spreadConstraints[0].maxSkew: Invalid value: 0:"
        " spec.spreadPolicy.spreadConstraints[0].maxSkew in body should be greater than or equal"
        " to 1",
    ),
    "a rate in days": (
        placement({"scoreRateLimit": "1d"}),
        'spec.scoreRateLimit: Invalid value: "1d": spec.scoreRateLimit in body should match'
        " '^[0-9]+[hms]$'",
    ),
    "a set of another type": (
        of_kind("ManagedClusterSet", "v1beta2", spec={"clusterSelector": {"selectorType": "Any"}}),
        'spec.clusterSelector.selectorType: Unsupported value: "Any": supported values:'
        ' "ExclusiveClusterSetLabel", "LabelSelector"',
    ),
    "a namespace twice": (
        of_kind(
            "ManagedClusterSet",
            "v1beta2",
            spec={"managedNamespaces": [{"name": "a"}, {"name": "a"}]},
        ),
        'spec.managedNamespaces[1]: Duplicate value: {"name":"a"}',
    ),
    "a claim without value": (
        of_kind("ClusterClaim", "v1alpha1", spec={"value": ""}),
        'spec.value: Invalid value: "": spec.value in body should be at least 1 chars long',
    ),
}


@pytest.mark.parametrize("strict", [False, True], ids=("default", "reference"))
@pytest.mark.parametrize(("body", "want"), WRONG.values(), ids=WRONG.keys())
async def test_refused(body: Obj, want: str, strict: bool) -> None:
    got = await Hub(strict=strict).create(copy(body))

    assert (got.code, got.problems) == (422, want)


INTO = "json: cannot unmarshal {} into Go struct field {} of type {}"
UNREADABLE: dict[str, tuple[Obj, str]] = {
    "a text for a truth": (
        cluster(hubAcceptsClient="yes"),
        INTO.format("string", "ManagedClusterSpec.spec.hubAcceptsClient", "bool"),
    ),
    "an object for a list": (
        cluster(taints={}),
        INTO.format("object", "ManagedClusterSpec.spec.taints", "[]v1.Taint"),
    ),
    "a list for an effect": (
        cluster(taints=[{"key": "k", "effect": []}]),
        INTO.format("array", "Taint.spec.taints.effect", "v1.TaintEffect"),
    ),
    "two wrong fields, the first by name": (
        cluster(leaseDurationSeconds="x", hubAcceptsClient="y"),
        INTO.format("string", "ManagedClusterSpec.spec.hubAcceptsClient", "bool"),
    ),
    "no time": (
        cluster("c1", taint(timeAdded="yesterday")),
        'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as'
        ' "2006"',
    ),
    "no base64": (
        cluster(managedClusterClientConfigs=[{"url": "https://c", "caBundle": "?"}]),
        "illegal base64 data at input byte 0",
    ),
    "a status, which is not stored": (
        cluster() | {"status": {"capacity": 5}},
        INTO.format("number", "ManagedClusterStatus.status.capacity", "v1.ResourceList"),
    ),
}


@pytest.mark.parametrize("strict", [False, True], ids=("default", "reference"))
@pytest.mark.parametrize(("body", "want"), UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_a_cluster_that_the_webhook_cannot_read(body: Obj, want: str, strict: bool) -> None:
    """It comes before the schema, and has no reason."""
    got = await Hub(strict=strict).create(copy(body))

    webhook = "managedclustermutators.admission.cluster.open-cluster-management.io"
    assert (got.code, got.reason, got.message) == (
        400,
        "",
        f'admission webhook "{webhook}" denied the request: {want}',
    )


CONDITION: Obj = {
    "type": "Joined",
    "status": "True",
    "reason": "Yes",
    "message": "",
    "lastTransitionTime": "2030-01-01T00:00:00Z",
}
WRONG_STATUS: dict[str, tuple[Obj | str, str]] = {
    "a condition of its own kind": (
        {"conditions": [CONDITION | {"status": "Maybe"}]},
        'status.conditions[0].status: Unsupported value: "Maybe": supported values: "True",'
        ' "False", "Unknown"',
    ),
    "a condition without a reason": (
        {"conditions": [{name: CONDITION[name] for name in CONDITION if name != "reason"}]},
        "status.conditions[0].reason: Required value",
    ),
    "a condition twice": (
        {"conditions": [CONDITION, CONDITION]},
        'status.conditions[1]: Duplicate value: {"type":"Joined"}',
    ),
    "no amount": (
        {"capacity": {"cpu": "many"}},
        'status.capacity.cpu: Invalid value: "many": capacity.cpu in body should match',
    ),
    "a text for a condition": (
        {"conditions": ["True"]},
        'status.conditions[0]: Invalid value: "string": conditions[0] in body must be of type'
        ' object: "string"',
    ),
    "no status at all": (
        "unknown",
        'status: Invalid value: "string":  in body must be of type object: "string"',
    ),
}


@pytest.mark.parametrize(("status", "want"), WRONG_STATUS.values(), ids=WRONG_STATUS.keys())
async def test_refused_status(status: Obj | str, want: str) -> None:
    hub = Hub()
    await hub.create(cluster())

    got = await hub.patch(cluster(), {"status": status}, subresource="status")

    assert got.code == 422
    assert got.problems.startswith(want)


async def test_refused_number_of_a_status() -> None:
    """The error without a path is one of the status."""
    hub = Hub()
    score = of_kind("AddOnPlacementScore", "v1alpha1")
    await hub.create(score)

    status = {"scores": [{"name": "a", "value": 2**40}]}
    got = await hub.patch(score, {"status": status}, subresource="status")

    assert got.problems.startswith(
        '[status: Invalid value: "": Checked value must be of type integer with format int32 in'
        " scores[0].value, "
    )


DEFAULTS: dict[str, tuple[Obj, Obj]] = {
    "cluster": (cluster(), {"hubAcceptsClient": False, "leaseDurationSeconds": 60}),
    "a lease of no time is kept": (
        cluster(leaseDurationSeconds=0),
        {"hubAcceptsClient": False, "leaseDurationSeconds": 0},
    ),
    "null counts as absent": (
        cluster(leaseDurationSeconds=None, hubAcceptsClient=None),
        {"hubAcceptsClient": False, "leaseDurationSeconds": 60},
    ),
    "set": (
        of_kind("ManagedClusterSet", "v1beta2"),
        {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}},
    ),
    "set with a selector": (
        of_kind("ManagedClusterSet", "v1beta2", spec={"clusterSelector": {"labelSelector": {}}}),
        {"clusterSelector": {"labelSelector": {}, "selectorType": "ExclusiveClusterSetLabel"}},
    ),
    "placement": (placement({}), {"scoreRateLimit": "1m", "sortBy": "ClusterName"}),
    "what typed clients always send": (
        placement(
            {"prioritizerPolicy": {}, "spreadPolicy": {}, **_group(clustersPerDecisionGroup=0)}
        ),
        {
            "prioritizerPolicy": {"mode": "Additive"},
            "spreadPolicy": {},
            **_group(clustersPerDecisionGroup=0),
            "scoreRateLimit": "1m",
            "sortBy": "ClusterName",
        },
    ),
    "zeros that mean something": (
        placement(
            {
                "numberOfClusters": 0,
                "prioritizerPolicy": {"configurations": [{"scoreCoordinate": {}, "weight": 0}]},
                "tolerations": [{"key": "k", "tolerationSeconds": 0}],
                **_group(),
            }
        ),
        {
            "numberOfClusters": 0,
            "prioritizerPolicy": {
                "mode": "Additive",
                "configurations": [{"scoreCoordinate": {"type": "BuiltIn"}, "weight": 0}],
            },
            "tolerations": [{"key": "k", "operator": "Equal", "tolerationSeconds": 0}],
            **_group(clustersPerDecisionGroup="100%"),
            "scoreRateLimit": "1m",
            "sortBy": "ClusterName",
        },
    ),
}


@pytest.mark.parametrize(("body", "want"), DEFAULTS.values(), ids=DEFAULTS.keys())
async def test_defaults(body: Obj, want: Obj) -> None:
    got = await Hub().create(copy(body))

    assert (got.code, got.obj.get("spec")) == (201, want)


async def test_unknown_fields_are_pruned_and_reported() -> None:
    body = cluster("c1", taint(note="x"), color="red")

    warned = await Hub().create(copy(body))
    strict = await Hub().create(copy(body), fieldValidation="Strict")
    ignoring = await Hub().create(copy(body), fieldValidation="Ignore")

    assert warned.warnings == ('unknown field "spec.color"', 'unknown field "spec.taints[0].note"')
    assert "colour" not in warned.obj["spec"]
    assert "note" not in warned.obj["spec"]["taints"][0]
    assert strict.code == 400
    assert strict.message.endswith(
        'strict decoding error: unknown field "spec.color", unknown field "spec.taints[0].note"'
    )
    assert (ignoring.code, ignoring.warnings) == (201, ())


async def test_status_has_its_own_endpoint() -> None:
    hub = Hub()
    status = {"conditions": [CONDITION], "version": {"kubernetes": "v1.37.0"}}
    made = await hub.create(cluster() | {"status": {"conditions": []}})

    through_status = await hub.patch(
        cluster(), {"status": status, "spec": {"hubAcceptsClient": True}}, subresource="status"
    )
    through_main = await hub.patch(cluster(), {"status": None, "metadata": {"labels": {"a": "b"}}})

    assert "status" not in made.obj
    assert through_status.obj["status"] == status
    assert through_status.obj["spec"]["hubAcceptsClient"] is False
    assert through_main.obj["status"] == status
    assert through_main.obj["metadata"]["labels"]["a"] == "b"


async def test_generation_counts_the_spec_only() -> None:
    hub = Hub()
    seen = [await hub.create(cluster())]
    seen.append(await hub.patch(cluster(), {"metadata": {"labels": {"a": "b"}}}))
    seen.append(await hub.patch(cluster(), {"status": {"version": {}}}, subresource="status"))
    seen.append(await hub.patch(cluster(), {"spec": {"leaseDurationSeconds": 5}}))

    assert [reported.obj["metadata"]["generation"] for reported in seen] == [1, 1, 1, 2]


async def test_a_replacement_must_state_what_it_replaces() -> None:
    hub = Hub()
    made = await hub.create(cluster())

    blind = await hub.update(cluster())
    seeing = await hub.update({**made.obj, **{k: cluster()[k] for k in ("apiVersion", "kind")}})

    assert blind.problems.endswith("must be specified for an update")
    assert seeing.code == 200


async def test_there_is_no_strategic_merge_patch() -> None:
    hub = Hub()
    await hub.create(cluster())

    got = await hub.patch(cluster(), {}, media="application/strategic-merge-patch+json")

    assert got.code == 415
    assert got.message == (
        "the body of the request was in an unknown format - accepted media types include:"
        " application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


async def test_conditions_are_applied_one_by_one() -> None:
    hub = Hub()
    await hub.create(cluster())
    for owner in ("agent", "hub"):
        condition = CONDITION | {"type": owner}
        body = {**cluster(), "status": {"conditions": [condition]}}
        del body["spec"]
        got = await hub.patch(
            body,
            body,
            subresource="status",
            media="application/apply-patch+yaml",
            fieldManager=owner,
        )

    assert [one["type"] for one in got.obj["status"]["conditions"]] == ["agent", "hub"]


async def test_taints_are_applied_as_one_value() -> None:
    hub = Hub()
    await hub.apply(cluster("c1", taint("a")), "one")

    got = await hub.apply(cluster("c1", taint("b")), "two")

    assert [one["key"] for one in got.obj["spec"]["taints"]] == ["b"]
