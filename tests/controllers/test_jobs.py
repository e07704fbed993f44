"""A Job runs pods until enough of them have succeeded, and counts each exactly once."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.lifecycles import (
    JOBS,
    active,
    events,
    finish_deletions,
    jobs,
    make_ready,
    open_namespace,
    pods,
    status,
    template,
)
from controllers.world import PODS, Obj, World
from sully.client.objects import key_of
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.machinery.errors import NotFound
from sully.machinery.formats.timestamps import format_time

WEB = Key("a", "web")
INDEX = "batch.kubernetes.io/job-completion-index"
BACKGROUND = DeleteOptions(propagation_policy="Background")


@pytest.fixture(autouse=True)
async def _namespace(world: World) -> None:
    await open_namespace(world)


async def job(world: World, **spec: Any) -> Obj:
    made = template()
    made["spec"]["restartPolicy"] = "Never"
    return await world.create(JOBS, "a", "web", spec={"template": made} | spec)


async def end(world: World, *chosen: Obj, code: int = 0, **conditions: str) -> None:
    """Let pods end as a node would report it."""
    moment = format_time(world.clock.now())
    ended = {"exitCode": code, "finishedAt": moment}
    state = {"name": "c", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    for item in chosen:
        patch: Obj = {
            "phase": "Failed" if code else "Succeeded",
            "containerStatuses": [state | {"state": {"terminated": ended}}],
            "conditions": [{"type": key, "status": value} for key, value in conditions.items()],
        }
        await world.admin.patch(PODS, key_of(item), {"status": patch}, subresource="status")
    await world.pass_time(1, 0.5)


async def conditions(world: World) -> list[tuple[str, str, str]]:
    result = (await status(world, JOBS)).get("conditions") or ()
    return [(item["type"], item["status"], item.get("reason", "")) for item in result]


def indexes(result: list[Obj]) -> list[str]:
    return sorted(item["metadata"]["annotations"][INDEX] for item in result)


async def test_it_runs_pods_until_enough_have_succeeded(world: World) -> None:
    await job(world, completions=3, parallelism=2)
    async with world.controlled(jobs):
        await world.settle()
        first = await active(world)
        assert len(first) == 2
        assert first[0]["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
        assert first[0]["metadata"]["generateName"] == "web-"
        await end(world, *first)
        running = [pod for pod in await pods(world) if pod["status"]["phase"] == "Pending"]
        assert len(running) == 1
        await make_ready(world, *running)
        await world.settle()
        result = await status(world, JOBS)
        assert (result["active"], result["ready"], result["succeeded"]) == (1, 1, 2)
        await end(world, *running)

    result = await status(world, JOBS)
    assert result["succeeded"] == 3
    assert result["completionTime"]
    assert result["uncountedTerminatedPods"] == {}
    assert await conditions(world) == [
        ("SuccessCriteriaMet", "True", "CompletionsReached"),
        ("Complete", "True", "CompletionsReached"),
    ]
    assert all("finalizers" not in pod["metadata"] for pod in await pods(world))
    assert ("Completed", "Job completed") in await events(world)


async def test_a_work_queue_is_complete_when_one_pod_succeeded_and_all_have_ended(
    world: World,
) -> None:
    await job(world, parallelism=2)
    async with world.controlled(jobs):
        await world.settle()
        first, second = await active(world)
        await end(world, first)
        assert await conditions(world) == []
        await end(world, second)

    assert (await conditions(world))[-1][:2] == ("Complete", "True")
    assert len(await pods(world)) == 2


async def test_failed_pods_are_replaced_after_a_back_off_until_the_limit(world: World) -> None:
    await job(world, backoffLimit=1)
    async with world.controlled(jobs):
        await world.settle()
        await end(world, *await active(world), code=1)
        assert [pod["status"]["phase"] for pod in await pods(world)] == ["Failed"]
        await world.pass_time(10)
        fresh = [pod for pod in await pods(world) if pod["status"]["phase"] == "Pending"]
        assert len(fresh) == 1
        await end(world, *fresh, code=1)

    assert (await status(world, JOBS))["failed"] == 2
    assert await conditions(world) == [
        ("FailureTarget", "True", "BackoffLimitExceeded"),
        ("Failed", "True", "BackoffLimitExceeded"),
    ]
    results = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    assert results in await events(world)


async def test_a_deleted_pod_counts_as_failed(world: World) -> None:
    await job(world)
    async with world.controlled(jobs):
        await world.settle()
        await world.admin.delete(PODS, key_of((await active(world))[0]))
        await world.pass_time(1, 0.5)
        assert (await status(world, JOBS))["failed"] == 1
        await world.pass_time(10)

        assert len(await active(world)) == 1
        assert len(await pods(world)) == 1


async def test_evicted_pods_are_ignored_by_policy_and_replaced_when_they_have_ended(
    world: World,
) -> None:
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    await job(world, backoffLimit=0, podFailurePolicy={"rules": rules})
    async with world.controlled(jobs):
        await world.settle()
        await end(world, *await active(world), code=143, DisruptionTarget="True")
        assert await conditions(world) == []
        await world.pass_time(10)

    assert (await status(world, JOBS)).get("failed", 0) == 0
    phases = sorted(pod["status"]["phase"] for pod in await pods(world))
    assert phases == ["Failed", "Pending"]


async def test_a_policy_fails_the_job_and_reports_why(world: World) -> None:
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    await job(world, parallelism=2, completions=2, podFailurePolicy={"rules": rules})
    async with world.controlled(jobs):
        await world.settle()
        first, _ = await active(world)
        await end(world, first, code=42)
        await world.settle()
        await finish_deletions(world)
        await world.pass_time(2, 0.5)

    assert (await conditions(world))[-1] == ("Failed", "True", "PodFailurePolicy")
    message = (await status(world, JOBS))["conditions"][-1]["message"]
    name = f"a/{first['metadata']['name']}"
    assert message == (
        f"Container c for pod {name} failed with exit code 42 matching FailJob rule at index 0"
    )


async def test_indexes_are_run_once_each_and_fail_on_their_own(world: World) -> None:
    await job(world, completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=1)
    async with world.controlled(jobs):
        await world.settle()
        first = sorted(await active(world), key=lambda item: item["metadata"]["name"])
        assert indexes(first) == ["0", "1", "2"]
        assert first[0]["spec"]["hostname"] == "web-0"
        await end(world, *first[:2])
        await end(world, first[2], code=1)
        await world.pass_time(10)
        again = [pod for pod in await pods(world) if pod["status"]["phase"] == "Pending"]
        assert indexes(again) == ["2"]
        failures = "batch.kubernetes.io/job-index-failure-count"
        assert again[0]["metadata"]["annotations"][failures] == "1"
        await end(world, *again, code=1)

    result = await status(world, JOBS)
    assert (result["completedIndexes"], result["failedIndexes"]) == ("0,1", "2")
    assert (result["succeeded"], result["failed"]) == (2, 2)
    assert (await conditions(world))[-1] == ("Failed", "True", "FailedIndexes")


async def test_a_success_policy_ends_the_job_early(world: World) -> None:
    policy = {"rules": [{"succeededIndexes": "0"}]}
    await job(world, completionMode="Indexed", completions=2, parallelism=2, successPolicy=policy)
    async with world.controlled(jobs):
        await world.settle()
        first, _ = sorted(await active(world), key=lambda item: item["metadata"]["name"])
        await end(world, first)
        await finish_deletions(world)
        await world.pass_time(2, 0.5)

    assert (await conditions(world))[-1] == ("Complete", "True", "SuccessPolicy")


async def test_a_suspended_job_has_no_pods_until_it_is_resumed(world: World) -> None:
    await job(world, suspend=True)
    async with world.controlled(jobs):
        await world.settle()
        assert await pods(world) == []
        assert await conditions(world) == [("Suspended", "True", "JobSuspended")]
        await world.admin.patch(JOBS, WEB, {"spec": {"suspend": False}})
        await world.settle()

        assert len(await active(world)) == 1
        assert await conditions(world) == [("Suspended", "False", "JobResumed")]


async def test_a_job_fails_at_its_deadline(world: World) -> None:
    await job(world, activeDeadlineSeconds=30)
    async with world.controlled(jobs):
        await world.settle()
        await world.pass_time(31)
        await finish_deletions(world)
        await world.pass_time(2, 0.5)

    assert (await conditions(world))[-1] == ("Failed", "True", "DeadlineExceeded")
    assert await active(world) == []


async def test_a_finished_job_is_deleted_after_its_time_to_live(world: World) -> None:
    await job(world, ttlSecondsAfterFinished=60)
    async with world.controlled(jobs):
        await world.settle()
        await end(world, *await active(world))
        await world.pass_time(50)
        await world.admin.get(JOBS, WEB)
        await world.pass_time(20)

        # With its pods: the garbage collector, which does not run here, removes the finalizer.
        result = await world.admin.get(JOBS, WEB)
        assert result["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_the_pods_of_a_deleted_job_lose_their_finalizer(world: World) -> None:
    await job(world)
    async with world.controlled(jobs):
        await world.settle()
        await world.admin.delete(JOBS, WEB, BACKGROUND)
        await world.settle()

    with pytest.raises(NotFound):
        await world.admin.get(JOBS, WEB)
    assert all("finalizers" not in pod["metadata"] for pod in await pods(world))


async def test_the_jobs_of_other_controllers_are_left_alone(world: World) -> None:
    await job(world, managedBy="example.com/mine")
    async with world.controlled(jobs):
        await world.settle()

    assert await pods(world) == []
