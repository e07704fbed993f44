"""Rules from words: names, labels, criteria, and what a server would drop."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from sully.api.resource.annotations import DESCRIPTION
from sully.api.resource.eviction_rate import (
    BURST_ANNOTATION,
    RATE_ANNOTATION,
    EvictionRate,
    parse_rate,
)
from sully.domain.devices.rules import TOGETHER
from sully.domain.planning.rules.selectors import RuleSelector
from sully.domain.planning.rules.taint_grammar import TaintToAdd
from sully.domain.planning.rules.taint_rules import (
    TaintRequest,
    body_rate,
    build_rules,
    dropped_fields,
    overwrite_patch,
    rule_name,
    with_description_annotation,
    with_rate_annotation,
    without_rate,
)
from sully.testing.clock import NOON

TAINT = TaintToAdd("example.com/Too_Hot", "fan", "NoExecute")
GPU = RuleSelector(driver="d", pool="p", device="gpu-0")
OTHER = RuleSelector(driver="d", pool="p", device="gpu-1")


def test_one_selection_is_one_rule() -> None:
    full = TaintRequest(
        taint=TAINT,
        reason="why",
        expires=NOON,
        rate=EvictionRate(3),
        name="hot",
    )

    (rule,) = build_rules([replace(GPU, device_class="a100", expressions=("true",))], full)

    assert rule["metadata"] == {
        "name": "hot",
        "annotations": {"sully.dev/expires-at": "2030-01-01T12:00:00Z"},
    }
    assert rule["spec"]["deviceSelector"] == {
        **GPU.fields(),
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
    rules = build_rules([GPU, OTHER], TaintRequest(taint=TAINT, name="hot"))

    names = [item["metadata"]["name"] for item in rules]
    assert names == ["hot-p-gpu-0", "hot-p-gpu-1"]
    assert [item["metadata"]["labels"] for item in rules] == [{TOGETHER: "hot"}] * 2


def test_asking_twice_finds_the_same_rule_and_asking_otherwise_another() -> None:
    def name(selector: RuleSelector) -> str:
        return str(build_rules([selector], TaintRequest(taint=TAINT))[0]["metadata"]["name"])

    assert name(GPU) == name(GPU)
    assert name(GPU).startswith("too-hot-")
    assert (
        len({name(GPU), name(OTHER), name(replace(GPU, device_class="c")), name(RuleSelector())})
        == 4
    )


def test_a_key_that_makes_no_name() -> None:
    (rule,) = build_rules([GPU], TaintRequest(taint=TaintToAdd("_._", "", "NoExecute")))

    assert rule["metadata"]["name"].startswith("taint-")


def test_every_device_is_an_empty_selector() -> None:
    (rule,) = build_rules([RuleSelector()], TaintRequest(taint=TAINT))

    assert rule["spec"]["deviceSelector"] == {}


LOST = {
    "nothing": ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, []),
    "another value is not dropped_fields": ({"a": 1}, {"a": 2}, []),
    "a field": ({"a": 1, "b": 2}, {"a": 1}, ["b"]),
    "a field inside": ({"taint": {"x": 1, "y": 2}}, {"taint": {"x": 1}}, ["taint.y"]),
    "all of it": ({"a": {"b": 1}}, {}, ["a"]),
}


@pytest.mark.parametrize(("sent", "returned", "want"), LOST.values(), ids=LOST)
def test_lost(sent: Any, returned: Any, want: list[str]) -> None:
    assert list(dropped_fields(sent, returned)) == want


def test_what_a_foreign_server_keeps() -> None:
    (rule,) = build_rules([GPU], TaintRequest(taint=TAINT, reason="why", rate=EvictionRate(3)))

    aside = with_description_annotation(rule)

    assert aside["metadata"]["annotations"] == {DESCRIPTION: "why"}
    assert "description" not in aside["spec"]["taint"]
    assert "evictionsPerSecond" not in without_rate(rule)["spec"]["taint"]
    # What it was made from is as before.
    assert rule["spec"]["taint"]["description"] == "why"


def existing(rate: EvictionRate | None = None) -> dict[str, Any]:
    before = TaintRequest(taint=TAINT, reason="why", expires=NOON, rate=rate, name="r")
    (rule,) = build_rules([replace(GPU, device_class="c")], before)
    rule["spec"]["taint"]["timeAdded"] = "2030-01-01T11:00:00Z"
    rule["metadata"]["annotations"]["example.com/other"] = "returned"
    return rule


def test_overwriting_keeps_what_is_not_given() -> None:
    request = TaintRequest(
        taint=TaintToAdd(TAINT.key, "", "NoSchedule"), rate=EvictionRate(10), name="r"
    )
    (body,) = build_rules([GPU], request)

    patch = overwrite_patch(body, existing(EvictionRate(1, burst=1)), rate_set=False)

    assert patch["metadata"] == {"name": "r"}
    assert patch["spec"]["deviceSelector"] == {**GPU.fields(), "deviceClassName": None}
    assert patch["spec"]["taint"] == {"key": TAINT.key, "effect": "NoSchedule", "value": None}
    assert list(dropped_fields(patch["spec"], body["spec"])) == []


def test_overwriting_replaces_what_is_given() -> None:
    request = TaintRequest(taint=TAINT, reason="new", rate=EvictionRate(10), name="r")
    (body,) = build_rules([GPU], request)
    before = with_description_annotation(existing(EvictionRate(1, burst=1)))

    patch = overwrite_patch(body, before)

    assert patch["metadata"]["annotations"] == {DESCRIPTION: None, BURST_ANNOTATION: None}
    assert patch["spec"]["taint"]["description"] == "new"
    assert patch["spec"]["taint"]["evictionsPerSecond"] == 10


RATES = {
    "whole numbers are the field": (EvictionRate(10), 10, {}),
    "another burst is an annotation": (EvictionRate(2, burst=1), 2, {BURST_ANNOTATION: "1"}),
    "a slow rate is one, too": (
        parse_rate("1/5m"),
        1,
        {RATE_ANNOTATION: "1/5m", BURST_ANNOTATION: "1"},
    ),
    "120 per minute": (parse_rate("120/m"), 2, {}),
    "no limit": (None, None, {}),
}


@pytest.mark.parametrize(("rate", "field", "annotations"), RATES.values(), ids=RATES)
def test_rates(rate: EvictionRate | None, field: int | None, annotations: dict[str, str]) -> None:
    (rule,) = build_rules([GPU], TaintRequest(taint=TAINT, rate=rate))

    assert rule["spec"]["taint"].get("evictionsPerSecond") == field
    assert rule["metadata"].get("annotations", {}) == annotations
    moved = with_rate_annotation(rule)
    assert "evictionsPerSecond" not in moved["spec"]["taint"]
    # What it means stays the same, whatever it is written as.
    for body in (rule, moved):
        got = body_rate(body)
        assert (got is None) == (rate is None)
        if got is not None and rate is not None:
            assert (got.interval, got.burst) == (rate.interval, rate.burst)


def test_taints_that_share_a_name() -> None:
    assert rule_name("hot", TAINT) == "hot-too-hot-noexecute"
