"""How far a Deployment is, and why its pods are not ready."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

import manifests
from sully.cli.main import main
from sully.cli.run.install.rollout import RolloutStatus, rollout_of
from sully.domain.workloads.pod_problems import ReportedPod
from sully.domain.workloads.workloads import Deployment

Obj = dict[str, Any]


def deployment(*, generation: int = 2, **status: int) -> Obj:
    made = manifests.stored(manifests.deployment("d", 2), generation=generation)
    return made | {"status": {"observedGeneration": 2, **status}}


def pod(name: str, reason: str = "", message: str = "", *, scheduled: str = "") -> Obj:
    waiting = {"state": {"waiting": {"reason": reason, "message": message}}} if reason else {}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    conditions = [condition | {"message": scheduled}] if scheduled else []
    status = {"containerStatuses": [waiting], "conditions": conditions}
    return manifests.pod(name, status=status)


READY = {"availableReplicas": 2, "updatedReplicas": 2}
PULL = "ImagePullBackOff"
CASES = {
    "ready": (deployment(**READY), [], RolloutStatus(2, 2)),
    "not observed yet": (deployment(generation=3, **READY), [], RolloutStatus(0, 2)),
    "replicas of the old template": (
        deployment(availableReplicas=2, updatedReplicas=1),
        [],
        RolloutStatus(1, 2),
    ),
    "nothing is known": (deployment(), [{"metadata": {"name": "a"}}], RolloutStatus(0, 2)),
    "starting": (deployment(), [pod("a", "ContainerCreating")], RolloutStatus(0, 2)),
    "no image": (
        deployment(),
        [pod("a", PULL, "Back-off pulling image"), pod("b", PULL, "Back-off pulling image")],
        RolloutStatus(0, 2, ("a: ImagePullBackOff: Back-off pulling image",)),
    ),
    "no node": (
        deployment(availableReplicas=1, updatedReplicas=2),
        [pod("a"), pod("b", scheduled="0/1 nodes are available")],
        RolloutStatus(1, 2, ("b: Unschedulable: 0/1 nodes are available",)),
    ),
}


@pytest.mark.parametrize(("result", "pods", "want"), CASES.values(), ids=CASES)
def test_rollout(result: Obj, pods: list[Obj], want: RolloutStatus) -> None:
    rollout = rollout_of(convert(result, Deployment), convert(pods, list[ReportedPod]))

    assert rollout == want
    assert rollout.done == (want.ready == 2)


def test_one_line() -> None:
    problem = "a: ImagePullBackOff: Back-off pulling image"

    assert str(RolloutStatus(0, 2, (problem,))) == f"0 of 2 replicas are ready ({problem})"


def test_without_an_image_nothing_is_applied(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["install", "--apply"])

    text = capsys.readouterr().err
    assert code == 2
    assert text.startswith("error: required flag --image not set")
    assert "deploy/Containerfile" in text
