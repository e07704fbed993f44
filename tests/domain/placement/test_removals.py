"""How many clusters may be removed in a minute."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fleets import decision, exists, later, placement
from sully.api.cluster.types import UNREACHABLE
from sully.domain.placement.incremental.deciding import decide
from sully.domain.placement.incremental.fleet import Fleet
from sully.domain.placement.options import OCM
from sully.domain.placement.removals import RemovalBucket, grant
from sully.testing.builders import cluster, cluster_set, cluster_taint, set_binding

NAMES = tuple("abcdef")


def test_a_full_bucket_and_then_its_rate() -> None:
    first = grant(RemovalBucket(2), NAMES, later(0))
    second = grant(first.bucket, first.held, later(29))
    third = grant(second.bucket, second.held, first.next_at or later(0))
    fourth = grant(third.bucket, third.held, later(600))

    assert (first.granted, first.held) == (("a", "b"), ("c", "d", "e", "f"))
    assert first.next_at is not None
    assert later(30) <= first.next_at < later(30.001)
    assert second.granted == ()
    assert third.granted == ("c",)
    assert fourth.granted == ("d", "e")


def test_nothing_is_delayed_where_no_cluster_is_removed() -> None:
    got = grant(RemovalBucket(1), (), later(0))

    assert (got.granted, got.held, got.next_at) == ((), (), None)


def test_a_budget_of_nothing_holds_indefinitely() -> None:
    got = grant(RemovalBucket(0), NAMES, later(0))

    assert (got.granted, got.next_at) == ((), None)


@given(
    st.integers(1, 20),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 10)), max_size=20),
)
def test_never_more_than_two_minutes_worth_in_a_minute(
    rate: int, requests: list[tuple[int, int]]
) -> None:
    """A full bucket and what fills in while it empties: no window of a minute has more."""
    bucket = RemovalBucket(rate)
    given_at: list[int] = []
    for at, number in sorted(requests):
        result = grant(bucket, [f"{at}-{one}" for one in range(number)], later(at))
        bucket = result.bucket
        given_at += [at] * len(result.granted)
    for start in given_at:
        assert sum(start <= at < start + 60 for at in given_at) <= 2 * rate


def outage(limit: int | None, *, names: str = "abcd") -> Fleet:
    fleet = Fleet(replace(OCM, removals_per_minute=limit))
    fleet.put_set(cluster_set())
    fleet.put_binding(set_binding())
    for name in names:
        fleet.put_cluster(cluster(name, cluster_taint(UNREACHABLE, "")))
    for desired in ("p", "q"):
        fleet.put_placement(placement(desired))
        fleet.put_decision(decision(desired, *names))
    return fleet


@pytest.mark.parametrize(("limit", "want"), [(None, ()), (1, ("b", "c", "d")), (9, ())])
def test_an_outage(limit: int | None, want: tuple[str, ...]) -> None:
    fleet = outage(limit)
    first = decide(fleet, ("apps", "p"), later(0))
    second = decide(fleet, ("apps", "q"), later(0))

    assert first is not None
    assert second is not None
    assert first.clusters == second.clusters == want
    assert first.held == want
    assert (first.requeue_at is None) == (not want)


def test_those_held_are_removed_one_by_one() -> None:
    fleet = outage(2)
    seen = []
    at = later(0)
    for _ in range(3):
        got = decide(fleet, ("apps", "p"), at)
        assert got is not None
        seen.append(got.clusters)
        if got.requeue_at is None:
            break
        fleet.put_decision(decision("p", *got.clusters))
        at = got.requeue_at

    assert seen == [("c", "d"), ("d",), ()]


def test_recovery_ends_the_wait_and_the_permission() -> None:
    fleet = outage(1)
    decide(fleet, ("apps", "p"), later(0))
    assert fleet.removals.granted == {"a"}

    for name in "ab":
        fleet.put_cluster(cluster(name))

    got = decide(fleet, ("apps", "p"), later(1))
    assert got is not None
    assert got.clusters == ("a", "b", "c", "d")
    assert got.held == ("c", "d")
    assert fleet.removals.granted == frozenset()


def test_maintenance_needs_no_budget() -> None:
    """Only what health does is limited: who taints a cluster by hand means it."""
    fleet = outage(1, names="a")
    fleet.put_cluster(cluster("b", cluster_taint()))
    fleet.put_cluster(cluster("c", cluster_taint(UNREACHABLE, ""), cluster_taint()))
    fleet.put_decision(decision("p", "a", "b", "c"))
    fleet.put_placement(placement("p", exists("other")))

    got = decide(fleet, ("apps", "p"), later(0))

    assert got is not None
    assert got.clusters == ()
