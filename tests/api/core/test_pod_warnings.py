"""What a client is warned of."""

from typing import Any

import pytest

from api.core.bodies import container, pod
from api.core.writing import HERE, RESOURCES, create
from sully.api.core.pods.warnings import spec_warnings
from sully.machinery.fields import Path

Obj = dict[str, Any]


def _ports(*ports: Obj) -> Obj:
    return pod(container(ports=list(ports)))


def _env(*variables: Obj) -> Obj:
    return pod(container(env=list(variables)))


A = {"name": "A", "value": "1"}
PORT = {"containerPort": 80}
FIRST = "spec.containers[0].ports[0]"
CASES: dict[str, tuple[Obj, list[str]]] = {
    "nothing odd": (pod(), []),
    "variable twice": (
        _env(A, A),
        [
            'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped'
            " when using apply"
        ],
    ),
    "variable that builds on itself": (_env(A, {"name": "A", "value": "$(A)2"}), []),
    "port twice": (
        _ports(PORT, PORT),
        [f"spec.containers[0].ports[1]: duplicate port definition with {FIRST}"],
    ),
    "port with and without one of the node": (
        _ports(PORT, {**PORT, "hostPort": 8080}),
        [f"spec.containers[0].ports[1]: overlapping port definition with {FIRST}"],
    ),
    "port of the node at any address and at one": (
        _ports({**PORT, "hostPort": 1}, {**PORT, "hostPort": 1, "hostIP": "10.0.0.1"}),
        [f"spec.containers[0].ports[1]: dangerously ambiguous port definition with {FIRST}"],
    ),
    "part of a byte": (
        pod(container(resources={"requests": {"memory": "100m"}})),
        [
            'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is'
            " invalid, must be an integer"
        ],
    ),
    "name that is not a label": (
        pod(metadata={"name": "a.b"}),
        [
            "metadata.name: this is used in the Pod's hostname, which can result in surprising"
            " behavior; a DNS label is recommended: [must not contain dots]"
        ],
    ),
}


@pytest.mark.parametrize(("body", "want"), CASES.values(), ids=CASES.keys())
def test_new_pod(body: Obj, want: list[str]) -> None:
    strategy = RESOURCES["", "pods"].strategy
    made = create("pods", {**body, "spec": {**body["spec"], "automountServiceAccountToken": False}})

    assert list(strategy.warnings(made.obj, None, HERE.context())) == want
    assert list(strategy.warnings(made.obj, made.obj, HERE.context())) == []


def test_pods_with_equal_specs_are_warned_of_alike() -> None:
    strategy = RESOURCES["", "pods"].strategy
    warned, quiet = pod(container(env=[A, A])), pod(container(env=[A]))

    texts = [
        list(strategy.warnings(create("pods", body).obj, None, HERE.context()))
        for body in (warned, quiet, warned, quiet)
    ]

    assert list(map(bool, texts)) == [True, False, True, False]
    assert texts[0] == texts[2]


# For a pod itself the time is set to one second before.
@pytest.mark.parametrize(("seconds", "warned"), [(1, 0), (0, 0), (-1, 1)])
def test_time_to_end_of_a_template(seconds: int, warned: int) -> None:
    warnings = list(spec_warnings({"terminationGracePeriodSeconds": seconds}, Path("spec")))

    text = "must be >= 0; negative values are invalid and will be treated as 1"
    assert warnings == [f"spec.terminationGracePeriodSeconds: {text}"] * warned


def test_template() -> None:
    labels = {"app": "a"}
    template = {**_env(A, A), "metadata": {"labels": labels}}
    body = {"spec": {"selector": {"matchLabels": labels}, "template": template}}
    strategy = RESOURCES["apps", "deployments"].strategy
    made = create("deployments", body, group="apps").obj
    rolled = {**made, "metadata": {**made["metadata"], "generation": 2}}

    (text,) = strategy.warnings(made, None, HERE.context())

    assert text.startswith("spec.template.spec.containers[0].env[1]: hides previous definition")
    assert list(strategy.warnings(made, made, HERE.context())) == []
    assert list(strategy.warnings(rolled, made, HERE.context())) == [text]
