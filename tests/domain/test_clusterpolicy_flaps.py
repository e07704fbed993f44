"""Clusters that fail again and again, and faults with several statuses: tables and orders."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from fleets import later
from sully.api.cluster.taints.policy_states import RuleState, read_states, write_states
from sully.api.cluster.types import LabelSelector
from sully.api.resource.annotations import CLEARED_AT
from sully.api.sully.types import (
    ClusterTaintPolicy,
    ClusterTaintPolicyFlaps,
)
from sully.domain.clusters.policies import PolicyVerdict, policy_taints
from sully.machinery.formats.timestamps import format_time
from sully.machinery.meta import Condition
from sully.testing.builders import cluster, cluster_policy, cluster_policy_rule

FLAPS = ClusterTaintPolicyFlaps(count=3, within="10m")
BAD, LOST, GOOD = "False", "Unknown", "True"


def policy(
    *, flaps: ClusterTaintPolicyFlaps | None = None, or_statuses: tuple[str, ...] = ()
) -> ClusterTaintPolicy:
    rule = cluster_policy_rule(
        "Up", BAD, or_statuses=or_statuses, set_after_seconds=30, clear_after_seconds=60
    )
    return cluster_policy(rule, selector=LabelSelector(), flaps=flaps)


class World:
    """A cluster under one policy; whatever the controller records goes through annotations."""

    def __init__(self, policy: ClusterTaintPolicy) -> None:
        self._policies = [policy]
        self._cluster = cluster("c", creation_timestamp=later(0))
        self._verdict = PolicyVerdict((), frozenset())

    def turn(self, status: str, at: float) -> None:
        up = Condition(
            type="Up", status=status, reason="Test", message="", last_transition_time=later(at)
        )
        self._cluster = replace(
            self._cluster, status=replace(self._cluster.status, conditions=(up,))
        )

    def clear(self, at: float) -> None:
        annotations = {CLEARED_AT: format_time(later(at))}
        metadata = replace(self._cluster.metadata, annotations=annotations)
        self._cluster = replace(self._cluster, metadata=metadata)

    def look(self, at: float) -> PolicyVerdict:
        old = self._verdict
        states = read_states(write_states(old.states))
        self._verdict = policy_taints(
            self._cluster, self._policies, old.owned, later(at), states=states
        )
        taints = self._verdict.taints
        self._cluster = replace(self._cluster, spec=replace(self._cluster.spec, taints=taints))
        return self._verdict


@dataclass(frozen=True)
class Case:
    events: tuple[tuple[float, str], ...]
    """When the condition turned; `clear` is when a user declared the cluster healthy."""
    tainted: dict[float, bool]
    flaps: ClusterTaintPolicyFlaps | None = None
    or_statuses: tuple[str, ...] = ()


THRICE = ((0, BAD), (40, GOOD), (50, BAD), (60, GOOD), (70, BAD), (80, GOOD))
CASES = {
    "without flaps, the taint is cleared": Case(THRICE, {139: True, 140: False}),
    "flapping, it stays": Case(THRICE, {140: True, 10_000: True}, FLAPS),
    "too few faults": Case(THRICE[:4], {119: True, 120: False}, FLAPS),
    "too long ago": Case(
        ((0, BAD), (40, GOOD), (650, BAD), (690, GOOD), (700, BAD), (710, GOOD)),
        {100: False, 769: True, 770: False},
        FLAPS,
    ),
    "short faults of a healthy cluster do not count": Case(
        ((0, BAD), (10, GOOD), (20, BAD), (30, GOOD), (40, BAD), (75, GOOD)),
        {39: False, 70: True, 134: True, 135: False},
        FLAPS,
    ),
    "declared healthy": Case((*THRICE, (200, "clear")), {199: True, 201: False}, FLAPS),
    "declared healthy before it recovered": Case(
        (*THRICE[:5], (75, "clear"), THRICE[5]), {500: True}, FLAPS
    ),
    "declared healthy, but not for long enough": Case(
        (*THRICE, (90, "clear")), {139: True, 140: False}, FLAPS
    ),
    "declared healthy, and it starts again": Case(
        (*THRICE, (200, "clear"), (210, BAD), (250, GOOD)),
        {205: False, 245: True, 310: False},
        FLAPS,
    ),
    "two clocks": Case(((0, BAD), (20, LOST)), {30: False, 500: False}),
    "one clock": Case(((0, BAD), (20, LOST)), {29: False, 30: True}, None, (LOST,)),
    "one clock the other way": Case(((0, LOST), (29, BAD)), {29: False, 30: True}, None, (LOST,)),
    "one clock restarts after a recovery": Case(
        ((0, BAD), (10, GOOD), (20, LOST)), {49: False, 50: True}, None, (LOST,)
    ),
    "a change between the statuses is not a flap": Case(
        ((0, BAD), (40, LOST), (50, BAD), (60, LOST), (70, GOOD)),
        {129: True, 130: False},
        FLAPS,
        (LOST,),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_taint(case: Case) -> None:
    world = World(policy(flaps=case.flaps, or_statuses=case.or_statuses))
    # Each event is seen, and so is each time at which the controller wanted to look.
    moments: list[tuple[float, str]] = sorted([*case.events, *((at, "?") for at in case.tainted)])
    wake: datetime | None = None
    for at, what in moments:
        while wake is not None and wake < later(at):
            wake = world.look((wake - later(0)).total_seconds()).requeue_at
        if what == "clear":
            world.clear(at)
        elif what != "?":
            world.turn(what, at)
        verdict = world.look(at)
        wake = verdict.requeue_at
        assert wake is None or wake > later(at)
        if what == "?":
            assert bool(verdict.taints) is case.tainted[at], at


def test_faults_are_forgotten() -> None:
    world = World(policy(flaps=FLAPS))
    world.turn(BAD, 0)
    assert [state.fault_times for state in world.look(30).states] == [(later(0),)]
    world.turn(GOOD, 40)

    assert world.look(100).requeue_at == later(600)
    assert world.look(600) == PolicyVerdict((), frozenset())


def test_a_policy_without_the_fields_records_nothing() -> None:
    world = World(policy())
    for at, status in THRICE:
        world.turn(status, at)
        assert world.look(at).states == ()


STATE = RuleState(
    policy="p",
    condition="Up=False",
    taint="down:NoSelect",
    since=datetime(2030, 1, 1, tzinfo=UTC),
    fault_times=(datetime(2030, 1, 1, tzinfo=UTC),),
    flapping=True,
)


def test_states_are_written_and_read() -> None:
    other = replace(STATE, policy="a", since=None, held_back="1 of 1")

    assert read_states(write_states([STATE, other])) == (other, STATE)
    assert write_states([]) == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '[{"policy": 1}]',
        '[{"policy":"p","condition":"a","taint":"b","since":"2030-01-01T00:00:00"}]',
    ],
)
def test_what_cannot_be_read_is_ignored(text: str) -> None:
    assert read_states(text) == ()
