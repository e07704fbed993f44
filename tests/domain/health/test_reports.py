"""What a report is worth at a time: stale ones are Unknown, what has expired does not count."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.api.sully.types import (
    STATUSES,
    DeviceHealth,
    DeviceHealthSpec,
    HealthReason,
    ReportedDevice,
)
from sully.domain.health.reports import health_of, next_change, staleness, worst_status
from sully.machinery.meta import ObjectMeta

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def reason(severity: str = "Critical", *, until: float | None = None) -> HealthReason:
    end = None if until is None else at(until)
    return HealthReason(key="xid", severity=severity, since=NOON, expiration_time=end)


def report(device: ReportedDevice, *, lease: int | None = 30) -> DeviceHealth:
    spec = DeviceHealthSpec(
        node_name="n1",
        reporter="nvml",
        renew_time=NOON,
        lease_duration_seconds=lease,
        devices=(device,),
    )
    return DeviceHealth(metadata=ObjectMeta(name="n1"), spec=spec)


@dataclass(frozen=True)
class Case:
    status: str = "Healthy"
    reasons: tuple[HealthReason, ...] = ()
    after: float = 1
    lease: int | None = 30
    want: str | None = "Healthy"
    since: float = -60


EXPIRES = (reason(until=10),)
CASES = {
    "as reported": Case(),
    "at the last moment": Case(after=29.9),
    "not renewed": Case(after=30, want="Unknown", since=30),
    "an unhealthy one that was not renewed": Case(
        "Unhealthy", (reason(),), after=3600, want="Unknown", since=30
    ),
    "a clock that is a little ahead": Case(after=-20),
    "a clock that is far ahead": Case(after=-3600, want="Unknown", since=-3600),
    "a fault": Case("Unhealthy", (reason(),), want="Unhealthy"),
    "a fault that has not expired": Case("Unhealthy", EXPIRES, want="Unhealthy"),
    "a fault that has expired": Case("Unhealthy", EXPIRES, after=10, since=10),
    "one of two has expired": Case(
        "Unhealthy", (*EXPIRES, reason("Warning")), after=20, want="Degraded", since=10
    ),
    "the milder one has expired": Case(
        "Unhealthy", (reason("Warning", until=5), reason()), after=20, want="Unhealthy"
    ),
    "information that has expired": Case("Healthy", (reason("Info", until=5),), after=20),
    "unknown, and the cause has expired": Case("Unknown", EXPIRES, after=20, want="Unknown"),
    "an event": Case("Unhealthy", EXPIRES, lease=None, want="Unhealthy"),
    "an event long ago": Case("Unhealthy", (reason(),), after=9**9, lease=None, want="Unhealthy"),
    "an event that has expired": Case("Unhealthy", EXPIRES, after=10, lease=None, want=None),
    "who only passes on events does not know": Case(lease=None, want=None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_health_of(case: Case) -> None:
    device = ReportedDevice(uuid="GPU-1", status=case.status, since=at(-60), reasons=case.reasons)

    got = health_of(report(device, lease=case.lease), device, now=at(case.after))

    assert (got and got.status) == case.want
    assert got is None or got.since == at(case.since)


def test_a_stale_report_keeps_what_it_last_knew() -> None:
    device = ReportedDevice(
        uuid="GPU-1", status="Unhealthy", since=NOON, reasons=(reason(), *EXPIRES)
    )

    got = health_of(report(device), device, now=at(60))

    assert got is not None
    assert got.reasons == (reason(),)
    assert got.problem == "the report was not renewed since 2030-01-01T12:00:00Z"


@given(
    st.sampled_from(STATUSES),
    st.lists(
        st.builds(
            reason,
            st.sampled_from(("Info", "Warning", "Critical")),
            until=st.none() | st.integers(-100, 100),
        ),
        max_size=4,
    ),
    st.integers(-100, 100),
)
def test_time_alone_never_makes_a_stale_report_healthy(
    status: str, reasons: list[HealthReason], after: int
) -> None:
    device = ReportedDevice(uuid="GPU-1", status=status, since=at(-200), reasons=tuple(reasons))
    one = report(device)
    now = at(after)

    got = health_of(one, device, now=now)

    assert got is not None
    assert got.since <= now
    assert (got.status == "Unknown") == bool(staleness(one, now) or status == "Unknown")
    # Nothing changes before the time at which it is reported to change.
    until = next_change(one, now=now)
    if until is not None and not staleness(one, now):
        before = health_of(one, device, now=until - timedelta(microseconds=1))
        assert before == got


WORST = {
    (): "Unknown",
    ("Healthy", "Degraded"): "Degraded",
    ("Degraded", "Unknown"): "Unknown",
    ("Unknown", "Unhealthy", "Healthy"): "Unhealthy",
}


@pytest.mark.parametrize(("statuses", "want"), WORST.items())
def test_worst_status(statuses: tuple[str, ...], want: str) -> None:
    assert worst_status(statuses) == want
