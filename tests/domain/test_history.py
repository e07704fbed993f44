"""Records of evicted pods and of rules."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.api.resource.annotations import CREATED_BY, DESCRIPTION, EXPIRES_AT, PAUSED
from sully.api.resource.types import (
    CELDeviceSelector,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
)
from sully.api.sully.record_validation import validate_eviction, validate_taint
from sully.api.sully.types import EvictedPod, EvictedPodOwner, TaintRecordStatus, rules_of
from sully.client.objects import to_body
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.taints import Origin, SourcedTaint
from sully.domain.eviction.judge import EvictingTaint
from sully.domain.eviction.records import (
    close_record,
    devices_text,
    follow,
    open_record,
    record,
    set_deleter,
    taint_record_name,
)
from sully.machinery.formats.names import dns_subdomain_problems
from sully.testing import builders
from sully.views.kinds import EVICTION_RECORDS, TAINT_RECORDS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
POD = EvictedPod(
    namespace="ns",
    name="p",
    uid="p-uid",
    node="node-1",
    owner=EvictedPodOwner(kind="ReplicaSet", name="web"),
)
UID = "0123abcd-4567-89ab-cdef-0123456789ab"


def reason(
    device: str = "gpu-0", kind: Any = "DeviceTaintRule", name: str = "hot"
) -> EvictingTaint:
    taint = DeviceTaint(key="k", value="v", effect="NoExecute", description="it smokes")
    origin = Origin(kind, name, f"{name}-uid")
    return EvictingTaint(DeviceId("d.com", "pool", device), SourcedTaint(taint, origin))


def test_a_record_reports_who_what_and_why() -> None:
    due = NOON - timedelta(seconds=5)
    reasons = (reason(kind="ResourceSlice", name="s"), reason(), reason("gpu-1"))

    got = record(POD, reasons, due=due, now=NOON, claims=("b", "a", "b"))

    assert got.metadata.name == "p-uid"
    assert got.metadata.namespace == "ns"
    assert got.metadata.labels == {"sully.dev/rule": "hot", "sully.dev/node": "node-1"}
    assert got.spec.pod == POD
    assert got.spec.claims == ("a", "b")
    assert got.spec.devices == ("d.com/pool/gpu-0", "d.com/pool/gpu-1")
    assert [(cause.kind, cause.name, cause.device) for cause in got.spec.causes] == [
        ("ResourceSlice", "s", "d.com/pool/gpu-0"),
        ("DeviceTaintRule", "hot", "d.com/pool/gpu-0"),
        ("DeviceTaintRule", "hot", "d.com/pool/gpu-1"),
    ]
    assert got.spec.causes[0].description == "it smokes"
    assert (got.spec.due_time, got.spec.evicted_time) == (due, NOON)
    assert rules_of(got) == {"hot-uid"}


def test_what_cannot_be_a_label_is_none() -> None:
    pod = msgspec.structs.replace(POD, node="n" * 64)

    assert record(pod, [reason(name="r" * 64)], due=NOON, now=NOON).metadata.labels == {}


@given(st.integers(1, 2000), st.integers(0, 400))
def test_a_record_is_always_valid(devices: int, claims: int) -> None:
    reasons = [reason(f"gpu-{index}") for index in range(devices)]
    names = [f"c-{index}" for index in range(claims)]

    got = record(POD, reasons, due=NOON, now=NOON, claims=names)

    body = to_body(EVICTION_RECORDS, got)
    assert list(validate_eviction(body["spec"], "ns")) == []


def rule(
    *,
    selector: DeviceTaintSelector | None = None,
    name: str = "hot",
    annotations: dict[str, str] | None = None,
    generation: int = 1,
    **taint: Any,
) -> DeviceTaintRule:
    known: dict[str, Any] = {"key": "k", "time": NOON}
    marks = builders.taint(**known | taint)
    metadata = {"annotations": annotations or {}, "creation_timestamp": NOON}
    return builders.rule(name, selector, marks, uid=UID, generation=generation, **metadata)


def test_the_record_of_a_rule_begins_with_who_and_why() -> None:
    everything = DeviceTaintSelector()
    annotations = {CREATED_BY: "alice", DESCRIPTION: "too hot", EXPIRES_AT: "2026-04-01T00:00:00Z"}

    got = open_record(rule(selector=everything, annotations=annotations), now=NOON)

    assert got.metadata.name == "hot-0123abcd"
    assert got.metadata.labels == {"sully.dev/rule": "hot"}
    assert got.spec.created_by == "alice"
    assert got.spec.description == "too hot"
    assert got.spec.added_time == NOON
    assert got.spec.device_selector == everything
    assert got.status.expires_at == "2026-04-01T00:00:00Z"
    assert got.status.changes == ()
    assert list(validate_taint(to_body(TAINT_RECORDS, got)["spec"])) == []


def test_the_taint_reports_why_before_the_rule_does() -> None:
    tainting = rule(annotations={DESCRIPTION: "rule"}, description="taint")

    assert open_record(tainting, now=NOON).spec.description == "taint"


NAMES = {
    "usual": ("hot", UID, "hot-0123abcd"),
    "long": ("a" * 253, UID, "a" * 244 + "-0123abcd"),
    "cut at a dot": ("a" * 243 + ".b" * 5, UID, "a" * 243 + "-0123abcd"),
    "an odd uid": ("hot", "u-1", "hot-u-1"),
}


@pytest.mark.parametrize(("name", "uid", "want"), NAMES.values(), ids=NAMES.keys())
def test_names_of_records(name: str, uid: str, want: str) -> None:
    got = taint_record_name(name, uid)

    assert got == want
    assert dns_subdomain_problems(got) == []


@dataclass(frozen=True)
class Case:
    before: DeviceTaintRule
    after: DeviceTaintRule
    want: tuple[str, ...] = ()


def cel(expression: str) -> tuple[DeviceSelector, ...]:
    return (DeviceSelector(cel=CELDeviceSelector(expression=expression)),)


LATER = NOON + timedelta(hours=1)
CHANGES = {
    "nothing": Case(rule(), rule()),
    "a touch that changes nothing": Case(rule(), rule(generation=2)),
    "the effect, and with it the time": Case(
        rule(effect="None"), rule(time=LATER), ("effect None -> NoExecute",)
    ),
    "the time": Case(
        rule(),
        rule(time=LATER),
        ("time added 2026-03-01T12:00:00Z -> 2026-03-01T13:00:00Z",),
    ),
    "key and value": Case(rule(value="v"), rule(key="l"), ("key k -> l", "value v -> none")),
    "the devices": Case(
        rule(selector=DeviceTaintSelector(driver="d.com")),
        rule(selector=DeviceTaintSelector(driver="d.com", device="gpu-1")),
        ("devices d.com/*/* -> d.com/*/gpu-1",),
    ),
    "from none to all": Case(
        rule(), rule(selector=DeviceTaintSelector()), ("devices none -> */*/*",)
    ),
    "the rate": Case(rule(), rule(evictions_per_second=5), ("rate default -> 5 per second",)),
    "data": Case(rule(data={"a": 1}), rule(data={"a": 2}), ("data changed",)),
    "paused": Case(rule(), rule(annotations={PAUSED: "true"}), ("paused",)),
    "paused with a reason": Case(rule(), rule(annotations={PAUSED: "night"}), ("paused: night",)),
    "resumed": Case(rule(annotations={PAUSED: "night"}), rule(), ("resumed",)),
    "expiry": Case(
        rule(),
        rule(annotations={EXPIRES_AT: "2026-04-01T00:00:00Z"}),
        ("expiry none -> 2026-04-01T00:00:00Z",),
    ),
    "why": Case(rule(description="a"), rule(description="b"), ("description a -> b",)),
}


@pytest.mark.parametrize("case", CHANGES.values(), ids=CHANGES.keys())
def test_changes_are_noted(case: Case) -> None:
    before = open_record(case.before, now=NOON).status

    got = follow(before, case.after, now=LATER)

    assert tuple(change.what for change in got.changes) == case.want
    assert {change.time for change in got.changes} <= {LATER}
    assert got.taint == case.after.spec.taint
    assert got.observed_generation == case.after.metadata.generation
    assert follow(got, case.after, now=LATER) == got


def test_only_the_last_changes_are_kept() -> None:
    status = open_record(rule(), now=NOON).status

    for index in range(60):
        status = follow(status, rule(value=f"v{index}"), now=NOON)

    assert len(status.changes) == 50
    assert status.changes[-1].what == "value v58 -> v59"


def test_a_record_whose_status_was_lost_restarts() -> None:
    got = follow(TaintRecordStatus(evicted=3), rule(), now=NOON)

    assert got.changes == ()
    assert got.evicted == 3
    assert got.taint == rule().spec.taint


@pytest.mark.parametrize("by", ["expiry", "alice", ""])
def test_deleted(by: str) -> None:
    got = close_record(open_record(rule(), now=NOON).status, now=LATER, by=by)

    assert (got.deleted_time, got.deleted_by) == (LATER, by)
    assert got.taint == rule().spec.taint


def test_who_deleted_a_rule_first_is_not_forgotten() -> None:
    got = close_record(
        set_deleter(open_record(rule(), now=NOON).status, by="alice"), now=LATER, by="collector"
    )

    assert (got.deleted_time, got.deleted_by) == (LATER, "alice")


def test_who_changed_a_rule() -> None:
    status = open_record(rule(), now=NOON).status
    paused = msgspec.structs.replace(
        rule(), metadata=msgspec.structs.replace(rule().metadata, annotations={PAUSED: "true"})
    )

    got = follow(status, paused, now=LATER, by="a" * 5000)

    assert [(change.what, change.by) for change in got.changes] == [("paused", "a" * 1024)]
    assert follow(got, paused, now=LATER, by="bob") == got


SELECTORS = {
    "none": (None, "none"),
    "all": (DeviceTaintSelector(), "*/*/*"),
    "names": (DeviceTaintSelector(driver="d", pool="p", device="x"), "d/p/x"),
    "content": (
        DeviceTaintSelector(device_class_name="c", selectors=cel("true")),
        "*/*/* of class c where true",
    ),
}


@pytest.mark.parametrize(("selector", "want"), SELECTORS.values(), ids=SELECTORS.keys())
def test_devices_as_text(selector: DeviceTaintSelector | None, want: str) -> None:
    assert devices_text(selector) == want
