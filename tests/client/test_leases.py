"""Who leads: takeover, hand-over, and that there are never two."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from client.candidates import LEASE, Contest, Host
from controllers.world import World
from property_examples import examples
from sully.client.leases import LEASES, LeaseTiming, NotLeadingError

A_DAY = 86400.0


@pytest.fixture
def world() -> World:
    return World()


async def test_the_record_is_as_others_write_it(world: World) -> None:
    async with Contest(world, "a", "b") as contest:
        a, b = contest.hosts
        contest.start(a)
        await world.settle()
        taken = await contest.spec()
        await contest.pass_time(5)
        renewed = await contest.spec()
        await contest.end(a)
        released = await contest.spec()
        contest.start(b)
        await world.settle()
        passed_on = await contest.spec()

    begun, later = "2030-01-01T12:00:00.000000Z", "2030-01-01T12:00:05.000000Z"
    assert taken == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": begun,
        "renewTime": begun,
        "leaseTransitions": 0,
    }
    assert renewed["renewTime"] > begun
    assert renewed == taken | {"renewTime": renewed["renewTime"]}
    assert released == taken | {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": later,
        "renewTime": later,
    }
    assert passed_on == taken | {
        "holderIdentity": "b",
        "acquireTime": later,
        "renewTime": later,
        "leaseTransitions": 1,
    }


async def test_a_release_is_taken_up_immediately(world: World) -> None:
    async with Contest(world, "a", "b") as contest:
        a, b = contest.hosts
        contest.start(a)
        await world.settle()
        contest.start(b)
        await contest.pass_time(7)
        before = contest.leaders
        await contest.end(a)
        await world.settle()

        assert (before, contest.leaders) == (["a"], ["b"])


def killed(contest: Contest, host: Host) -> None:
    contest.kill(host)


def paused(contest: Contest, host: Host) -> None:
    host.running.clear()


def cut_off(contest: Contest, host: Host) -> None:
    host.wire.cut = True


@pytest.mark.parametrize("happens", [killed, paused, cut_off])
@pytest.mark.parametrize("wrong_by", [0.0, A_DAY, -A_DAY], ids=["right", "ahead", "behind"])
async def test_a_stalled_leader_stops_before_another_begins(
    world: World, happens: Any, wrong_by: float
) -> None:
    async with Contest(world, "a", "b") as contest:
        a, b = contest.hosts
        b.clock.wrong_by = wrong_by
        contest.start(a)
        await world.settle()
        contest.start(b)
        await world.settle()
        happens(contest, a)
        seen: dict[float, list[str]] = {}
        for quarter in range(80):
            await contest.pass_time(0.25)
            seen[(quarter + 1) / 4] = contest.leaders

    assert {moment: seen[moment] for moment in (9.75, 10.0, 14.75)} == {
        9.75: ["a"],
        10.0: [],
        14.75: [],
    }
    assert all(len(leaders) <= 1 for leaders in seen.values())
    # Not a pause later: others know when it ends.
    assert min(moment for moment, leaders in seen.items() if leaders == ["b"]) == 15.0


async def test_the_duration_counts_from_the_renewal_not_from_when_we_next_asked(
    world: World,
) -> None:
    async with Contest(world, "a", "b") as contest:
        a, b = contest.hosts
        contest.start(a)
        await world.settle()
        contest.start(b)
        await contest.pass_time(1)
        first = await contest.spec()
        waited = 0.0
        while await contest.spec() == first:
            await contest.pass_time(0.25)
        contest.kill(a)
        while contest.leaders != ["b"]:
            await contest.pass_time(0.25)
            waited += 0.25

    assert waited == 15.0


async def test_whoever_wakes_from_a_pause_may_not_write(world: World) -> None:
    async with Contest(world, "a") as contest:
        (a,) = contest.hosts
        contest.start(a)
        await world.settle()
        a.running.clear()
        world.clock.advance(3600)
        # Nothing of it has run yet: this is what its controllers would ask first.
        with pytest.raises(NotLeadingError):
            a.elector.time_left()


async def test_a_machine_that_slept_counts_the_time(world: World) -> None:
    async with Contest(world, "a") as contest:
        (a,) = contest.hosts
        contest.start(a)
        await world.settle()
        # The steady clock stood still meanwhile.
        a.clock.wrong_by = 60.0

        assert not a.leads


async def test_what_begins_must_be_over_before_another_leads(world: World) -> None:
    async with Contest(world, "a") as contest:
        (a,) = contest.hosts
        contest.start(a)
        await world.settle()
        a.running.clear()
        world.clock.advance(4)

        assert a.elector.time_left() == 11.0


async def test_a_slow_answer_renews_from_when_it_was_asked_for(world: World) -> None:
    async with Contest(world, "a") as contest:
        (a,) = contest.hosts
        contest.start(a)
        await contest.pass_time(1.75)
        a.wire.quick.clear()
        await contest.pass_time(7)
        a.wire.quick.set()
        await world.settle()

        # Asked for after 2 to 2.4 seconds, answered after 8.75.
        assert 8.0 < a.elector.time_left() < 9.0


async def test_a_renewal_without_an_answer_keeps_nobody_else_out_indefinitely(world: World) -> None:
    async with Contest(world, "a", "b") as contest:
        a, b = contest.hosts
        contest.start(a)
        await world.settle()
        contest.start(b)
        await world.settle()
        a.wire.mute = True
        await contest.pass_time(35)

        assert contest.leaders == ["b"]


async def test_a_release_gets_past_a_renewal_that_was_cut_off(world: World) -> None:
    async with Contest(world, "a") as contest:
        (a,) = contest.hosts
        contest.start(a)
        await world.settle()
        a.wire.mute = True
        await contest.pass_time(3)
        a.wire.mute = False
        await contest.end(a)

        assert (await contest.spec())["holderIdentity"] == ""


async def cut_for_a_while(contest: Contest, host: Host) -> None:
    """Have a leader lose its lease, and back before another may take it."""
    host.wire.cut = True
    await contest.pass_time(12)
    assert contest.leaders == []
    host.wire.cut = False


async def unanswered_at_first(contest: Contest, host: Host) -> None:
    """Have a lease taken without the one who took it noticing."""
    await contest.end(host)
    await contest.world.admin.delete(LEASES, LEASE)
    host.wire.mute = True
    contest.start(host)
    await contest.pass_time(3)
    assert (contest.leaders, (await contest.spec())["holderIdentity"]) == ([], "a")
    host.wire.mute = False


@pytest.mark.parametrize("happens", [cut_for_a_while, unanswered_at_first])
async def test_its_own_lease_again_is_not_a_transition(world: World, happens: Any) -> None:
    async with Contest(world, "a") as contest:
        (a,) = contest.hosts
        contest.start(a)
        await world.settle()
        await happens(contest, a)
        before = await contest.spec()
        await contest.pass_time(12)
        after = await contest.spec()

        assert contest.leaders == ["a"]
    assert after["renewTime"] > before["renewTime"]
    assert after == before | {"renewTime": after["renewTime"]}


async def test_a_foreign_holder_is_believed_for_as_long_as_it_reported(world: World) -> None:
    async with Contest(world, "a") as contest:
        (a,) = contest.hosts
        spec = {"holderIdentity": "other", "leaseDurationSeconds": 60, "leaseTransitions": 7}
        place = {"namespace": LEASE.namespace, "name": LEASE.name}
        await world.admin.create(LEASES.read_as(dict), {"metadata": place, "spec": spec})
        contest.start(a)
        await contest.pass_time(59)
        early = contest.leaders
        await contest.pass_time(4)

        assert (early, contest.leaders) == ([], ["a"])
        assert (await contest.spec())["leaseTransitions"] == 8


@pytest.mark.parametrize(
    ("timing", "problem"),
    [
        pytest.param((15.0, 15.0, 2.0), "shorter than the lease duration", id="no slack"),
        pytest.param((15.0, 2.4, 2.0), "longer than 1.2 times", id="no second try"),
        pytest.param((0.5, 0.4, 0.1), "at least 1", id="below a second"),
        pytest.param((1.5, 1.0, 0.1), "whole number", id="the record has whole seconds"),
        pytest.param((15.0, 10.0, 0.0), "longer than", id="no pause"),
    ],
)
def test_times_that_could_not_work(timing: tuple[float, float, float], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        LeaseTiming(*timing)


HOSTS = st.integers(0, 2)
STEPS = st.one_of(
    st.tuples(st.just("pass"), st.sampled_from((1.0, 3.0, 9.75, 10.25, 16.0))),
    st.tuples(st.sampled_from(("pause", "resume", "cut", "mute", "heal", "end", "kill")), HOSTS),
    st.tuples(st.just("set clock"), st.tuples(HOSTS, st.sampled_from((-30.0, 0.0, 5.0, 3600.0)))),
)


async def take(contest: Contest, what: str, detail: Any, check: Any) -> None:
    if what == "pass":
        await contest.pass_time(detail, check)
        return
    host = contest.hosts[detail[0] if what == "set clock" else detail]
    match what:
        case "pause":
            host.running.clear()
        case "resume":
            host.running.set()
        case "cut":
            host.wire.cut = True
        case "mute":
            host.wire.mute = True
        case "heal":
            host.wire.cut = host.wire.mute = False
        case "set clock":
            host.clock.wrong_by = detail[1]
        case "kill":
            contest.kill(host)
            contest.start(host)
        case _ if host.running.is_set() and not host.wire.mute:
            await contest.end(host)
            contest.start(host)


async def contend(steps: list[tuple[str, Any]]) -> list[str]:
    """Play, check at every moment that at the most one would write, and return who does then."""
    async with Contest(World(), "a", "b", "c") as contest:

        def check() -> None:
            assert len(contest.leaders) <= 1, f"two lead: {contest.leaders}"

        for host in contest.hosts:
            contest.start(host)
        for what, detail in steps:
            await take(contest, what, detail, check)
            check()
            await contest.world.settle()
            check()
        for host in contest.hosts:
            host.running.set()
            host.wire.cut = host.wire.mute = False
        await contest.pass_time(70, check)
        return contest.leaders


@given(st.lists(STEPS, max_size=12))
# Nobody is answered: who hangs on an old question must still ask again.
@example([("mute", 0), ("mute", 1), ("mute", 2), ("pass", 3.0)])
@settings(max_examples=examples(40))
def test_never_two_and_in_the_end_one(steps: list[tuple[str, Any]]) -> None:
    assert len(asyncio.run(contend(steps))) == 1
