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
from sully.domain.drain.messages import Outcome
from sully.domain.maintenance.settings import settings_of
from sully.domain.maintenance.steps import FAILED, DrainReport, UnitSeen
from sully.domain.workloads.percentages import scaled

pytestmark = pytest.mark.slow

NAMES = "abcdef"
FAILURES = (Outcome.TIMED_OUT, Outcome.EVICTION_LOOP, Outcome.REPLACEMENT_PENDING)

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


def happen(told: History, what: str, detail: Any) -> None:
    """Let one thing happen."""
    match what:
        case "wait":
            told.now += timedelta(minutes=detail)
        case "pause" | "resume":
            told.change(paused=what == "pause")
        case "cancel":
            told.change(cancelled=True)
        case "publish":
            told.observe(detail)
        case _ if detail not in told.seen:
            pass
        case "vanish":
            del told.seen[detail]
        case "approve":
            if detail in told.phases:
                told.approve(detail)
        case _:
            outcome = FAILURES[ord(detail) % len(FAILURES)]
            told.observe(detail, **OBSERVATIONS.get(what) or {"drain": _stuck(outcome)})


def _stuck(outcome: Outcome) -> DrainReport:
    return DrainReport(outcome=outcome, message="it is stuck")


OBSERVATIONS: dict[str, dict[str, Any]] = {
    "idle": {"idle": True, "drain": DrainReport()},
    "busy": {"idle": False, "drain": DrainReport()},
    "unready": {"ready": False},
    "drained": {"ready": True, "idle": True, "drain": DrainReport(outcome=Outcome.DONE)},
    "late": {"drain": DrainReport(no_execute=True)},
}


def check(told: History, before: DeviceMaintenanceStatus) -> None:
    """Check what must always hold."""
    wanted = settings_of(told.body)
    status = told.status
    if len(status.units) > scaled(wanted.max_unavailable, status.total, up=True):
        # Devices vanished, and a percentage of them is less: no other is closed.
        assert {unit.name for unit in status.units} <= {unit.name for unit in before.units}
    assert set(before.finished) <= set(status.finished)
    assert not set(status.finished) & {unit.name for unit in status.units}
    over = wanted.is_over(told.now)
    if told.now < START or wanted.paused or wanted.cancelled or over:
        assert told.evicts() == set()
    if told.now < START - wanted.close_before or wanted.cancelled:
        assert told.effects() == {}
    if over:
        assert all(unit.work_time is not None for unit in status.units)
    for unit in status.units:
        assert unit.closed_time is not None
        if unit.drain_time is not None:
            assert unit.drain_time >= max(START, unit.closed_time + wanted.close_before)


def calm(told: History) -> None:
    """Let everything go well until the end."""
    told.change(paused=False)
    for _ in range(60):
        for name in list(told.seen):
            happen(told, "drained", name)
        for name in told.phases:
            told.seen.setdefault(name, UnitSeen(devices=(f"d/p/{name}",)))
            happen(told, "approve", name)
        told.now += HOUR / 4
        told.decide()


@settings(max_examples=examples(100))
@given(specs, st.lists(events, max_size=40), st.booleans())
def test_every_history(spec: dict[str, Any], history: list[Any], cancelled: bool) -> None:
    told = History(maintenance(**{key: value for key, value in spec.items() if value}))
    for name in NAMES[:4]:
        told.observe(name, idle=False)
    for what, detail in history:
        before = told.status
        happen(told, what, detail)
        told.decide()
        check(told, before)
    if cancelled:
        happen(told, "cancel", None)
        told.decide()
        check(told, told.status)
    calm(told)

    assert told.effects() == {}
    assert told.status.phase in ("Completed", "Ended", "Cancelled")


@settings(max_examples=examples(30))
@given(specs, st.lists(events, max_size=40))
def test_what_failed_at_work_stays_closed(spec: dict[str, Any], history: list[Any]) -> None:
    told = History(maintenance(**{key: value for key, value in spec.items() if value}))
    for name in NAMES[:4]:
        told.observe(name, idle=False)
    for what, detail in history:
        worked = {
            unit.name
            for unit in told.status.units
            if unit.phase == FAILED and unit.work_time is not None
        }
        approved = what == "approve" and detail in worked
        happen(told, what, detail)
        told.decide()
        assert approved or worked <= told.effects().keys()
