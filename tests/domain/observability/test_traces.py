"""The trace of an eviction, from the fault to the replacement."""

from __future__ import annotations

from datetime import datetime, timedelta

from sully.domain.observability.evictions import Eviction
from sully.domain.observability.traces import Cause, EvictionTrace, otlp, spans
from sully.testing.clock import NOON


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


EVICTION = Eviction("ns", "p", "uid-p", "n1", "why", "", "owner", at(60))
CAUSE = Cause("k:NoExecute", "DeviceTaintPolicy/x", at(0), at(30))


def names(trace: EvictionTrace) -> list[tuple[str, float, float]]:
    return [
        (one.name, (one.start - NOON).total_seconds(), (one.end - NOON).total_seconds())
        for one in spans(trace)
    ]


def test_from_the_fault_to_the_replacement() -> None:
    trace = EvictionTrace(EVICTION, CAUSE, at(70), at(90), "q", "n2")

    assert trace.complete
    assert names(trace) == [
        ("eviction", 0, 90),
        ("fault", 0, 30),
        ("taint", 30, 60),
        ("terminate", 60, 70),
        ("replace", 60, 90),
    ]
    assert spans(trace)[0].attributes["sully.source"] == "DeviceTaintPolicy/x"
    assert spans(trace)[-1].attributes == {"k8s.pod.name": "q", "k8s.node.name": "n2"}


def test_what_is_not_known_has_no_span() -> None:
    assert names(EvictionTrace(EVICTION, Cause())) == [("eviction", 60, 60)]
    late = Cause("k", "s", at(40), at(30))
    assert names(EvictionTrace(EVICTION, late, gone=at(50))) == [
        ("eviction", 30, 60),
        ("taint", 30, 60),
        ("terminate", 60, 60),
    ]


def test_when_nothing_more_happens() -> None:
    alone = Eviction("ns", "p", "u", "n1", "why", "", "", at(0))

    assert not EvictionTrace(EVICTION, Cause(), gone=at(1)).complete
    assert not EvictionTrace(EVICTION, Cause(), replaced=at(1)).complete
    assert EvictionTrace(alone, Cause(), gone=at(1)).complete


def test_as_a_collector_reads_it() -> None:
    trace = EvictionTrace(EVICTION, CAUSE, at(70), at(90), "q", "n2")
    (resource,) = otlp([trace], "1.2.3")["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    root, *parts = scope["spans"]

    assert {one["key"] for one in resource["resource"]["attributes"]} == {
        "service.name",
        "service.version",
    }
    assert "parentSpanId" not in root
    assert {one["parentSpanId"] for one in parts} == {root["spanId"]}
    assert {one["traceId"] for one in parts} == {root["traceId"]}
    assert len({one["spanId"] for one in scope["spans"]}) == 5
    assert (len(root["traceId"]), len(root["spanId"])) == (32, 16)
    assert int(root["endTimeUnixNano"]) - int(root["startTimeUnixNano"]) == 90 * 10**9
    assert otlp([trace], "1.2.3") == otlp([trace], "1.2.3")
