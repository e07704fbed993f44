"""What a maintenance does when: closed, drained, worked on, proven, given back."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from typing import Any

import msgspec
import pytest

from domain.maintenance.histories import HOUR, START, history
from sully.domain.drain.messages import Outcome
from sully.domain.maintenance.steps import DrainReport, UnitSeen

SECOND = timedelta(seconds=1)
APPROVAL = {"type": "Approval", "timeout": "1h"}


def test_from_the_lead_time_until_it_is_given_back() -> None:
    told = history("a", hook=APPROVAL, proof={"type": "Manual"})
    told.run(START - 2 * HOUR - SECOND)
    assert (told.phases, told.status.phase) == ({}, "Scheduled")
    told.run(START - 2 * HOUR)
    assert told.phases == {"a": "Closed"}
    assert told.effects() == {"a": "NoSchedule"}
    told.run(START - SECOND)
    assert told.evicts() == set()
    told.run(START)
    assert told.phases == {"a": "Draining"}
    told.drained("a")
    told.decide()
    assert told.phases == {"a": "AwaitingApproval"}
    told.approve("a")
    told.decide()
    assert told.phases == {"a": "AwaitingProof"}
    told.approve("a")
    told.decide()

    assert (told.phases, told.status.finished, told.status.phase) == ({}, ("a",), "Completed")
    assert told.reasons == [
        "a:Closed",
        ":Running",
        "a:Draining",
        "a:Drained",
        "a:AwaitingProof",
        "a:GivenBack",
        ":Completed",
    ]


def test_an_idle_device_need_not_wait_for_jobs() -> None:
    told = history("a", "b", busy=False)
    told.run(START - SECOND)
    assert told.phases == {"a": "Closed"}
    told.run(START + 2 * SECOND)

    assert told.status.finished == ("a", "b")


def test_each_device_has_its_lead_time() -> None:
    told = history("a", "b")
    told.run(START)
    told.drained("a")
    told.run(START + 2 * HOUR - SECOND)
    assert told.phases == {"b": "Closed"}
    told.run(START + 2 * HOUR)
    assert told.phases == {"b": "Draining"}


ONE_AT_A_TIME: dict[str, tuple[dict[str, Any], set[str]]] = {
    "by default": ({}, {"a"}),
    "a count": ({"rolling": {"maxUnavailable": 3}}, {"a", "b", "c"}),
    "a percentage rounds up": ({"rolling": {"maxUnavailable": "25%"}}, {"a", "b"}),
    "all": ({"rolling": {"maxUnavailable": "100%"}}, {"a", "b", "c", "d", "e"}),
}


@pytest.mark.parametrize(("spec", "want"), ONE_AT_A_TIME.values(), ids=ONE_AT_A_TIME.keys())
def test_how_many_at_a_time(spec: dict[str, Any], want: set[str]) -> None:
    told = history(*"edcba", **spec)
    told.run(START)

    assert set(told.phases) == want


def test_a_pause_stops_everything_and_costs_no_time() -> None:
    told = history("a", "b", drain={"timeout": "10m", "then": "NoExecute"})
    told.run(START)
    told.observe("a", drain=DrainReport(no_execute=True))
    told.decide()
    assert told.effects() == {"a": "NoExecute"}
    told.change(paused=True)
    told.decide()
    assert (told.effects(), told.status.phase) == ({"a": "NoSchedule"}, "Paused")
    told.drained("a")
    told.run(START + HOUR)
    assert told.phases == {"a": "Draining"}
    told.change(paused=False)
    told.observe("a", idle=False, drain=DrainReport())
    told.decide()

    assert told.unit("a").drain_time == START + HOUR
    assert told.effects() == {"a": "NoExecute"}


def test_cancelling_gives_back_and_is_the_end() -> None:
    told = history("a", "b", "c", rolling={"maxUnavailable": 2}, hook=APPROVAL)
    told.run(START)
    told.drained("a")
    told.decide()
    told.change(cancelled=True, paused=True)
    told.decide()
    assert (told.phases, told.status.phase) == ({}, "Cancelled")
    told.run(START + 5 * HOUR)
    assert told.reasons.count("a:GivenBack") == 1
    assert (told.phases, told.status.finished) == ({}, ())


def test_the_window_ends() -> None:
    told = history("a", "b", "c", "d", rolling={"maxUnavailable": 3}, hook={"type": "Approval"})
    told.run(START)
    told.drained("a")
    told.observe("b", drain=DrainReport(outcome=Outcome.TIMED_OUT, message="a budget blocks"))
    told.decide()
    assert told.phases == {"a": "AwaitingApproval", "b": "Failed", "c": "Draining"}
    assert told.unit("b").message.endswith("'cancel', or the end of the maintenance")
    told.run(START + 4 * HOUR)
    # Somebody may be working on it.
    assert (told.phases, told.status.phase) == ({"a": "AwaitingApproval"}, "Running")
    told.approve("a")
    told.run(START + 5 * HOUR)

    assert (told.status.finished, told.status.phase) == (("a",), "Ended")
    assert told.status.end_time == START + 4 * HOUR


def test_failures_stop_the_rest_until_somebody_retries() -> None:
    told = history("a", "b", hook=APPROVAL)
    told.run(START)
    told.drained("a")
    told.decide()
    told.run(START + HOUR)
    assert told.phases == {"a": "Failed"}
    told.run(START + 2 * HOUR)
    assert told.phases == {"a": "Failed"}
    assert "nobody approved in time" in told.unit("a").message
    assert told.unit("a").message.endswith("'sully maintenance retry' or 'cancel'")
    told.approve("a")
    told.decide()
    assert (told.phases, told.unit("a").approval) == ({"a": "AwaitingApproval"}, "hook-1")
    told.approve("a")
    told.decide()
    assert told.status.finished == ("a",)


def test_a_drain_that_failed_is_tried_again() -> None:
    told = history("a")
    told.run(START)
    told.observe("a", drain=DrainReport(outcome=Outcome.EVICTION_LOOP, message="again and again"))
    told.decide()
    assert told.unit("a").failed_phase == "Draining"
    told.observe("a", drain=DrainReport())
    told.approve("a")
    told.decide()

    assert (told.phases, told.unit("a").attempt) == ({"a": "Draining"}, 1)


def test_pods_that_must_not_be_evicted() -> None:
    told = history("a")
    told.observe("a", obstacle="pods without a controller: default/p")
    told.run(START + HOUR)
    assert (told.phases, told.evicts()) == ({"a": "Closed"}, set())
    assert told.unit("a").message == "pods without a controller: default/p"
    told.observe("a", obstacle="")
    told.decide()
    assert told.phases == {"a": "Draining"}


def test_a_node_that_reboots_is_given_back_when_it_is_ready() -> None:
    told = history("a", busy=False, hook=APPROVAL)
    told.run(START + SECOND)
    told.observe("a", ready=False, not_ready="node a is not Ready")
    told.approve("a")
    told.decide()
    assert told.phases == {"a": "AwaitingReady"}
    del told.seen["a"]
    told.decide()
    assert told.phases == {"a": "AwaitingReady"}
    told.seen["a"] = UnitSeen(devices=("d/p/a",))
    told.decide()
    assert told.status.finished == ("a",)


def test_without_an_end_it_waits() -> None:
    told = history("a", duration="", drain={"mode": "WhenIdle"})
    told.run(START + 100 * HOUR)
    assert told.phases == {"a": "Draining"}
    told.drained("a")
    told.decide()
    assert told.status.phase == "Completed"


def test_nothing_is_selected() -> None:
    told = history()
    told.run(START + HOUR)
    assert (told.status.phase, told.status.total) == ("Running", 0)
    told.run(START + 4 * HOUR)
    told.decide()
    assert told.status.phase == "Ended"


def test_the_order_of_what_is_seen_does_not_matter() -> None:
    results = set()
    for names in permutations("abc"):
        told = history(*names, rolling={"maxUnavailable": 2})
        told.run(START)
        told.drained("b")
        told.run(START + SECOND)
        results.add((tuple(told.phases.items()), told.status.finished))
    assert len(results) == 1


def test_a_phase_of_a_newer_version_stays_closed() -> None:
    told = history("a")
    told.run(START)
    unit = msgspec.structs.replace(told.unit("a"), phase="Polishing")
    told.status = msgspec.structs.replace(told.status, units=(unit,))
    told.decide()
    assert told.phases == {"a": "Polishing"}
