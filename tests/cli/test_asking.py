"""What has to be typed before pods leave, and how progress is read from rules and shown."""

from __future__ import annotations

import argparse
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest

from devices import meta, rule, select
from sully.api.resource.types import ConditionsStatus, DeviceTaintRule
from sully.cli.acting.asking import number_to_type
from sully.cli.acting.progress import Followed, State, _Line, _still_at_work, state_of
from sully.cli.client.calling import Session
from sully.domain.planning.report import Departure, DeviceTold, Fate, Landing, Plan
from sully.machinery.meta import Condition
from sully.testing.clock import NOON, FakeClock


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


class Screen(StringIO):
    """A terminal of 80 columns, or a pipe."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def fileno(self) -> int:
        raise OSError("there is no terminal behind it")


BARS: dict[str, tuple[State, Followed, bool, str]] = {
    "by the pace": (
        State(True, 20, 10, False),
        Followed(["r"], 2, NOON),
        True,
        "[##########....................] 10/30 pods evicted, 2/s, about 10s to go",
    ),
    "by the plan, where pods tolerate the taint": (
        State(True, 1, 1, False),
        Followed(["r"], 10, NOON + timedelta(minutes=5)),
        True,
        "[###############...............] 1/2 pods evicted, 10/s, about 5m to go",
    ),
    "without a pace": (
        State(True, 1, 0, False),
        Followed(["r"], None),
        True,
        "[..............................] 0/1 pods evicted, about 1s to go",
    ),
    "paused": (
        State(True, 1, 1, True),
        Followed(["r"], 10),
        True,
        "[###############...............] 1/2 pods evicted, paused",
    ),
    "in a pipe, where a line that counts down would fill it": (
        State(True, 1, 1, False),
        Followed(["r"], 10, NOON + timedelta(minutes=5)),
        False,
        "1/2 pods evicted, 10/s",
    ),
    "nobody": (State(True, 0, 0, False), Followed(["r"], 10), True, ""),
    "nothing is told yet": (State(False, 3, 0, False), Followed(["r"], 10), True, ""),
}


@pytest.mark.parametrize(("state", "what", "terminal", "want"), BARS.values(), ids=BARS)
def test_bars(state: State, what: Followed, terminal: bool, want: str) -> None:
    out = Screen(terminal=terminal)
    session = Session(argparse.Namespace(), "taint", FakeClock())
    line = _Line(session, what, out)

    line.show(state)
    once = out.getvalue()
    line.show(state)

    assert once.strip() == want
    assert out.getvalue() == once
    assert not terminal or len(once) <= 80


LEFT = {
    "one rule": (["hot"], "sully evictions pause hot\n"),
    "the rules of a glob": (["hot-1f-a", "hot-1f-b"], "sully evictions pause 'hot-1f-*'\n"),
    "rules of several taints": (["hot-1", "cold-2"], "sully evictions pause hot-1 cold-2\n"),
}


@pytest.mark.parametrize(("names", "want"), LEFT.values(), ids=LEFT)
def test_how_to_stop_what_was_left(names: list[str], want: str) -> None:
    assert want in _still_at_work(names)
