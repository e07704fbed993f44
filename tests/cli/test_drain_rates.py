"""When `sully drain` evicts pods, exactly: its flags, its runner and a server on one clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, cast

import pytest

from cli.commandlines import parsed
from controllers.broken_transport import BreakableTransport
from controllers.eviction.evicting import RULES, holder, prepare, publish, rule
from controllers.recording_transport import RecordingTransport
from controllers.world import PODS, World
from manifests import DRIVER
from sully.cli.change.drain.args import drain_settings
from sully.cli.change.drain.events import REASON
from sully.cli.change.drain.runner import DrainRunner
from sully.cli.client.session import Session
from sully.client.direct import DirectTransport
from sully.client.events import EVENTS
from sully.client.kubeconfig.credentials import Credential
from sully.client.objects import key_of
from sully.client.options import DeleteOptions
from sully.client.transport import Key, UnreachableError
from sully.domain.devices.pools import DeviceId
from sully.domain.drain.rules import TAINT, decode_state
from sully.machinery.errors import Conflict, Forbidden, ServiceUnavailable, TooManyRequests
from sully.planning.simulation.drain import DrainRequest
from sully.views.devices.drained import DrainedDevices

if TYPE_CHECKING:
    from sully.client.discovery.adapting import AdaptingTransport

COUNT = 6
RULE = "cordon"


@pytest.fixture
async def world() -> World:
    """Return a server with pods that use a device each, and a rule for all of these."""
    created = World()
    await prepare(created)
    await publish(created, devices=COUNT)
    for number in range(COUNT):
        await holder(created, f"p{number}", f"gpu-{number}")
    await rule(created, "NoSchedule", name=RULE)
    return created


@asynccontextmanager
async def draining(
    world: World, *flags: str, access: DirectTransport | None = None
) -> AsyncIterator[asyncio.Task[int]]:
    """Run a drain of all devices, with what an earlier run left."""
    options = parsed("drain", "device", "*", *flags, "--force", "--wait-ready", "0s", "--yes")
    stored = await world.admin.get(RULES, Key("", RULE))
    request = DrainRequest(
        DrainedDevices(
            frozenset(DeviceId(DRIVER, "pool-1", f"gpu-{number}") for number in range(COUNT)), TAINT
        ),
        drain_settings(options),
        decode_state([stored["metadata"].get("annotations") or {}]),
    )
    transport = cast("AdaptingTransport", access or world.transport("drain"))
    session = Session(options, "drain", world.clock, transport)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(DrainRunner(session, [RULE], request).run())
        yield task
        task.cancel()


async def evictions(world: World, until: float) -> list[float]:
    """Let time pass to each moment at which a user wakes; return when pods were evicted."""
    results: list[float] = []
    while True:
        await world.settle()
        for pod in (await world.admin.list(PODS)).items:
            if "deletionTimestamp" in pod["metadata"]:
                results.append(world.clock.monotonic())
                # As the kubelet does when the containers have ended.
                await world.admin.delete(PODS, key_of(pod), DeleteOptions(grace_period_seconds=0))
        await world.settle()
        wake = world.clock.next_wake
        if wake is None or world.clock.monotonic() + wake > until:
            return results
        world.clock.advance(wake)


@dataclass(frozen=True)
class Case:
    flags: str
    want: list[float]


CASES = {
    "the default": Case("", [0, 1, 2, 3, 4, 5]),
    "two per second": Case("--rate 2", [0, 0.5, 1, 1.5, 2, 2.5]),
    "a burst": Case("--rate 2 --burst 3", [0, 0, 0, 0.5, 1, 1.5]),
    "a burst of all": Case("--rate 1/1h --burst 6", [0, 0, 0, 0, 0, 0]),
    "ten per minute": Case("--rate 10/m --burst 2", [0, 0, 6, 12, 18, 24]),
    "one in half a minute": Case("--rate 1/30s", [0, 30, 60, 90, 120, 150]),
    "no limit": Case("--rate 0", [0, 0, 0, 0, 0, 0]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_the_rate_is_exact(world: World, case: Case) -> None:
    async with draining(world, *case.flags.split()) as drain:
        assert await evictions(world, until=600) == case.want
        assert await drain == 0


async def test_two_runs_together_share_the_rate(world: World) -> None:
    flags = ("--rate", "1/2s", "--burst", "2")
    async with draining(world, *flags) as one, draining(world, *flags) as another:
        assert await evictions(world, until=600) == [0, 0, 2, 4, 6, 8]
        assert (await one, await another) == (0, 0)


async def test_the_rate_counts_from_the_answer_of_a_server_that_was_stuck(world: World) -> None:
    access = RecordingTransport(world, "drain")
    async with draining(world, "--rate", "1/2s", access=access):
        assert await evictions(world, until=1) == [0]
        access.before["create pods/eviction"] = partial(world.clock.sleep, 50)
        assert await evictions(world, until=58) == [52, 54, 56, 58]


async def test_a_server_that_does_not_answer_for_a_while_is_waited_for(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    access = RecordingTransport(world, "drain")
    access.failures["patch devicetaintrules"] = [UnreachableError("refused") for _ in range(2)]
    async with draining(world, "--rate", "1/2s", access=access) as drain:
        assert await evictions(world, until=600) == [10, 12, 14, 16, 18, 20]
        assert await drain == 0

    assert capsys.readouterr().err.count("waiting: ") == 1


async def test_a_server_that_is_unreachable_after_a_conflict(world: World) -> None:
    """Another run has saved its state, and the server restarts before this one has read it."""
    access = RecordingTransport(world, "drain")
    access.failures["patch devicetaintrules"] = [Conflict("changed")]
    access.failures["get devicetaintrules"] = [UnreachableError("refused")]
    async with draining(world, "--rate", "1/2s", access=access) as drain:
        assert await evictions(world, until=600) == [5, 7, 9, 11, 13, 15]
        assert await drain == 0


async def test_a_server_that_is_unreachable_when_budgets_are_to_be_broken(world: World) -> None:
    access = RecordingTransport(world, "drain")
    access.refusals["create pods/eviction"] = TooManyRequests("no budget")
    flags = ("--rate", "0", "--timeout", "1m", "--then", "NoExecute")
    async with draining(world, *flags, access=access):
        assert await evictions(world, until=50) == []
        access.refusals["patch devicetaintrules"] = ServiceUnavailable("it restarts")
        assert await evictions(world, until=70) == []
        del access.refusals["patch devicetaintrules"]
        assert await evictions(world, until=80) == []

        stored = await world.admin.get(RULES, Key("", RULE))
    assert stored["spec"]["taint"]["effect"] == "NoExecute"


class Cut(BreakableTransport):
    """A connection that can be cut, with credentials that do not expire."""

    async def credential(self) -> Credential:
        return Credential()


async def test_a_server_that_stays_away_ends_the_drain(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    access = Cut(world)

    async def drain() -> None:
        async with draining(world, "--rate", "1/1h", access=access):
            assert await evictions(world, until=1) == [0]
            access.cut()
            # Watches are opened again some time after the server answers.
            assert await evictions(world, until=300) == []
            access.mend()
            assert await evictions(world, until=3599) == []
            access.cut()
            await evictions(world, until=4300)

    with pytest.raises(ExceptionGroup) as errors:
        await drain()

    assert str(errors.value.exceptions[0]).endswith("was unreachable for 10m")
    output = capsys.readouterr()
    assert output.err.count("is unreachable: ") == 2
    assert "The devices stay cordoned.\n  to resume:  " in output.out


async def test_evicted_pods_are_named_and_get_an_event(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    async with draining(world, "--rate", "0", "--reason", "ECC errors") as drain:
        assert len(await evictions(world, until=600)) == COUNT
        assert await drain == 0

    names = [f"p{number}" for number in range(COUNT)]
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("pod/")] == [
        f"pod/{name} evicted from a namespace" for name in names
    ]
    events = {
        event["involvedObject"]["name"]: event["message"]
        for event in (await world.admin.list(EVENTS)).items
        if event["reason"] == REASON
    }
    text = "Evicted by 'sully drain', DeviceTaintRule cordon: ECC errors"
    assert events == dict.fromkeys(names, text)


class ClosedPipe(StringIO):
    """An output whose reader is gone."""

    def write(self, _: str) -> int:
        raise BrokenPipeError


async def test_a_drain_whose_reader_is_gone_prints_how_to_resume_and_undo(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    with redirect_stdout(ClosedPipe()), pytest.raises(ExceptionGroup) as errors:
        async with draining(world, "--rate", "1/1h"):
            assert await evictions(world, until=600) == [0]

    assert isinstance(errors.value.exceptions[0], BrokenPipeError)
    shown = capsys.readouterr().err
    assert "1 pod evicted" in shown
    assert "The devices stay cordoned.\n  to resume:  " in shown
    assert "\n  to undo:    sully uncordon device '*'" in shown


async def test_a_user_who_may_not_create_events_drains_all_the_same(world: World) -> None:
    access = RecordingTransport(world, "drain")
    access.refusals["create events"] = Forbidden("no")
    async with draining(world, "--rate", "0", access=access) as drain:
        assert len(await evictions(world, until=600)) == COUNT
        assert await drain == 0

    assert access.events == 1


async def test_another_run_continues_at_the_same_rate(world: World) -> None:
    flags = ("--rate", "1/30s", "--burst", "2")
    async with draining(world, *flags):
        first = await evictions(world, until=40)
    async with draining(world, *flags) as drain:
        second = await evictions(world, until=600)
        assert await drain == 0

    assert first == [0, 0, 30]
    assert second == [60, 90, 120]
