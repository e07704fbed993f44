"""Samples of Prometheus: which device they are about, and what never counts as healthy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sully.api.sully.types import DeviceTaintPolicyPrometheus
from sully.domain.devicepolicies.sources.prometheus import (
    QueryError,
    QueryResult,
    interval_of,
    parse_response,
    sample_of,
    timeout_of,
)
from sully.domain.devices.pools import DeviceId
from sully.domain.health.matching import Identity

SOURCE = DeviceTaintPolicyPrometheus(url="http://p", query="up")
DEVICE = Identity(
    DeviceId("gpu.example.com", "n1", "gpu-0"),
    "n1",
    frozenset(("gpu-a",)),
    frozenset(("0000:3b:00.0",)),
    0,
)


def body(*samples: tuple[dict[str, str], str], **data: Any) -> bytes:
    result = [{"metric": metric, "value": [0, value]} for metric, value in samples]
    whole = {"resultType": "vector", "result": result, **data}
    return json.dumps({"status": "success", "data": whole}).encode()


def asked(*samples: tuple[dict[str, str], str], **labels: str) -> float:
    source = DeviceTaintPolicyPrometheus(url="http://p", query="up", labels=labels)
    return sample_of(QueryResult(parse_response(source, body(*samples))), DEVICE)


ABOUT: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "by UUID": ({"UUID": "GPU-a"}, {}),
    "by UUID, whatever the address": ({"UUID": "GPU-a", "Hostname": "n2", "gpu": "7"}, {}),
    "by address": ({"Hostname": "n1", "pci_bus_id": "00000000:3B:00.0"}, {}),
    "by index": ({"Hostname": "n1", "gpu": "0"}, {}),
    "by other labels": ({"instance": "n1", "i": "0"}, {"node": "instance", "index": "i"}),
}
NOT_ABOUT = {
    "another GPU": {"UUID": "GPU-b"},
    "another node": {"Hostname": "n2", "gpu": "0"},
    "an index of no node": {"gpu": "0"},
    "nothing": {},
}


@pytest.mark.parametrize("case", ABOUT.values(), ids=ABOUT.keys())
def test_samples_of_a_device(case: tuple[dict[str, str], dict[str, str]]) -> None:
    metric, labels = case

    assert asked((metric, "1"), **labels) == 1
    assert asked((metric, "0"), **labels) == 0


@pytest.mark.parametrize("metric", NOT_ABOUT.values(), ids=NOT_ABOUT.keys())
def test_a_device_without_a_sample_is_unknown(metric: dict[str, str]) -> None:
    with pytest.raises(QueryError, match="no sample"):
        asked((metric, "0"))


@pytest.mark.parametrize(("one", "other"), [("0", "5"), ("5", "0")])
def test_of_several_samples_a_fault_wins(one: str, other: str) -> None:
    assert asked(({"UUID": "GPU-a"}, one), ({"UUID": "GPU-a"}, other)) == 5


@pytest.mark.parametrize("values", [("NaN",), ("1", "NaN"), ("NaN", "0")])
def test_no_number_is_unknown(values: tuple[str, ...]) -> None:
    with pytest.raises(QueryError, match="no number"):
        asked(*(({"UUID": "GPU-a"}, value) for value in values))


WRONG: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"<html>", "not JSON"),
    "a list": (b"[]", "not that of a Prometheus query"),
    "an error": (b'{"status": "error"}', "not that of a Prometheus query"),
    "a matrix": (body(resultType="matrix"), "returns a matrix"),
    "no samples": (body(result=None), "not that of a Prometheus query"),
    "a sample without a value": (body(result=[{"metric": {}}]), "not that of a Prometheus query"),
    "a sample that is not an object": (body(result=["a"]), "not that of a Prometheus query"),
    "a value that is not a number": (body(({}, "many")), "has no value"),
    "an unknown type": (body(resultType="x" * 5000), "not that of a Prometheus query"),
    "too many samples": (body(result=[{"value": [0, "0"]}] * 100_001), "more than 100000 samples"),
    "a value that no float holds": (
        body(result=[{"value": [0, int("9" * 400)]}]),
        "not that of a Prometheus query",
    ),
    "a time that no float holds": (
        body(result=[{"value": [int("9" * 400), "0"]}]),
        "not that of a Prometheus query",
    ),
    "text that is not UTF-8": (body(({"UUID": "%"}, "0")).replace(b"%", b"\xff"), "not JSON"),
    "nesting": (b"[" * 100_000, "not that of a Prometheus query"),
    "nesting in a field that nobody reads": (b'{"a": ' + b"[" * 100_000, "nested too deeply"),
    "nesting in the result": (
        body(result="%").replace(b'"%"', b"[" * 100_000 + b"]" * 100_000),
        "nested too deeply",
    ),
}


@pytest.mark.parametrize(("answer", "want"), WRONG.values(), ids=WRONG.keys())
def test_what_is_not_a_result(answer: bytes, want: str) -> None:
    with pytest.raises(QueryError, match=want):
        parse_response(SOURCE, answer)


@pytest.mark.parametrize(
    ("result", "want"), [(None, "not queried"), (QueryResult(problem="no answer"), "no answer")]
)
def test_without_a_result_every_device_is_unknown(result: QueryResult | None, want: str) -> None:
    with pytest.raises(QueryError, match=want):
        sample_of(result, DEVICE)


def test_a_query_never_takes_longer_than_the_interval() -> None:
    source = DeviceTaintPolicyPrometheus(url="http://p", query="up", interval="5s")

    assert (interval_of(source), timeout_of(source)) == (interval_of(source),) * 2
    assert timeout_of(SOURCE).total_seconds() == 10


def test_a_query_takes_a_minute_at_most() -> None:
    """Another server may have stored more."""
    source = DeviceTaintPolicyPrometheus(
        query="up", url="http://p", interval="8760h", timeout="8760h"
    )

    assert timeout_of(source).total_seconds() == 60
