"""Who could run on a device: Pending pods with a request that it could serve, or why not."""

from __future__ import annotations

from typing import Any

import pytest

from explain.worlds import (
    CLASS,
    NAMESPACE,
    Obj,
    claim,
    class_,
    device,
    node,
    pod,
    request,
    rule,
    slice_,
    snapshot,
)
from manifests import DRIVER
from sully.client.transport import Key
from sully.domain.devices.pools import device_id
from sully.explain.facts.devices.candidate_pods import MOST_PODS, CandidatePod, find_candidate_pods
from sully.explain.render import render_note
from sully.testing.clock import NOON

GPU = f"{DRIVER}/n1/gpu-0"
FLEET = (
    node(),
    class_(),
    class_("other", 'device.driver == "other.example.com"'),
    slice_(device("gpu-0"), device("gpu-1")),
)
HOT = rule("hot", select={"device": "gpu-0"}, key="example.com/hot")
TOLERATION = {"key": "example.com/hot", "operator": "Exists"}
WAITS = pod("q", "c")


def judged(*objects: Obj, pods: tuple[str, ...] = ("q",), name: str = GPU) -> list[CandidatePod]:
    keys = [Key(NAMESPACE, pod_name) for pod_name in pods]
    return list(find_candidate_pods(snapshot((*FLEET, *objects)), device_id(name), keys))


def wants(**more: Any) -> Obj:
    return claim("c", request(**more))


CASES: dict[str, tuple[tuple[Obj, ...], str]] = {
    "a free device": ((wants(), WAITS), ""),
    "one of several": ((wants(count=2), WAITS), ""),
    "tainted": ((wants(), WAITS, HOT), "it does not tolerate example.com/hot:NoSchedule"),
    "tainted and tolerated": ((wants(tolerations=[TOLERATION]), WAITS, HOT), ""),
    "in use": (
        (wants(), WAITS, claim("d", holds=("n1/gpu-0",), pods=("r",)), pod("r", "d", on="n1")),
        f"the device is in use by {NAMESPACE}/d",
    ),
    "not selected": (
        (wants(selectors=[{"cel": {"expression": 'device.driver == "other"'}}]), WAITS),
        "a selector of the request does not match the device",
    ),
    "a selector fails": (
        (
            wants(
                selectors=[{"cel": {"expression": f'device.attributes["{DRIVER}"].none == "x"'}}]
            ),
            WAITS,
        ),
        "a selector fails for the device",
    ),
    "its node does not fit": (
        (wants(), pod("q", "c", nodeSelector={"zone": "b"})),
        "node n1 does not fit: node(s) didn't match Pod's node affinity/selector",
    ),
    "no claim yet": ((WAITS,), "c"),
}


@pytest.mark.parametrize(("objects", "reason"), CASES.values(), ids=CASES)
def test_a_pending_pod(objects: tuple[Obj, ...], reason: str) -> None:
    (got,) = judged(*objects)

    assert (got.namespace, got.name, got.fits) == (NAMESPACE, "q", not reason)
    assert reason in (render_note(got.why_not, NOON) if got.why_not is not None else "")


NONE: dict[str, tuple[Obj, ...]] = {
    "of another class": (wants(cls="other"), WAITS),
    "no such class": (wants(cls="none"), WAITS),
    "allocated already": (claim("c", holds=("n1/gpu-1",), pods=("q",)), WAITS),
    "the pod is gone": (wants(),),
}


@pytest.mark.parametrize("objects", NONE.values(), ids=NONE)
def test_pods_that_do_not_ask_for_such_a_device(objects: tuple[Obj, ...]) -> None:
    assert judged(*objects, name=f"{DRIVER}/n1/gpu-1") == []


def test_a_device_that_is_not_published() -> None:
    assert judged(wants(), WAITS, name=f"{DRIVER}/n1/gpu-9") == []


def test_a_device_for_all_nodes_is_judged_on_the_best() -> None:
    shared = slice_(device("nic"), on="")
    other = node("n2", zone="b")
    chooses = pod("q", "c", nodeSelector={"zone": "b"})
    (got,) = judged(shared, other, wants(), chooses, name=f"{DRIVER}/shared/nic")

    assert got == CandidatePod(namespace=NAMESPACE, name="q", request="gpu", device_class=CLASS)


def test_those_that_could_come_first() -> None:
    tolerant = claim("t", request(tolerations=[TOLERATION]))
    got = judged(wants(), WAITS, tolerant, pod("z", "t"), HOT, pods=("q", "z"))

    assert [(one.name, one.fits) for one in got] == [("z", True), ("q", False)]


def test_of_many_pods_some_are_judged() -> None:
    names = tuple(f"p-{number}" for number in range(MOST_PODS + 5))
    got = judged(wants(), *(pod(name, "c") for name in names), pods=names)

    assert len(got) == MOST_PODS
