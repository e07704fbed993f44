"""What has to be typed before pods leave, and how progress is read from rules."""

from __future__ import annotations

from typing import Any

import pytest

from devices import meta, rule, select
from sully.api.resource.types import ConditionsStatus, DeviceTaintRule
from sully.cli.acting.asking import number_to_type
from sully.cli.acting.progress import State, state_of
from sully.domain.planning.report import Departure, DeviceTold, Fate, Landing, Plan
from sully.machinery.meta import Condition
from sully.testing.clock import NOON


def plan(pods: int, devices: int, known: int) -> Plan:
    departure = Departure(
        namespace="a",
        name="p",
        owner="o",
        node="n",
        at=NOON,
        after=0,
        devices=(),
        because=(),
        anyway=False,
        landing=Landing(fate=Fate.LANDS),
    )
    told = DeviceTold(device="d", node="n")
    return Plan(
        at=NOON,
        changes=(),
        departures=(departure,) * pods,
        devices=(told,) * devices,
        devices_known=known,
    )


TYPED: dict[str, tuple[Plan, Any]] = {
    "little": (plan(1, 1, 100), None),
    "twenty pods": (plan(20, 10, 100), None),
    "more than twenty pods": (plan(21, 1, 100), (21, "pods that leave")),
    "a tenth of all devices": (plan(5, 10, 100), None),
    "more than a tenth": (plan(5, 11, 100), (5, "pods that leave")),
    "more than a tenth, and nobody on them": (plan(0, 11, 100), (11, "devices that change")),
}


@pytest.mark.parametrize(("given", "want"), TYPED.values(), ids=TYPED)
def test_number_to_type(given: Plan, want: Any) -> None:
    assert number_to_type(given) == want


def with_status(*conditions: tuple[str, str, str], observed: int = 1) -> DeviceTaintRule:
    told = tuple(
        Condition(type=type_, status=status, reason="r", message=text, observed_generation=observed)
        for type_, status, text in conditions
    )
    base = rule("r", select())
    return DeviceTaintRule(
        metadata=meta("r", generation=1),
        spec=base.spec,
        status=ConditionsStatus(conditions=told),
    )


PENDING = ("EvictionInProgress", "True", "3 pods need to be evicted in 1 namespace.")
DONE = ("EvictionInProgress", "False", "2 pods evicted since starting the controller.")
EVICTED = ("sully.dev/Evicted", "True", "2 pods evicted.")
PAUSED = ("sully.dev/Paused", "True", "lunch")
STATES = {
    "nothing is told yet": ([with_status()], State(False, 0, 0, False)),
    "told of an older state": ([with_status(PENDING, observed=0)], State(False, 0, 0, False)),
    "at work": ([with_status(PENDING, EVICTED)], State(True, 3, 2, False)),
    "paused": ([with_status(PENDING, PAUSED)], State(True, 3, 0, True)),
    "over": ([with_status(DONE, EVICTED)], State(True, 0, 2, False)),
    "two rules": ([with_status(PENDING), with_status(DONE, EVICTED)], State(True, 3, 2, False)),
    "all were lifted": ([], State(True, 0, 0, False)),
}


@pytest.mark.parametrize(("rules", "want"), STATES.values(), ids=STATES)
def test_state_of(rules: list[DeviceTaintRule], want: State) -> None:
    assert state_of(rules) == want
    assert state_of(rules).over == (want.told and not want.pending)
