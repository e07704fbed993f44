"""What LimitRanges do to new pods and volume claims."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from api.core.writing import World, create
from sully.api.core.quotas.limits import ANNOTATION
from sully.machinery.errors import Forbidden

Obj = dict[str, Any]


def ranges(*items: Obj) -> World:
    return World(limit_ranges=({"spec": {"limits": list(items)}},))


def item(type_: str = "Container", **parts: Any) -> Obj:
    return {"type": type_, **parts}


def container(name: str = "c", requests: Obj | None = None, limits: Obj | None = None) -> Obj:
    resources = {"requests": requests, "limits": limits}
    present = {key: value for key, value in resources.items() if value is not None}
    return {"name": name, "image": "i", "resources": present}


def pod(*containers: Obj, **spec: Any) -> Obj:
    return {"spec": {"containers": list(containers) or [container()], **spec}}


DEFAULTS = item(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"})


def test_a_range_without_amounts_gets_no_defaults() -> None:
    ratio = {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}

    made = create("limitranges", {"spec": {"limits": [dict(ratio)]}}).obj

    assert made["spec"]["limits"] == [ratio]


def test_containers_get_what_they_lack() -> None:
    body = pod(container("a"), container("b", {"cpu": "100m"}, {"cpu": "3"}))
    body["spec"]["initContainers"] = [container("i", limits={"memory": "2Gi", "cpu": "1"})]

    made = create("pods", body, ranges(DEFAULTS)).obj

    a, b = (one["resources"] for one in made["spec"]["containers"])
    assert a == {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    assert b == {"requests": {"cpu": "100m"}, "limits": {"cpu": "3", "memory": "1Gi"}}
    assert made["spec"]["initContainers"][0]["resources"]["limits"] == {
        "memory": "2Gi",
        "cpu": "1",
    }
    assert made["metadata"]["annotations"] == {
        ANNOTATION: "LimitRanger plugin set: cpu request for container a; cpu, memory limit for"
        " container a; memory limit for container b"
    }


def test_the_quality_of_service_follows() -> None:
    same = item(default={"cpu": "1", "memory": "1Gi"}, defaultRequest={"cpu": "1", "memory": "1Gi"})

    assert create("pods", pod(), ranges(same)).obj["status"]["qosClass"] == "Guaranteed"


def test_a_pod_that_has_everything_is_not_annotated() -> None:
    full = container(requests={"cpu": "1"}, limits={"cpu": "1", "memory": "1Gi"})

    assert "annotations" not in create("pods", pod(full), ranges(DEFAULTS)).obj["metadata"]


@dataclass(frozen=True)
class Case:
    limit: Obj
    want: str = ""
    body: Obj = field(default_factory=pod)
    plural: str = "pods"


def small(**more: Obj) -> Obj:
    return pod(container(requests={"cpu": "100m"}, limits={"cpu": "200m"}), **more)


def claim(storage: str) -> Obj:
    resources = {"requests": {"storage": storage}}
    return {"spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}


CASES = {
    "within": Case(item(min={"cpu": "100m"}, max={"cpu": "200m"}), body=small()),
    "too little": Case(
        item(min={"cpu": "150m"}),
        "minimum cpu usage per Container is 150m, but request is 100m",
        small(),
    ),
    "no request": Case(
        item(min={"memory": "1Mi"}),
        "minimum memory usage per Container is 1Mi.  No request is specified",
        small(),
    ),
    "too much": Case(
        item(max={"cpu": "150m"}),
        "maximum cpu usage per Container is 150m, but limit is 200m",
        small(),
    ),
    "no limit": Case(
        item(max={"memory": "1Gi"}),
        "maximum memory usage per Container is 1Gi.  No limit is specified",
        small(),
    ),
    "ratio": Case(
        item(maxLimitRequestRatio={"cpu": "1.5"}),
        "cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000",
        small(),
    ),
    "ratio that is kept": Case(item(maxLimitRequestRatio={"cpu": "2"}), body=small()),
    "ratio without a request": Case(
        item(maxLimitRequestRatio={"memory": "2"}),
        "memory max limit to request ratio per Container is 2, but no request is specified or"
        " request is 0",
        small(),
    ),
    "several": Case(
        item(min={"cpu": "150m"}, max={"cpu": "150m"}),
        "[minimum cpu usage per Container is 150m, but request is 100m,"
        " maximum cpu usage per Container is 150m, but limit is 200m]",
        small(),
    ),
    "the whole pod": Case(
        item("Pod", max={"cpu": "300m"}),
        "maximum cpu usage per Pod is 300m, but limit is 400m",
        pod(*(container(name, {"cpu": "1m"}, {"cpu": "200m"}) for name in ("a", "b"))),
    ),
    "a claim that is too small": Case(
        item("PersistentVolumeClaim", min={"storage": "2Gi"}),
        "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi",
        claim("1Gi"),
        "persistentvolumeclaims",
    ),
    "a claim that is too large": Case(
        item("PersistentVolumeClaim", max={"storage": "2Gi"}),
        "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi",
        claim("3Gi"),
        "persistentvolumeclaims",
    ),
    "a claim, and limits of containers": Case(
        item(max={"cpu": "1"}), body=claim("1Gi"), plural="persistentvolumeclaims"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_refused(case: Case) -> None:
    if not case.want:
        assert create(case.plural, case.body, ranges(case.limit)).texts() == []
        return

    with pytest.raises(Forbidden) as refused:
        create(case.plural, case.body, ranges(case.limit))

    assert refused.value.message == f'{case.plural} "x" is forbidden: {case.want}'
