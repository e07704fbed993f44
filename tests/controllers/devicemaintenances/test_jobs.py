"""Jobs that work on devices, and that prove them: created, counted, kept for people, deleted."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.devicemaintenances.working import (
    approve,
    change,
    effects,
    fleet,
    phases,
    plan,
    status,
    working,
)
from controllers.devicetaintpolicies.test_proofs import JOB, end, jobs
from controllers.world import ACCOUNTS, NAMESPACES, Obj, World

NODE = "node-1"


@pytest.fixture
async def ready(world: World) -> None:
    """Have a node with two devices, and a namespace for Jobs."""
    await fleet(world, NODE, gpus=2)
    labels = {"resource.kubernetes.io/admin-access": "true"}
    await world.admin.create(NAMESPACES, {"metadata": {"name": "tests", "labels": labels}})
    await world.create(ACCOUNTS, "tests", "default")


def by_job(**job: Any) -> Obj:
    return {"type": "Job", "job": {**JOB, "parallelism": 2, **job}}


async def node_plan(world: World, **spec: Any) -> None:
    await plan(world, rolling={"by": "Node", "waitForReady": "0s"}, **spec)


async def test_work_and_proof_of_all_devices_of_a_node(world: World, ready: None) -> None:
    await node_plan(world, hook=by_job(), proof=by_job())
    async with working(world):
        await world.pass_time(55)
        assert await jobs(world) == []
        await world.pass_time(10)
        assert await phases(world) == {NODE: "Working"}
        first, second = await jobs(world)
        await end(world, first, "Complete")
        await world.settle()
        assert await phases(world) == {NODE: "Working"}
        await end(world, second, "Complete")
        await world.settle()
        assert await phases(world) == {NODE: "Proving"}
        for job in await jobs(world):
            await end(world, job, "Complete")
            await world.settle()
        await world.settle()
        assert (await status(world))["phase"] == "Completed"
        assert await effects(world) == {}
        assert await jobs(world) == []


async def test_a_failed_job_is_retried_and_then_keeps_the_device(world: World, ready: None) -> None:
    await node_plan(world, hook=by_job(attempts=2, retryAfter="60s"))
    async with working(world):
        await world.pass_time(65)
        before = {job["metadata"]["name"] for job in await jobs(world)}
        await end(world, (await jobs(world))[0], "Failed", "flash failed")
        await world.pass_time(5)
        unit = (await status(world))["units"][0]
        assert "flash failed (attempt 1 of 2); it is retried" in unit["message"]
    # Another controller continues.
    async with working(world):
        await world.pass_time(60)
        again = await jobs(world)
        assert len(again) == 2
        assert not before & {job["metadata"]["name"] for job in again}
        await end(world, again[0], "Failed", "flash failed")
        await world.pass_time(5)
        assert await phases(world) == {NODE: "Failed"}
        # Their logs can be read.
        assert len(await jobs(world)) == 2
        assert len(await effects(world)) == 2
        await approve(world, NODE)
        await world.pass_time(5)
        assert await phases(world) == {NODE: "Working"}
        await change(world, cancelled=True)
        await world.pass_time(5)
        assert await jobs(world) == []
    assert await effects(world) == {}


async def test_a_pause_starts_no_job_and_keeps_those_that_run(world: World, ready: None) -> None:
    await node_plan(world, hook=by_job(parallelism=1), proof=by_job())
    async with working(world):
        await world.pass_time(65)
        (job,) = await jobs(world)
        await change(world, paused=True)
        await end(world, job, "Complete")
        await world.pass_time(65)
        assert len(await jobs(world)) == 1
        await change(world, paused=False)
        await world.pass_time(5)
        assert len(await jobs(world)) == 2


@pytest.mark.parametrize("paused", [False, True])
async def test_cancelled_jobs_are_deleted_before_their_rules(
    world: World, ready: None, paused: bool
) -> None:
    await node_plan(world, hook=by_job())
    async with working(world) as done:
        await world.pass_time(65)
        assert len(await jobs(world)) == 2
        await change(world, paused=paused)
        await world.pass_time(5)
        await change(world, cancelled=True)
        await world.pass_time(5)
        assert await jobs(world) == []
    assert await effects(world) == {}
    assert done.deleted == ["jobs", "jobs", "devicetaintrules", "devicetaintrules"]


async def test_why_a_job_cannot_start(world: World) -> None:
    await fleet(world, NODE)
    await node_plan(world, hook=by_job())
    async with working(world):
        await world.pass_time(130)
        text = (await status(world))["units"][0]["message"]
        assert text.startswith("the Job cannot start: ")
        assert await phases(world) == {NODE: "Working"}
        await approve(world, NODE)
        await world.pass_time(5)
    assert (await status(world))["phase"] == "Completed"
