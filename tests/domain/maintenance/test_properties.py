"""Random histories: what holds for every maintenance, whatever happens and in whatever order.

Each decision gets nothing but the status that the one before stored, as after a restart.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.maintenance.histories import HOUR, START, History, maintenance
from property_examples import examples
from sully.api.sully.types import DeviceMaintenanceStatus
from sully.domain.drain.messages import DrainOutcome
from sully.domain.maintenance.settings import settings_of
from sully.domain.maintenance.steps import FAILED, DrainReport, UnitSeen
from sully.domain.workloads.percentages import scaled

pytestmark = pytest.mark.slow

NAMES = "abcdef"
FAILURES = (DrainOutcome.TIMED_OUT, DrainOutcome.EVICTION_LOOP, DrainOutcome.REPLACEMENT_PENDING)

specs = st.fixed_dictionaries(
    {
        "duration": st.sampled_from(["", "1h", "4h"]),
        "closeBefore": st.sampled_from(["", "30m", "2h"]),
        "rolling": st.fixed_dictionaries(
            {"maxUnavailable": st.integers(1, 3) | st.sampled_from(["20%", "50%"])}
        ),
        "drain": st.sampled_from(
            [{}, {"timeout": "10m", "then": "NoExecute"}, {"mode": "WhenIdle"}]
        ),
        "hook": st.sampled_from(
            [None, {"type": "Approval"}, {"type": "Approval", "timeout": "20m"}]
        ),
        "proof": st.sampled_from([None, {"type": "Manual"}]),
    }
)
events = st.one_of(
    st.tuples(st.just("wait"), st.integers(1, 90)),
    st.tuples(
        st.sampled_from(
            ["publish", "vanish", "idle", "busy", "drained", "stuck", "late", "approve", "unready"]
        ),
        st.sampled_from(NAMES),
    ),
    st.tuples(st.sampled_from(["pause", "resume"]), st.none()),
)


def happen(reported: History, what: str, detail: Any) -> None:
    """Let one thing happen."""
    match what:
        case "wait":
            reported.now += timedelta(minutes=detail)
        case "pause" | "resume":
            reported.change(paused=what == "pause")
        case "cancel":
            reported.change(cancelled=True)
        case "publish":
            reported.observe(detail)
        case _ if detail not in reported.seen:
            pass
        case "vanish":
            del reported.seen[detail]
        case "approve":
            if detail in reported.phases:
                reported.approve(detail)
        case _:
            outcome = FAILURES[ord(detail) % len(FAILURES)]
            reported.observe(detail, **OBSERVATIONS.get(what) or {"drain": _stuck(outcome)})


def _stuck(outcome: DrainOutcome) -> DrainReport:
    return DrainReport(outcome=outcome, message="it is stuck")


OBSERVATIONS: dict[str, dict[str, Any]] = {
    "idle": {"idle": True, "drain": DrainReport()},
    "busy": {"idle": False, "drain": DrainReport()},
    "unready": {"ready": False},
    "drained": {"ready": True, "idle": True, "drain": DrainReport(outcome=DrainOutcome.DONE)},
    "late": {"drain": DrainReport(no_execute=True)},
}


def check(reported: History, before: DeviceMaintenanceStatus) -> None:
    """Check what must always hold."""
    expected = settings_of(reported.body)
    status = reported.status
    if len(status.units) > scaled(expected.max_unavailable, status.total, up=True):
        # Devices vanished, and a percentage of them is less: no other is closed.
        assert {unit.name for unit in status.units} <= {unit.name for unit in before.units}
    assert set(before.finished) <= set(status.finished)
    assert not set(status.finished) & {unit.name for unit in status.units}
    over = expected.is_over(reported.now)
    if reported.now < START or expected.paused or expected.cancelled or over:
        assert reported.evicts() == set()
    if reported.now < START - expected.close_before or expected.cancelled:
        assert reported.effects() == {}
    if over:
        assert all(unit.work_time is not None for unit in status.units)
    for unit in status.units:
        assert unit.closed_time is not None
        if unit.drain_time is not None:
            assert unit.drain_time >= max(START, unit.closed_time + expected.close_before)


def calm(reported: History) -> None:
    """Let everything go well until the end."""
    reported.change(paused=False)
    for _ in range(60):
        for name in list(reported.seen):
            happen(reported, "drained", name)
        for name in reported.phases:
            reported.seen.setdefault(name, UnitSeen(devices=(f"d/p/{name}",)))
            happen(reported, "approve", name)
        reported.now += HOUR / 4
        reported.decide()


@settings(max_examples=examples(100))
@given(specs, st.lists(events, max_size=40), st.booleans())
def test_every_history(spec: dict[str, Any], history: list[Any], cancelled: bool) -> None:
    reported = History(maintenance(**{key: value for key, value in spec.items() if value}))
    for name in NAMES[:4]:
        reported.observe(name, idle=False)
    for what, detail in history:
        before = reported.status
        happen(reported, what, detail)
        reported.decide()
        check(reported, before)
    if cancelled:
        happen(reported, "cancel", None)
        reported.decide()
        check(reported, reported.status)
    calm(reported)

    assert reported.effects() == {}
    assert reported.status.phase in ("Completed", "Ended", "Cancelled")


@settings(max_examples=examples(30))
@given(specs, st.lists(events, max_size=40))
def test_what_failed_at_work_stays_closed(spec: dict[str, Any], history: list[Any]) -> None:
    reported = History(maintenance(**{key: value for key, value in spec.items() if value}))
    for name in NAMES[:4]:
        reported.observe(name, idle=False)
    for what, detail in history:
        worked = {
            unit.name
            for unit in reported.status.units
            if unit.phase == FAILED and unit.work_time is not None
        }
        approved = what == "approve" and detail in worked
        happen(reported, what, detail)
        reported.decide()
        assert approved or worked <= reported.effects().keys()
