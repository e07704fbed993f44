"""Workloads seen as a number of copies."""

from typing import Any

import pytest

import manifests
from api.core.bodies import container
from api.core.writing import create
from manifests import pod_template
from sully.api.apps import apply_scale, scale_of
from sully.machinery.errors import Invalid

Obj = dict[str, Any]


def _deployment(replicas: int = 2) -> Obj:
    labels = {"app": "web", "tier": "front"}
    selector = {
        "matchLabels": {"tier": "front"},
        "matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}],
    }
    template = pod_template(labels, {"containers": [container()]})
    spec = {"replicas": replicas, "selector": selector, "template": template}
    body = manifests.body("Deployment", "d", spec, labels={"x": "y"})
    made = create("deployments", body, group="apps").obj
    made["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    made["status"]["replicas"] = 1
    return made


def test_scale() -> None:
    assert scale_of(_deployment()) == {
        "metadata": {"name": "d", "namespace": "ns", "uid": "u", "resourceVersion": "7"},
        "spec": {"replicas": 2},
        "status": {"replicas": 1, "selector": "app in (api,web),tier=front"},
    }


def test_nothing_desired_is_not_written() -> None:
    assert scale_of(_deployment(replicas=0))["spec"] == {}


@pytest.mark.parametrize(("spec", "want"), [({"replicas": 5}, 5), ({}, 0)])
def test_apply(spec: Obj, want: int) -> None:
    before = _deployment()
    sent = {"metadata": {"name": "d", "resourceVersion": "6"}, "spec": spec}

    after = apply_scale(before, sent)

    assert after["spec"] == {**before["spec"], "replicas": want}
    assert after["metadata"] == {**before["metadata"], "resourceVersion": "6"}
    assert before["spec"]["replicas"] == 2


def test_negative() -> None:
    with pytest.raises(Invalid) as refusal:
        apply_scale(_deployment(), {"metadata": {"name": "d"}, "spec": {"replicas": -1}})

    assert refusal.value.message == (
        'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than'
        " or equal to 0"
    )
