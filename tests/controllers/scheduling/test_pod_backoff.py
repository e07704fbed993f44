"""Pods whose attempt failed are retried after a time, whatever happens meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controllers.scheduling.placing import SLICES, Scheduling, claim, pod, prepare, wanting, where
from controllers.world import PODS, World
from manifests import DRIVER, gpus
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.controllers.scheduling.pod_backoff import PodBackoff
from sully.domain.allocation.failures import TimedOut, TooManyDevices
from sully.domain.scheduling.causes import FilterFailed, NodesRejected
from sully.domain.scheduling.decisions import FitError
from sully.domain.scheduling.objects import Pod, PodMetadata

FAILING = [{"cel": {"expression": f'device.attributes["{DRIVER}"].missing == "x"'}}]
START = datetime(2026, 1, 1, tzinfo=UTC)
ERROR = FitError(FilterFailed(TooManyDevices("default/c", 33, 32)))
UNSCHEDULABLE = FitError(NodesRejected(1, {}))
OVER_BUDGET = FitError(FilterFailed(TimedOut("n")), over_budget=True)


@pytest.mark.parametrize(
    ("at", "errors", "seconds"),
    [
        pytest.param(0.25, [UNSCHEDULABLE] * 2, [None] * 2, id="unschedulable waits for an event"),
        pytest.param(0, [ERROR] * 6, [2, 3, 5, 9, 11, 11], id="errors up to ten seconds"),
        pytest.param(0.25, [ERROR] * 2, [1.75, 2.75], id="until the next second"),
        pytest.param(0, [ERROR, UNSCHEDULABLE, ERROR], [2, None, 2], id="errors in a row"),
        pytest.param(0, [OVER_BUDGET] * 3, [6, 11, 21], id="expensive attempts wait longer"),
    ],
)
def test_how_long_a_pod_waits(
    at: float, errors: list[FitError], seconds: list[float | None]
) -> None:
    backoff, pod = PodBackoff(), Pod(metadata=PodMetadata(name="p", uid="1"))
    now = START + timedelta(seconds=at)
    waits = [backoff.after(pod, error, now) for error in errors]

    assert [wait and wait.total_seconds() for wait in waits] == seconds


async def test_an_error_is_retried_although_nothing_changes(world: World) -> None:
    await prepare(world)
    scheduling = Scheduling()
    async with scheduling.running(world):
        await wanting(world, "p", selectors=FAILING)
        await world.settle()
        assert "no such key" in await where(world, "p")
        before = scheduling.looked_at.count("p")
        await world.pass_time(11, step=1)

        assert scheduling.looked_at.count("p") == before + 3


async def test_events_do_not_end_the_back_off(world: World) -> None:
    await prepare(world)
    async with Scheduling().running(world):
        await wanting(world, "p", selectors=FAILING)
        await world.pass_time(5, step=1)
        device = gpus(1)[0] | {"attributes": {"missing": {"string": "x"}}}
        current = await world.admin.get(SLICES, Key("", "s-node-1"))
        await world.admin.update(
            SLICES, current | {"spec": current["spec"] | {"devices": [device]}}
        )
        await world.settle()
        assert "no such key" in await where(world, "p")
        await world.pass_time(5, step=1)

        assert await where(world, "p") == "node-1"


async def test_another_pod_with_the_same_name_does_not_back_off(world: World) -> None:
    await prepare(world)
    async with Scheduling().running(world):
        await wanting(world, "p", selectors=FAILING)
        await claim(world, "q")
        await world.pass_time(5, step=1)
        await world.admin.delete(PODS, Key("a", "p"), DeleteOptions(grace_period_seconds=0))
        await world.settle()
        await pod(world, "p", "q")
        await world.settle()

        assert await where(world, "p") == "node-1"
