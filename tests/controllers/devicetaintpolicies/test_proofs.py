"""Jobs that prove devices healthy: created for exactly one device, counted, and cleaned up."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from controllers.devicetaintpolicies.policing import (
    CLAIMS,
    XID,
    change,
    clear,
    condition,
    controller,
    device,
    effects,
    phases,
    policy,
    publish,
    status,
)
from controllers.world import ACCOUNTS, NAMESPACES, PODS, Obj, World
from manifests import DRIVER, claim_spec
from sully.client.events import EVENTS
from sully.client.objects import key_of
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Kind

FIRST, SECOND = "node-1/gpu-0", "node-1/gpu-1"
JOBS: Kind[Obj] = Kind("batch", "v1", "jobs", "Job", dict)
CONTAINER = {"name": "test", "image": "gpu-burn"}
JOB: Obj = {
    "namespace": "tests",
    "deviceClassName": "gpu",
    "template": {
        "metadata": {"labels": {"team": "gpu"}},
        "spec": {"template": {"spec": {"containers": [CONTAINER]}}},
    },
}
STEPS = [{"effect": "NoSchedule"}]


def proof(**job: Any) -> Obj:
    return {"type": "Job", "job": {**JOB, **job}}


async def jobs(world: World) -> list[Obj]:
    return list((await world.admin.list(JOBS)).items)


async def end(world: World, job: Obj, type_: str, message: str = "") -> None:
    """Let a Job end, as its controller reports it."""
    time = "2030-01-01T12:00:00Z"
    common = {"status": "True", "reason": "R", "message": message, "lastTransitionTime": time}
    before = "SuccessCriteriaMet" if type_ == "Complete" else "FailureTarget"
    ended: Obj = {"startTime": time, "conditions": [{"type": before, **common}]}
    ended["conditions"].append({"type": type_, **common})
    if type_ == "Complete":
        ended |= {"completionTime": time, "succeeded": 1}
    await world.admin.patch(JOBS, key_of(job), {"status": ended}, subresource="status")


@pytest.fixture
async def ready(world: World) -> None:
    """Have a namespace for proofs."""
    await world.namespace("default")
    labels = {"resource.kubernetes.io/admin-access": "true"}
    await world.admin.create(NAMESPACES, {"metadata": {"name": "tests", "labels": labels}})
    # A pod waits for the account of its namespace.
    await world.create(ACCOUNTS, "tests", "default")


async def recovered(world: World, *numbers: int, **spec: Any) -> None:
    """Have devices that were faulty, and have recovered."""
    await policy(world, steps=STEPS, **{"proof": proof(), **spec})
    await publish(world, *(device(number, XID) for number in numbers or (0,)))
    await world.settle()
    await publish(world, *(device(number) for number in numbers or (0,)))
    await world.pass_time(2)


async def test_a_job_gets_exactly_the_device(world: World, ready: None) -> None:
    async with world.controlled(controller):
        await recovered(world)
        (job,) = await jobs(world)
        (claim,) = (await world.admin.list(CLAIMS)).items

    pod = job["spec"]["template"]["spec"]
    name = job["metadata"]["name"]
    assert pod["resourceClaims"] == [{"name": "device", "resourceClaimName": name}]
    assert pod["containers"][0]["resources"] == {"claims": [{"name": "device"}]}
    assert (pod["restartPolicy"], job["spec"]["backoffLimit"]) == ("Never", 0)
    assert job["spec"]["activeDeadlineSeconds"] == 3600
    assert job["metadata"]["labels"]["team"] == "gpu"
    assert job["metadata"]["annotations"] == {"sully.dev/device": f"{DRIVER}/{FIRST}"}
    assert job["metadata"]["ownerReferences"][0]["kind"] == "DeviceTaintPolicy"
    assert claim["metadata"]["name"] == name
    assert claim["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    (request,) = claim["spec"]["devices"]["requests"]
    exactly = request["exactly"]
    assert exactly["adminAccess"]
    assert exactly["tolerations"] == [{"operator": "Exists"}]
    attributes = f'device.attributes["{DRIVER}"]'
    assert exactly["selectors"][0]["cel"]["expression"] == (
        f'device.driver == "{DRIVER}" && "uuid" in {attributes} && {attributes}.uuid == "GPU-0"'
    )


async def test_success_clears_and_leaves_nothing_behind(world: World, ready: None) -> None:
    async with world.controlled(controller):
        await recovered(world)
        assert await phases(world) == {FIRST: "AwaitingProof"}
        (job,) = await jobs(world)
        assert (await status(world))["devices"][0]["message"] == (
            f"sources are quiet: Job tests/{job['metadata']['name']} is running"
        )
        await end(world, job, "Complete")
        await world.settle()
        assert await effects(world) == {}
        assert await jobs(world) == []
    texts = [event["message"] for event in (await world.admin.list(EVENTS)).items]
    assert any(text.endswith(f"{job['metadata']['name']} succeeded") for text in texts)


async def failed_pod(world: World, job: Obj) -> None:
    """Have a pod of a Job that failed with a message."""
    name = job["metadata"]["name"]
    labels = {"batch.kubernetes.io/job-name": name}
    spec = {"containers": [CONTAINER], "restartPolicy": "Never"}
    body = manifests.pod("p", spec, namespace="tests", labels=labels)
    await world.admin.create(PODS, body)
    ended = {"exitCode": 3, "message": "row 7 is broken"}
    statuses = [{**CONTAINER, "ready": False, "restartCount": 0, "imageID": ""}]
    statuses[0]["state"] = {"terminated": ended}
    patch = {"status": {"phase": "Failed", "containerStatuses": statuses}}
    await world.admin.patch(PODS, Key("tests", "p"), patch, subresource="status")


async def test_failures_are_recorded_retried_and_end(world: World, ready: None) -> None:
    async with world.controlled(controller):
        await recovered(world, proof=proof(attempts=2, retryAfter="10m"))
        (job,) = await jobs(world)
        await failed_pod(world, job)
        await end(world, job, "Failed", "too many")
        await world.pass_time(2)
        state = (await status(world))["devices"][0]
        text = f"Job tests/{job['metadata']['name']} failed: exit code 3: row 7 is broken"
        assert (state["proofFailures"], state["proofMessage"]) == (1, text)
        assert state["message"] == f"sources are quiet: {text} (attempt 1 of 2); it is retried"
        assert await condition(world, "ProofFailed") == (
            "True",
            f"1 devices failed, for instance {DRIVER}/{FIRST}: {text}",
        )
        # It stays for its logs, until the next one.
        await world.pass_time(590)
        assert await jobs(world) == [await world.admin.get(JOBS, key_of(job))]
    async with world.controlled(controller):
        await world.pass_time(20)
        (second,) = await jobs(world)
        assert second["metadata"]["name"] != job["metadata"]["name"]
        await end(world, second, "Failed", "too slow")
        await world.pass_time(3600)
        assert await jobs(world) == [await world.admin.get(JOBS, key_of(second))]
        message = (await status(world))["devices"][0]["message"]
        assert message.endswith("too slow (attempt 2 of 2): needs 'sully policies clear'")
        assert await effects(world) == {FIRST: "NoSchedule"}
        await clear(world, 0)
        await world.settle()
        assert await effects(world) == {}
        assert await jobs(world) == []


async def test_a_fault_that_returns_ends_the_proof(world: World, ready: None) -> None:
    async with world.controlled(controller):
        await recovered(world)
        (job,) = await jobs(world)
        await publish(world, device(0, XID))
        await world.settle()
        assert await jobs(world) == []
        await publish(world, device(0))
        await world.pass_time(2)
        (second,) = await jobs(world)
        assert second["metadata"]["name"] != job["metadata"]["name"]


async def test_a_restart_continues_with_the_same_job(world: World, ready: None) -> None:
    async with world.controlled(controller):
        await recovered(world, clearAfter="1m")
        await world.pass_time(60)
        (job,) = await jobs(world)
        (claim,) = (await world.admin.list(CLAIMS)).items
    # It was stopped between the Job and its claim.
    await world.admin.delete(CLAIMS, key_of(claim))
    async with world.controlled(controller):
        await world.pass_time(60)
        assert await jobs(world) == [job]
        assert len(await world.names(CLAIMS)) == 1
    await end(world, job, "Complete")
    async with world.controlled(controller):
        await world.settle()
        assert await effects(world) == {}
        assert await jobs(world) == []


async def test_one_device_after_the_other(world: World, ready: None) -> None:
    async with world.controlled(controller):
        await recovered(world, 0, 1, 2)
        (job,) = await jobs(world)
        await end(world, job, "Complete")
        await world.pass_time(2)
        (second,) = await jobs(world)
        assert second["metadata"]["annotations"] == {"sully.dev/device": f"{DRIVER}/{SECOND}"}
        await change(world, proof={"job": {"parallelism": 2}})
        await world.pass_time(2)
        assert len(await jobs(world)) == 2


async def foreign(world: World, job: Obj, claim: Obj, **change: Any) -> None:
    """Have a claim of the Job's name that another user created."""
    await world.admin.delete(CLAIMS, key_of(claim))
    names = ("name", "namespace", "labels", "ownerReferences")
    metadata = {name: claim["metadata"][name] for name in names}
    body = manifests.body("ResourceClaim", spec=claim["spec"], **metadata) | change
    await world.admin.create(CLAIMS, body)
    await end(world, job, "Complete")


async def of_another_owner(world: World, job: Obj, claim: Obj) -> None:
    metadata = {"name": claim["metadata"]["name"], "namespace": "tests"}
    await foreign(world, job, claim, metadata=metadata)


async def for_another_device(world: World, job: Obj, claim: Obj) -> None:
    name = claim["spec"]["devices"]["requests"][0]["name"]
    await foreign(world, job, claim, spec=claim_spec("gpu", name, adminAccess=True))


@pytest.mark.parametrize("spoil", [of_another_owner, for_another_device])
async def test_a_job_with_the_claim_of_another_user_proves_nothing(
    world: World, ready: None, spoil: Any
) -> None:
    async with world.controlled(controller):
        await recovered(world)
        (job,) = await jobs(world)
        (claim,) = (await world.admin.list(CLAIMS)).items
    await spoil(world, job, claim)
    async with world.controlled(controller):
        await world.pass_time(40)
        assert await effects(world) == {FIRST: "NoSchedule"}
        assert await jobs(world) == []
        text = f'ResourceClaim "tests/{job["metadata"]["name"]}" is not the one'
        assert text in (await condition(world, "ProofFailed"))[1]
        await world.admin.delete(CLAIMS, key_of(claim))
        await world.pass_time(40)
        assert len(await jobs(world)) == 1


@pytest.mark.parametrize("labels", [True, False])
async def test_a_job_of_another_user_gets_no_claim(world: World, ready: None, labels: bool) -> None:
    async with world.controlled(controller):
        await recovered(world)
        (job,) = await jobs(world)
    await world.admin.delete(JOBS, key_of(job), DeleteOptions(propagation_policy="Background"))
    for name in await world.names(CLAIMS):
        await world.admin.delete(CLAIMS, Key(*name.split("/")))
    metadata = {name: job["metadata"][name] for name in ("name", "namespace")}
    metadata |= {"labels": job["metadata"]["labels"]} if labels else {}
    pod = {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}
    await world.admin.create(JOBS, {"metadata": metadata, "spec": {"template": pod}})
    async with world.controlled(controller):
        await world.pass_time(40)
        assert await world.names(CLAIMS) == []
        text = f'Job "tests/{job["metadata"]["name"]}" is not the one'
        assert text in (await condition(world, "ProofFailed"))[1]
        assert await effects(world) == {FIRST: "NoSchedule"}


async def unlabeled(world: World) -> None:
    body = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": None}}}
    await world.admin.patch(NAMESPACES, Key("", "tests"), body)


async def elsewhere(world: World) -> None:
    await change(world, proof={"job": {"namespace": "nowhere"}})


async def unidentified(world: World) -> None:
    await change(world, identityAttribute="serial")


async def misfit(world: World) -> None:
    template = {"spec": {"template": {"spec": {"containers": [{"name": "A B", "image": "i"}]}}}}
    await change(world, proof={"job": {"template": template}})


PROBLEMS = {
    "a namespace without the label": (
        unlabeled,
        'namespace "tests" does not allow admin access to devices: it lacks the label'
        " resource.kubernetes.io/admin-access=true",
    ),
    "no namespace": (elsewhere, 'namespaces "nowhere" not found'),
    "no identity": (unidentified, "the device has no attribute serial that identifies it"),
    "a template that the server refuses": (misfit, "spec.template.spec.containers[0].name"),
}


@pytest.mark.parametrize(("spoil", "want"), PROBLEMS.values(), ids=PROBLEMS.keys())
async def test_what_cannot_start_is_reported(
    world: World, ready: None, spoil: Any, want: str
) -> None:
    async with world.controlled(controller):
        await recovered(world, clearAfter="1m")
        await spoil(world)
        await world.pass_time(120)
        assert await jobs(world) == []
        assert want in (await condition(world, "ProofFailed"))[1]
        assert want in (await status(world))["devices"][0]["message"]
        assert await effects(world) == {FIRST: "NoSchedule"}


async def test_what_was_wrong_is_noticed_when_it_is_right(world: World, ready: None) -> None:
    async with world.controlled(controller):
        await unlabeled(world)
        await recovered(world)
        assert (await condition(world, "ProofFailed"))[0] == "True"
        body = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await world.admin.patch(NAMESPACES, Key("", "tests"), body)
        await world.pass_time(60)
        assert len(await jobs(world)) == 1
        assert (await condition(world, "ProofFailed"))[0] == "False"


async def test_two_devices_with_one_identity(world: World, ready: None) -> None:
    async with world.controlled(controller):
        await recovered(world, clearAfter="1m")
        await publish(world, device(0), device(1, uuid="GPU-0"))
        await world.pass_time(60)
        assert await jobs(world) == []
        text = f"device {DRIVER}/{SECOND} has the same value of the attribute uuid"
        assert text in (await condition(world, "ProofFailed"))[1]


async def test_jobs_of_others_prove_nothing(world: World, ready: None) -> None:
    async with world.controlled(controller):
        await recovered(world)
        (job,) = await jobs(world)
        name = job["metadata"]["name"]
    await world.admin.delete(JOBS, key_of(job), DeleteOptions(propagation_policy="Background"))
    forged = {
        "metadata": {"name": name, "namespace": "tests", "labels": job["metadata"]["labels"]},
        "spec": {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}},
    }
    await end(world, await world.admin.create(JOBS, forged), "Complete")
    async with world.controlled(controller):
        await world.pass_time(120)
        assert await effects(world) == {FIRST: "NoSchedule"}


async def test_a_dry_run_creates_no_job(world: World, ready: None) -> None:
    async with world.controlled(controller):
        await recovered(world, mode="DryRun")
        assert await jobs(world) == []
        text = "sources are quiet: a Job would have to prove the device healthy"
        assert (await status(world))["devices"][0]["message"] == text


async def test_without_a_proof_its_jobs_are_deleted(world: World, ready: None) -> None:
    async with world.controlled(controller):
        await recovered(world)
        assert len(await jobs(world)) == 1
        await change(world, proof={"type": "Manual", "job": None})
        await world.pass_time(2)
        assert await jobs(world) == []
        assert await phases(world) == {FIRST: "AwaitingProof"}
