"""From leases and conditions to taints (checklist R1, R3, R4, R6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from fleets import later
from sully.api.cluster.types import UNAVAILABLE, UNREACHABLE, ManagedCluster, Taint
from sully.domain.clusters.health import (
    ACCEPTED,
    AVAILABLE,
    OUT_OF_SYNC,
    SKIP_CLOCK_CHECK,
    SYNCED,
    CreateLease,
    Fresh,
    Ignore,
    Lease,
    LeaseVerdict,
    Stopped,
    clock_finding,
    desired_taints,
    health_taints,
    watch_lease,
)
from sully.machinery.formats.timestamps import END_OF_TIME
from sully.testing.builders import cluster, cluster_taint

YES = {ACCEPTED: "True"}


def accepted(available: str | None = "True", duration: int = 60, **more: Any) -> ManagedCluster:
    conditions = {**YES, **({AVAILABLE: available} if available else {})}
    result = cluster("c", conditions=conditions, **more)
    return replace(result, spec=replace(result.spec, lease_duration_seconds=duration))


@dataclass(frozen=True)
class Case:
    cluster: ManagedCluster
    renewed: float | None
    """Seconds after noon; None: there is no lease."""
    want: LeaseVerdict
    listening: float | None = None


LEASES = {
    "R3 never accepted": Case(cluster("c"), None, Ignore()),
    "R3 accepted, no lease": Case(accepted(), None, CreateLease()),
    "R3 denied by now, no lease": Case(
        cluster("c", conditions={ACCEPTED: "False"}), None, CreateLease()
    ),
    "R3 R4 renewed five minutes ago": Case(accepted(), -300, Stopped(later(300), is_new=True)),
    "R3 already unknown": Case(accepted("Unknown"), -301, Stopped(later(300), is_new=False)),
    "R3 no condition yet": Case(accepted(None), -301, Stopped(later(300), is_new=True)),
    "R3 being deleted, no lease": Case(
        accepted(terminating=True), None, Stopped(later(300), is_new=True)
    ),
    "R4 renewed four minutes ago": Case(accepted(), -240, Fresh(later(60))),
    "R4 renewed half a minute ago": Case(accepted(), -30, Fresh(later(270))),
    "R5 a shorter duration counts immediately": Case(
        accepted(duration=1), -5, Stopped(later(5), is_new=True)
    ),
    "no duration is a minute": Case(accepted(duration=0), -240, Fresh(later(60))),
    "a duration below nothing is over, and not requeued again and again": Case(
        accepted(duration=-1), 0, Stopped(later(5), is_new=True)
    ),
    "nobody listened until a minute ago": Case(accepted(), -900, Fresh(later(240)), -60),
    "nobody listened before it was renewed": Case(accepted(), -30, Fresh(later(270)), -60),
    "a user has listened for long enough": Case(
        accepted(), -900, Stopped(later(300), is_new=True), -300
    ),
    "a moment before the end": Case(accepted(), -299.9, Fresh(later(0.1))),
}


@pytest.mark.parametrize("case", LEASES.values(), ids=LEASES.keys())
def test_lease(case: Case) -> None:
    listening = later(case.listening) if case.listening is not None else None
    lease = Lease(later(case.renewed), listening) if case.renewed is not None else None

    assert watch_lease(case.cluster, lease, later(0)) == case.want


def test_a_lease_that_was_never_renewed_is_expired() -> None:
    assert watch_lease(accepted(), Lease(), later(0)) == Stopped(later(300), is_new=True)


def test_a_lease_of_a_clock_at_the_end_of_time_is_fresh() -> None:
    assert watch_lease(accepted(), Lease(END_OF_TIME), later(0)) == Fresh(END_OF_TIME)


GONE = cluster_taint(UNREACHABLE, "", added=None)
DOWN = cluster_taint(UNAVAILABLE, "", added=None)
OTHER, STRANGE = cluster_taint("k1"), cluster_taint(UNREACHABLE, "by-hand")
TAINTS: dict[str, tuple[tuple[Taint, ...], str | None, tuple[Taint, ...]]] = {
    "R1 available": ((), "True", ()),
    "R1 not available": ((), "False", (DOWN,)),
    "R1 no condition": ((), None, (GONE,)),
    "R1 unknown": ((), "Unknown", (GONE,)),
    "recovered": ((OTHER, GONE), "True", (OTHER,)),
    "both go": ((GONE, OTHER, DOWN), "True", (OTHER,)),
    "one for the other, at the end": ((GONE, OTHER), "False", (OTHER, DOWN)),
    "what is there stays as it is": (
        (cluster_taint(UNREACHABLE, "", added=-9), OTHER),
        "Unknown",
        (cluster_taint(UNREACHABLE, "", added=-9), OTHER),
    ),
    "one of another value is not ours": ((STRANGE,), "Unknown", (STRANGE, GONE)),
    "nor is it taken away": ((STRANGE,), "True", (STRANGE,)),
    "nor one of another effect": (
        (cluster_taint(UNREACHABLE, "", "PreferNoSelect"),),
        "True",
        (cluster_taint(UNREACHABLE, "", "PreferNoSelect"),),
    ),
}


@pytest.mark.parametrize(("taints", "available", "want"), TAINTS.values(), ids=TAINTS.keys())
def test_taints(taints: tuple[Taint, ...], available: str | None, want: tuple[Taint, ...]) -> None:
    assert health_taints(taints, available) == want
    conditions = {AVAILABLE: available} if available is not None else {}
    written = desired_taints(cluster("c", *taints, conditions=conditions))
    assert written == (want if want != taints else None)


def test_a_cluster_that_is_deleted_is_left_alone() -> None:
    assert desired_taints(cluster("c", terminating=True)) is None


def test_the_time_of_a_taint_where_no_server_stamps_it() -> None:
    assert health_taints((), "False", later(5)) == (cluster_taint(UNAVAILABLE, "", added=5),)


CLOCKS = {
    "R6 five seconds ahead": ({}, 5, SYNCED),
    "five minutes behind": ({}, -300, OUT_OF_SYNC),
    "R6 five minutes and a second ahead": ({}, 301, OUT_OF_SYNC),
    "R6 nobody asks": ({SKIP_CLOCK_CHECK: "true"}, 301, SYNCED),
    "R6 a user asks": ({SKIP_CLOCK_CHECK: "false"}, 301, OUT_OF_SYNC),
}


@pytest.mark.parametrize(("annotations", "renewed", "want"), CLOCKS.values(), ids=CLOCKS.keys())
def test_clock(annotations: dict[str, str], renewed: float, want: object) -> None:
    one = cluster("c", annotations=annotations)

    assert clock_finding(one, later(renewed), later(0)) == want
