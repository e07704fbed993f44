"""Deployments and replica sets: defaults, validation, generations, columns."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

import manifests
from api.core.bodies import container
from api.core.writing import cells, create, update
from manifests import pod_template

Obj = dict[str, Any]
LABELS = {"app": "web"}


def _body(**spec: Any) -> Obj:
    return {"spec": {"selector": {"matchLabels": LABELS}, "template": _template(), **spec}}


def _create(plural: str, body: Obj) -> Any:
    return create(plural, body, group="apps")


def test_defaults_of_a_deployment() -> None:
    made = _create("deployments", _body())

    spec = made.obj["spec"]
    assert made.problems == []
    assert spec["replicas"] == 1
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert made.obj["status"] == {}
    assert made.obj["metadata"]["generation"] == 1


def test_template_stays_as_its_author_wrote_it() -> None:
    body = _body()
    limits = {"cpu": "1"}
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": limits}

    spec = _create("replicasets", body).obj["spec"]["template"]["spec"]

    assert spec["containers"][0]["resources"] == {"limits": limits}
    assert "enableServiceLinks" not in spec
    assert "tolerations" not in spec


@pytest.mark.parametrize("plural", ["deployments", "replicasets"])
def test_template_without_what_is_switched_off(plural: str) -> None:
    body = _body()
    body["spec"]["template"] = _template(
        containers=[container(lifecycle={"stopSignal": "SIGTERM"})]
    )
    made = _create(plural, copy.deepcopy(body)).obj

    changed = update(plural, body, made, group="apps").obj

    for obj in (made, changed):
        assert "lifecycle" not in obj["spec"]["template"]["spec"]["containers"][0]
    assert changed["metadata"]["generation"] == 1


def test_no_numbers_for_a_rollout_that_recreates() -> None:
    made = _create("deployments", _body(strategy={"type": "Recreate"}))

    assert made.obj["spec"]["strategy"] == {"type": "Recreate"}


def _template(**spec: Any) -> Obj:
    return pod_template(LABELS, {"containers": [container()], **spec})


def _annotated(annotations: dict[str, str]) -> Obj:
    template = _template()
    return template | {"metadata": template["metadata"] | {"annotations": annotations}}


def _steps(**numbers: Any) -> Obj:
    return {"strategy": {"rollingUpdate": numbers}}


STEPS = "spec.strategy.rollingUpdate"
BOTH: dict[str, tuple[Obj, list[str]]] = {
    "negative count": (
        {"replicas": -1},
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
    ),
    "no selector": (
        {"selector": None},
        [
            "spec.selector: Required value",
            'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not'
            " match template `labels`",
        ],
    ),
    "empty selector": (
        {"selector": {}},
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
    ),
    "selector for others": (
        {"selector": {"matchLabels": {"app": "other"}}},
        [
            'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not'
            " match template `labels`"
        ],
    ),
    "selector for others, with labels in no order": (
        {"template": pod_template({"b": "1", "a": "2"}, {"containers": [container()]})},
        [
            'spec.template.metadata.labels: Invalid value: {"a":"2","b":"1"}: `selector` does not'
            " match template `labels`"
        ],
    ),
    "selector operator": (
        {"selector": {"matchExpressions": [{"key": "app", "operator": "Near"}]}},
        [
            'spec.selector.matchExpressions[0].operator: Invalid value: "Near": not a valid'
            " selector operator",
            'spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Near"}]}:'
            " invalid label selector",
        ],
    ),
    "template with an annotation whose key has a colon": (
        {"template": _annotated({"a: b": ""})},
        [
            'spec.template.annotations: Invalid value: "a: b": name part must consist of'
            " alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
            " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
            " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        ],
    ),
    "template with annotations that are too large together": (
        {"template": _annotated({"a": "x" * 2**17, "b": "y" * 2**17})},
        ["spec.template.annotations: Too long: may not be more than 262144 bytes"],
    ),
    "template without containers": (
        {"template": _template(containers=[])},
        ["spec.template.spec.containers: Required value"],
    ),
    "pods that end": (
        {"template": _template(restartPolicy="Never")},
        [
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values:'
            ' "Always"'
        ],
    ),
}
DEPLOYMENTS: dict[str, tuple[Obj, list[str]]] = {
    "unknown strategy": (
        {"strategy": {"type": "Magic"}},
        [
            'spec.strategy: Unsupported value: {"Type":"Magic","RollingUpdate":null}: supported'
            ' values: "Recreate", "RollingUpdate"'
        ],
    ),
    "unknown strategy with numbers": (
        {"strategy": {"type": "Magic", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}},
        [
            'spec.strategy: Unsupported value: {"Type":"Magic","RollingUpdate":'
            '{"MaxUnavailable":1,"MaxSurge":"25%"}}: supported values: "Recreate", "RollingUpdate"'
        ],
    ),
    "numbers for a rollout that recreates": (
        {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
        [
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is"
            " 'Recreate'"
        ],
    ),
    "no room to move": (
        _steps(maxUnavailable=0, maxSurge="0%"),
        [f"{STEPS}.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"],
    ),
    "more than all": (
        _steps(maxUnavailable="150%"),
        [f'{STEPS}.maxUnavailable: Invalid value: "150%": must not be greater than 100%'],
    ),
    "deadline before readiness": (
        {"minReadySeconds": 700},
        ["spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"],
    ),
}


@pytest.mark.parametrize("plural", ["deployments", "replicasets"])
@pytest.mark.parametrize(("spec", "want"), BOTH.values(), ids=BOTH.keys())
def test_create(plural: str, spec: Obj, want: list[str]) -> None:
    assert _create(plural, _body(**spec)).texts() == want


@pytest.mark.parametrize(("spec", "want"), DEPLOYMENTS.values(), ids=DEPLOYMENTS.keys())
def test_create_deployment(spec: Obj, want: list[str]) -> None:
    assert _create("deployments", _body(**spec)).texts() == want


def _scale(obj: Obj) -> None:
    obj["spec"]["replicas"] = 3


def _annotate(obj: Obj) -> None:
    obj["metadata"]["annotations"] = {"a": "b"}


def _label(obj: Obj) -> None:
    obj["metadata"]["labels"] = {"a": "b"}


GENERATIONS: dict[str, tuple[str, Callable[[Obj], None], int]] = {
    "spec of a deployment": ("deployments", _scale, 2),
    "annotation of a deployment": ("deployments", _annotate, 2),
    "label of a deployment": ("deployments", _label, 1),
    "spec of a replica set": ("replicasets", _scale, 2),
    "annotation of a replica set": ("replicasets", _annotate, 1),
}


@pytest.mark.parametrize(("plural", "change", "want"), GENERATIONS.values(), ids=GENERATIONS.keys())
def test_generation(plural: str, change: Callable[[Obj], None], want: int) -> None:
    old = _create(plural, _body()).obj
    new = copy.deepcopy(old)
    change(new)

    written = update(plural, new, old, group="apps")

    assert written.problems == []
    assert written.obj["metadata"]["generation"] == want


@pytest.mark.parametrize("plural", ["deployments", "replicasets"])
def test_selector_stays(plural: str) -> None:
    old = _create(plural, _body()).obj
    new = copy.deepcopy(old)
    new["spec"]["selector"] = {"matchLabels": {"tier": "a"}}
    new["spec"]["template"]["metadata"]["labels"] = {"tier": "a"}

    assert update(plural, new, old, group="apps").texts() == [
        'spec.selector: Invalid value: {"matchLabels":{"tier":"a"}}: field is immutable'
    ]


STATUS: dict[str, tuple[str, Obj, list[str]]] = {
    "more ready than there are": (
        "replicasets",
        {"replicas": 1, "readyReplicas": 2},
        ["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"],
    ),
    "more available than ready": (
        "deployments",
        {"replicas": 2, "readyReplicas": 1, "availableReplicas": 2},
        ["status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"],
    ),
    "generations of a Deployment come first": (
        "deployments",
        {"updatedReplicas": -1, "observedGeneration": -1},
        [
            f"status.{name}: Invalid value: -1: must be greater than or equal to 0"
            for name in ("observedGeneration", "updatedReplicas")
        ],
    ),
    "generations of a ReplicaSet do not": (
        "replicasets",
        {"terminatingReplicas": -1, "observedGeneration": -1},
        [
            f"status.{name}: Invalid value: -1: must be greater than or equal to 0"
            for name in ("observedGeneration", "terminatingReplicas")
        ],
    ),
    "debt": (
        "deployments",
        {"unavailableReplicas": -1},
        ["status.unavailableReplicas: Invalid value: -1: must be greater than or equal to 0"],
    ),
}


@pytest.mark.parametrize(("plural", "status", "want"), STATUS.values(), ids=STATUS.keys())
def test_status(plural: str, status: Obj, want: list[str]) -> None:
    old = _create(plural, _body()).obj
    new = {**copy.deepcopy(old), "status": status}

    assert update(plural, new, old, group="apps", sub="status").texts() == want


def test_status_of_a_deployment_leaves_its_labels() -> None:
    old = _create("deployments", _body()).obj
    new = copy.deepcopy(old)
    _label(new)
    _scale(new)

    assert update("deployments", new, old, group="apps", sub="status").obj == old


def test_rows() -> None:
    deployment = _create("deployments", _body(replicas=3)).obj
    deployment["status"] = {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1}
    row = cells("deployments", deployment, group="apps")

    assert (row["Ready"], row["Up-to-date"], row["Available"]) == ("2/3", 3, 1)
    assert (row["Containers"], row["Images"]) == ("c", "example.com/app:1")
    assert row["Selector"] == "app=web"
    replica_set = cells("replicasets", _create("replicasets", _body()).obj, group="apps")
    assert [replica_set[name] for name in ("Desired", "Current", "Ready")] == [1, 0, 0]


def test_an_empty_selector_of_a_daemonset_comes_before_its_template() -> None:
    spec = {"selector": {}, "template": pod_template({"app": "web"}, {"containers": []})}

    got = create("daemonsets", manifests.body("DaemonSet", "d", spec), group="apps")

    assert got.texts() == [
        "spec.selector: Invalid value: {}: empty selector is invalid for daemonset",
        "spec.template.spec.containers: Required value",
    ]
