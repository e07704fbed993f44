"""What a maintenance does when: closed, drained, worked on, proven, given back."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from typing import Any

import msgspec
import pytest

from domain.maintenance.histories import HOUR, START, history
from sully.domain.drain.messages import DrainOutcome
from sully.domain.maintenance.steps import DrainReport, UnitSeen

SECOND = timedelta(seconds=1)
APPROVAL = {"type": "Approval", "timeout": "1h"}


def test_from_the_lead_time_until_it_is_given_back() -> None:
    reported = history("a", hook=APPROVAL, proof={"type": "Manual"})
    reported.run(START - 2 * HOUR - SECOND)
    assert (reported.phases, reported.status.phase) == ({}, "Scheduled")
    reported.run(START - 2 * HOUR)
    assert reported.phases == {"a": "Closed"}
    assert reported.effects() == {"a": "NoSchedule"}
    reported.run(START - SECOND)
    assert reported.evicts() == set()
    reported.run(START)
    assert reported.phases == {"a": "Draining"}
    reported.drained("a")
    reported.decide()
    assert reported.phases == {"a": "AwaitingApproval"}
    reported.approve("a")
    reported.decide()
    assert reported.phases == {"a": "AwaitingProof"}
    reported.approve("a")
    reported.decide()

    assert (reported.phases, reported.status.finished, reported.status.phase) == (
        {},
        ("a",),
        "Completed",
    )
    assert reported.reasons == [
        "a:Closed",
        ":Running",
        "a:Draining",
        "a:Drained",
        "a:AwaitingProof",
        "a:GivenBack",
        ":Completed",
    ]


def test_an_idle_device_need_not_wait_for_jobs() -> None:
    reported = history("a", "b", busy=False)
    reported.run(START - SECOND)
    assert reported.phases == {"a": "Closed"}
    reported.run(START + 2 * SECOND)

    assert reported.status.finished == ("a", "b")


def test_each_device_has_its_lead_time() -> None:
    reported = history("a", "b")
    reported.run(START)
    reported.drained("a")
    reported.run(START + 2 * HOUR - SECOND)
    assert reported.phases == {"b": "Closed"}
    reported.run(START + 2 * HOUR)
    assert reported.phases == {"b": "Draining"}


ONE_AT_A_TIME: dict[str, tuple[dict[str, Any], set[str]]] = {
    "by default": ({}, {"a"}),
    "a count": ({"rolling": {"maxUnavailable": 3}}, {"a", "b", "c"}),
    "a percentage rounds up": ({"rolling": {"maxUnavailable": "25%"}}, {"a", "b"}),
    "all": ({"rolling": {"maxUnavailable": "100%"}}, {"a", "b", "c", "d", "e"}),
}


@pytest.mark.parametrize(("spec", "want"), ONE_AT_A_TIME.values(), ids=ONE_AT_A_TIME.keys())
def test_how_many_at_a_time(spec: dict[str, Any], want: set[str]) -> None:
    reported = history(*"edcba", **spec)
    reported.run(START)

    assert set(reported.phases) == want


def test_a_pause_stops_everything_and_costs_no_time() -> None:
    reported = history("a", "b", drain={"timeout": "10m", "then": "NoExecute"})
    reported.run(START)
    reported.observe("a", drain=DrainReport(no_execute=True))
    reported.decide()
    assert reported.effects() == {"a": "NoExecute"}
    reported.change(paused=True)
    reported.decide()
    assert (reported.effects(), reported.status.phase) == ({"a": "NoSchedule"}, "Paused")
    reported.drained("a")
    reported.run(START + HOUR)
    assert reported.phases == {"a": "Draining"}
    reported.change(paused=False)
    reported.observe("a", idle=False, drain=DrainReport())
    reported.decide()

    assert reported.unit("a").drain_time == START + HOUR
    assert reported.effects() == {"a": "NoExecute"}


def test_cancelling_gives_back_and_is_the_end() -> None:
    reported = history("a", "b", "c", rolling={"maxUnavailable": 2}, hook=APPROVAL)
    reported.run(START)
    reported.drained("a")
    reported.decide()
    reported.change(cancelled=True, paused=True)
    reported.decide()
    assert (reported.phases, reported.status.phase) == ({}, "Cancelled")
    reported.run(START + 5 * HOUR)
    assert reported.reasons.count("a:GivenBack") == 1
    assert (reported.phases, reported.status.finished) == ({}, ())


def test_the_window_ends() -> None:
    reported = history("a", "b", "c", "d", rolling={"maxUnavailable": 3}, hook={"type": "Approval"})
    reported.run(START)
    reported.drained("a")
    reported.observe(
        "b", drain=DrainReport(outcome=DrainOutcome.TIMED_OUT, message="a budget blocks")
    )
    reported.decide()
    assert reported.phases == {"a": "AwaitingApproval", "b": "Failed", "c": "Draining"}
    assert reported.unit("b").message.endswith("'cancel', or the end of the maintenance")
    reported.run(START + 4 * HOUR)
    # A user may be working on it.
    assert (reported.phases, reported.status.phase) == ({"a": "AwaitingApproval"}, "Running")
    reported.approve("a")
    reported.run(START + 5 * HOUR)

    assert (reported.status.finished, reported.status.phase) == (("a",), "Ended")
    assert reported.status.end_time == START + 4 * HOUR


def test_failures_stop_the_rest_until_a_user_retries() -> None:
    reported = history("a", "b", hook=APPROVAL)
    reported.run(START)
    reported.drained("a")
    reported.decide()
    reported.run(START + HOUR)
    assert reported.phases == {"a": "Failed"}
    reported.run(START + 2 * HOUR)
    assert reported.phases == {"a": "Failed"}
    assert "nobody approved in time" in reported.unit("a").message
    assert reported.unit("a").message.endswith("'sully maintenance retry' or 'cancel'")
    reported.approve("a")
    reported.decide()
    assert (reported.phases, reported.unit("a").approval) == ({"a": "AwaitingApproval"}, "hook-1")
    reported.approve("a")
    reported.decide()
    assert reported.status.finished == ("a",)


def test_a_drain_that_failed_is_tried_again() -> None:
    reported = history("a")
    reported.run(START)
    reported.observe(
        "a", drain=DrainReport(outcome=DrainOutcome.EVICTION_LOOP, message="again and again")
    )
    reported.decide()
    assert reported.unit("a").failed_phase == "Draining"
    reported.observe("a", drain=DrainReport())
    reported.approve("a")
    reported.decide()

    assert (reported.phases, reported.unit("a").attempt) == ({"a": "Draining"}, 1)


def test_pods_that_must_not_be_evicted() -> None:
    reported = history("a")
    reported.observe("a", obstacle="pods without a controller: default/p")
    reported.run(START + HOUR)
    assert (reported.phases, reported.evicts()) == ({"a": "Closed"}, set())
    assert reported.unit("a").message == "pods without a controller: default/p"
    reported.observe("a", obstacle="")
    reported.decide()
    assert reported.phases == {"a": "Draining"}


def test_a_node_that_reboots_is_given_back_when_it_is_ready() -> None:
    reported = history("a", busy=False, hook=APPROVAL)
    reported.run(START + SECOND)
    reported.observe("a", ready=False, not_ready="node a is not Ready")
    reported.approve("a")
    reported.decide()
    assert reported.phases == {"a": "AwaitingReady"}
    del reported.seen["a"]
    reported.decide()
    assert reported.phases == {"a": "AwaitingReady"}
    reported.seen["a"] = UnitSeen(devices=("d/p/a",))
    reported.decide()
    assert reported.status.finished == ("a",)


def test_without_an_end_it_waits() -> None:
    reported = history("a", duration="", drain={"mode": "WhenIdle"})
    reported.run(START + 100 * HOUR)
    assert reported.phases == {"a": "Draining"}
    reported.drained("a")
    reported.decide()
    assert reported.status.phase == "Completed"


def test_nothing_is_selected() -> None:
    reported = history()
    reported.run(START + HOUR)
    assert (reported.status.phase, reported.status.total) == ("Running", 0)
    reported.run(START + 4 * HOUR)
    reported.decide()
    assert reported.status.phase == "Ended"


def test_the_order_of_what_is_seen_does_not_matter() -> None:
    results = set()
    for names in permutations("abc"):
        reported = history(*names, rolling={"maxUnavailable": 2})
        reported.run(START)
        reported.drained("b")
        reported.run(START + SECOND)
        results.add((tuple(reported.phases.items()), reported.status.finished))
    assert len(results) == 1


def test_a_phase_of_a_newer_version_stays_closed() -> None:
    reported = history("a")
    reported.run(START)
    unit = msgspec.structs.replace(reported.unit("a"), phase="Polishing")
    reported.status = msgspec.structs.replace(reported.status, units=(unit,))
    reported.decide()
    assert reported.phases == {"a": "Polishing"}
