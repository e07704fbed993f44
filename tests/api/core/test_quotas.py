"""Resource quotas: names, amounts, scopes, and what a table shows of them."""

from typing import Any

import pytest

from api.core.writing import HERE, RESOURCES, cells, create, stored_form, update

Obj = dict[str, Any]
STANDARD = "must be a standard resource type or fully qualified"
QUOTA = "must be a standard resource for quota"


def selector(scope: str, operator: str, *values: str) -> Obj:
    expression: Obj = {"scopeName": scope, "operator": operator}
    return {"matchExpressions": [expression | ({"values": list(values)} if values else {})]}


SPECS: dict[str, tuple[Obj, list[str]]] = {
    "nothing": ({}, []),
    "all that can be limited": (
        {
            "hard": dict.fromkeys(
                (
                    "pods",
                    "requests.cpu",
                    "limits.memory",
                    "configmaps",
                    "services.nodeports",
                    "requests.storage",
                    "hugepages-2Mi",
                    "requests.hugepages-2Mi",
                    "count/deployments.apps",
                    "requests.example.com/gpu",
                    "gpu.deviceclass.resource.k8s.io/devices",
                ),
                "1",
            )
        },
        [],
    ),
    "unknown name": (
        {"hard": {"gpus": "1"}},
        [
            f'spec.hard[gpus]: Invalid value: "gpus": {STANDARD}',
            f'spec.hard[gpus]: Invalid value: "gpus": {QUOTA}',
        ],
    ),
    "a resource of nodes": (
        {"hard": {"storage": "1"}},
        [f'spec.hard[storage]: Invalid value: "storage": {QUOTA}'],
    ),
    "negative": (
        {"hard": {"pods": "-1"}},
        ['spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0'],
    ),
    "half a pod": (
        {"hard": {"pods": "500m", "count/secrets": "1500m", "cpu": "500m"}},
        [
            'spec.hard[count/secrets]: Invalid value: "1500m": must be an integer',
            'spec.hard[pods]: Invalid value: "500m": must be an integer',
        ],
    ),
    "unknown scope": (
        {"scopes": ["Sleeping"]},
        ['spec.scopes: Invalid value: ["Sleeping"]: unsupported scope'],
    ),
    "scope that does not fit": (
        {"hard": {"configmaps": "1", "pods": "1", "count/pods": "1"}, "scopes": ["Terminating"]},
        ['spec.scopes: Invalid value: ["Terminating"]: unsupported scope applied to resource'],
    ),
    "pods that ask for nothing have no cpu": (
        {"hard": {"cpu": "1"}, "scopes": ["BestEffort"]},
        ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
    ),
    "both of a pair": (
        {"scopes": ["BestEffort", "NotBestEffort"]},
        ['spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes'],
    ),
    "priority classes": (
        {"hard": {"pods": "1"}, "scopeSelector": selector("PriorityClass", "In", "high")},
        [],
    ),
    "no values": (
        {"scopeSelector": selector("PriorityClass", "In")},
        [
            "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value"
            " when `operator` is 'In' or 'NotIn' for scope selector"
        ],
    ),
    "values for nothing": (
        {"scopeSelector": selector("PriorityClass", "Exists", "high")},
        [
            'spec.scopeSelector.matchExpressions.values: Invalid value: ["high"]: must be no value'
            " when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        ],
    ),
    "operator that no scope of pods has": (
        {"scopeSelector": selector("BestEffort", "NotIn", "x")},
        [
            'spec.scopeSelector.matchExpressions.operator: Invalid value: "NotIn": must be'
            " 'Exists' when scope is any of ResourceQuotaScopeTerminating,"
            " ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort,"
            " ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
        ],
    ),
    "unknown operator and scope": (
        {"scopeSelector": selector("Sleeping", "Like")},
        [
            "spec.scopeSelector.matchExpressions.scopeName: Invalid value:"
            ' "Sleeping": unsupported scope',
            "spec.scopeSelector.matchExpressions.operator: Invalid value:"
            ' "Like": not a valid selector operator',
        ],
    ),
}


@pytest.mark.parametrize(("spec", "want"), SPECS.values(), ids=SPECS.keys())
def test_spec(spec: Obj, want: list[str]) -> None:
    assert create("resourcequotas", {"spec": spec}).texts() == want


def test_a_new_quota_has_no_status() -> None:
    assert create("resourcequotas", {"status": {"used": {"pods": "0"}}}).obj["status"] == {}


def test_scopes_stay_and_limits_change() -> None:
    old = create("resourcequotas", {"spec": {"hard": {"pods": "1"}, "scopes": ["BestEffort"]}}).obj
    more = update("resourcequotas", {"spec": {"hard": {"pods": "2"}, **_scopes(old)}}, old)
    other = update("resourcequotas", {"spec": {"hard": {"pods": "1"}}}, old)

    assert more.texts() == []
    assert other.texts() == ["spec.scopes: Invalid value: null: field is immutable"]


def _scopes(obj: Obj) -> Obj:
    return {"scopes": obj["spec"]["scopes"]}


def test_the_status_endpoint_changes_only_the_status() -> None:
    old = create("resourcequotas", {"spec": {"hard": {"pods": "1"}}}).obj
    status = {"hard": {"pods": "1"}, "used": {"gpus": "-1"}}

    written = update("resourcequotas", {"spec": {}, "status": status}, old, sub="status")

    assert written.obj["spec"] == old["spec"]
    assert written.texts() == [
        f'status.used[gpus]: Invalid value: "gpus": {STANDARD}',
        f'status.used[gpus]: Invalid value: "gpus": {QUOTA}',
        'status.used[gpus]: Invalid value: "-1": must be greater than or equal to 0',
    ]


WARNINGS = {
    "more requested than used": (
        {"cpu": "2", "limits.cpu": "1"},
        ["ResourceQuota cpu (2) should be less than limits.cpu (1)"],
    ),
    "by its full name": (
        {"requests.ephemeral-storage": "2Gi", "limits.ephemeral-storage": "1Gi"},
        [
            "ResourceQuota requests.ephemeral-storage (2Gi) should be less than"
            " limits.ephemeral-storage (1Gi)"
        ],
    ),
    "enough": ({"requests.memory": "1Gi", "limits.memory": "1Gi"}, []),
}


@pytest.mark.parametrize(("hard", "want"), WARNINGS.values(), ids=WARNINGS.keys())
def test_warnings(hard: dict[str, str], want: list[str]) -> None:
    resource = RESOURCES["", "resourcequotas"]
    obj = stored_form(resource, {"spec": {"hard": hard}})

    assert list(resource.strategy.warnings(obj, None, HERE.context())) == want
    assert list(resource.strategy.warnings(obj, obj, HERE.context())) == []


def test_columns() -> None:
    obj = create("resourcequotas", {"metadata": {"name": "q"}}).obj
    obj["status"] = {
        "hard": {"pods": "3", "limits.cpu": "2", "count/configmaps": "5", "limits.memory": "1Gi"},
        "used": {"pods": "1", "limits.cpu": "500m", "limits.memory": "0"},
    }

    assert cells("resourcequotas", obj) == {
        "Name": "q",
        "Request": "count/configmaps: 0/5, pods: 1/3",
        "Limit": "limits.cpu: 500m/2, limits.memory: 0/1Gi",
        "Age": "<unknown>",
    }
