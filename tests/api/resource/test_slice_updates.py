"""What an update of a slice changes, and what it cannot."""

from typing import Any

import pytest

from api.resource.bodies import device, slice_body, taint
from api.resource.writing import Writer
from manifests import resource_pool


def test_generation() -> None:
    body = slice_body(device())
    body["metadata"]["generation"] = 42
    old = Writer().create(body).obj

    same = Writer().update(body, old)
    changed = Writer().update(slice_body(device("e")), old)
    # Counted before what is switched off is dropped.
    dropped = Writer().update(slice_body(device(), skipNodeOperations=["*"]), old)

    assert old["metadata"]["generation"] == 1
    assert same.obj["metadata"]["generation"] == 1
    assert changed.obj["metadata"]["generation"] == 2
    assert dropped.obj["metadata"]["generation"] == 2
    assert dropped.spec == old["spec"]


def test_an_update_without_time_added_restarts_the_clock() -> None:
    old = Writer().read(slice_body(device(taints=[taint(timeAdded="2020-01-01T00:00:00Z")])))

    got = Writer().update(slice_body(device(taints=[taint()])), old)

    assert got.spec["devices"][0]["taints"][0]["timeAdded"] == "2026-03-01T12:00:00Z"


def test_a_changed_effect_leaves_the_time_of_a_slice_alone() -> None:
    since = "2020-01-01T00:00:00Z"
    old = Writer().read(slice_body(device(taints=[taint(timeAdded=since)])))

    got = Writer().update(slice_body(device(taints=[taint(effect="None", timeAdded=since)])), old)

    assert got.spec["devices"][0]["taints"][0]["timeAdded"] == since


IMMUTABLE = {
    "driver": ({"driver": "x.example.com"}, "spec.driver", '"x.example.com"'),
    "pool": ({"pool": resource_pool("q")}, "spec.pool.name", '"q"'),
    "node": ({"nodeName": "m"}, "spec.nodeName", '"m"'),
    "no node": ({"nodeName": None, "allNodes": True}, "spec.nodeName", "null"),
}


@pytest.mark.parametrize(("change", "path", "shown"), IMMUTABLE.values(), ids=IMMUTABLE.keys())
def test_what_cannot_change(change: dict[str, Any], path: str, shown: str) -> None:
    local: dict[str, Any] = {"nodeName": "n", "allNodes": None}
    old = Writer().read(slice_body(**local))

    got = Writer().update(slice_body(**(local | change)), old)

    assert got.texts == [f"{path}: Invalid value: {shown}: field is immutable"]
