"""Rules from words: names, labels, criteria, and what a server would drop."""

from __future__ import annotations

from typing import Any

import pytest

from sully.api.resource.annotations import DESCRIPTION
from sully.domain.devices.rules import TOGETHER
from sully.domain.planning.taint_rules import (
    TaintRequest,
    build_rules,
    dropped_fields,
    overwrite_patch,
    rule_name,
    with_description_annotation,
    without_rate,
)
from sully.domain.planning.taintgrammar import TaintToAdd
from sully.testing.clock import NOON

TAINT = TaintToAdd("example.com/Too_Hot", "fan", "NoExecute")
GPU = {"driver": "d", "pool": "p", "device": "gpu-0"}
OTHER = {"driver": "d", "pool": "p", "device": "gpu-1"}


def test_one_selection_is_one_rule() -> None:
    full = TaintRequest(
        taint=TAINT,
        device_class="a100",
        expressions=("true",),
        reason="why",
        expires=NOON,
        rate=3,
        name="hot",
    )

    (rule,) = build_rules([GPU], full)

    assert rule["metadata"] == {
        "name": "hot",
        "annotations": {"sully.dev/expires-at": "2030-01-01T12:00:00Z"},
    }
    assert rule["spec"]["deviceSelector"] == {
        **GPU,
        "deviceClassName": "a100",
        "selectors": [{"cel": {"expression": "true"}}],
    }
    assert rule["spec"]["taint"] == {
        "key": "example.com/Too_Hot",
        "value": "fan",
        "effect": "NoExecute",
        "description": "why",
        "evictionsPerSecond": 3,
    }


def test_several_selections_share_a_label() -> None:
    found = build_rules([GPU, OTHER], TaintRequest(taint=TAINT, name="hot"))

    names = [each["metadata"]["name"] for each in found]
    assert len(set(names)) == 2
    assert all(name.startswith("hot-") for name in names)
    assert [each["metadata"]["labels"] for each in found] == [{TOGETHER: "hot"}] * 2


def test_asking_twice_finds_the_same_rule_and_asking_otherwise_another() -> None:
    def name(names: dict[str, str], **more: Any) -> str:
        return str(build_rules([names], TaintRequest(taint=TAINT, **more))[0]["metadata"]["name"])

    assert name(GPU) == name(GPU)
    assert name(GPU).startswith("too-hot-")
    assert len({name(GPU), name(OTHER), name(GPU, device_class="c"), name({})}) == 4


def test_a_key_that_makes_no_name() -> None:
    (rule,) = build_rules([GPU], TaintRequest(taint=TaintToAdd("_._", "", "NoExecute")))

    assert rule["metadata"]["name"].startswith("taint-")


def test_every_device_is_an_empty_selector() -> None:
    (rule,) = build_rules([{}], TaintRequest(taint=TAINT))

    assert rule["spec"]["deviceSelector"] == {}


LOST = {
    "nothing": ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, []),
    "another value is not dropped_fields": ({"a": 1}, {"a": 2}, []),
    "a field": ({"a": 1, "b": 2}, {"a": 1}, ["b"]),
    "a field inside": ({"taint": {"x": 1, "y": 2}}, {"taint": {"x": 1}}, ["taint.y"]),
    "all of it": ({"a": {"b": 1}}, {}, ["a"]),
}


@pytest.mark.parametrize(("sent", "kept", "want"), LOST.values(), ids=LOST)
def test_lost(sent: Any, kept: Any, want: list[str]) -> None:
    assert list(dropped_fields(sent, kept)) == want


def test_what_a_foreign_server_keeps() -> None:
    (rule,) = build_rules([GPU], TaintRequest(taint=TAINT, reason="why", rate=3))

    aside = with_description_annotation(rule)

    assert aside["metadata"]["annotations"] == {DESCRIPTION: "why"}
    assert "description" not in aside["spec"]["taint"]
    assert "evictionsPerSecond" not in without_rate(rule)["spec"]["taint"]
    # What it was made from is as before.
    assert rule["spec"]["taint"]["description"] == "why"


def test_what_is_not_asked_for_again_goes() -> None:
    before = TaintRequest(
        taint=TAINT, reason="why", expires=NOON, rate=3, device_class="c", name="r"
    )
    (known,) = build_rules([GPU], before)
    known["spec"]["taint"]["timeAdded"] = "2030-01-01T11:00:00Z"
    known["metadata"]["annotations"]["example.com/other"] = "kept"
    (body,) = build_rules(
        [GPU], TaintRequest(taint=TaintToAdd(TAINT.key, "", "NoSchedule"), name="r")
    )

    patch = overwrite_patch(body, known)

    assert patch["metadata"] == {"name": "r", "annotations": {"sully.dev/expires-at": None}}
    assert patch["spec"]["deviceSelector"] == {**GPU, "deviceClassName": None}
    assert patch["spec"]["taint"] == {
        "key": TAINT.key,
        "effect": "NoSchedule",
        "value": None,
        "description": None,
        "evictionsPerSecond": None,
    }
    assert list(dropped_fields(patch["spec"], body["spec"])) == []


def test_taints_that_share_a_name() -> None:
    assert rule_name("hot", TAINT) == "hot-too-hot-noexecute"
