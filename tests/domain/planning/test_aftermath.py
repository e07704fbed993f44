"""What became of evicted pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from sully.cli.change.aftermath import aftermath_lines, delete_command
from sully.domain.planning.aftermath import Aftermath, aftermath_of
from sully.domain.scheduling.objects import Pod
from sully.testing.builders import owner_reference, pod_as

Obj = dict[str, Any]
NOTHING = Aftermath()
WEB, JOB = "uid-web", "uid-job"


def pod(
    name: str, owner: str = WEB, phase: str = "Pending", *conditions: Obj, **metadata: Any
) -> Pod:
    owners = [owner_reference("X/x", uid=owner)] if owner else []
    metadata = {"ownerReferences": owners, **metadata}
    status = {"phase": phase, "conditions": conditions}
    return pod_as(Pod, name, namespace="a", node="", uid=name, metadata=metadata, status=status)


def unschedulable(name: str) -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return pod(name, WEB, "Pending", condition)


@dataclass(frozen=True)
class Case:
    evicted: dict[str, int]
    pods: list[Pod] = field(default_factory=list)
    want: Aftermath = NOTHING


CASES = {
    "nothing": Case({}),
    "one runs again": Case({WEB: 1}, [pod("new", phase="Running")], Aftermath(1)),
    "one is Pending": Case({WEB: 1}, [unschedulable("new")], Aftermath(pending=("a/new",))),
    "one was not tried yet": Case({WEB: 1}, [pod("new")], Aftermath(starting=1)),
    "one is not recreated": Case({WEB: 2}, [pod("new", phase="Running")], Aftermath(1, missing=1)),
    "nothing recreates it": Case({"": 2}, [pod("other", owner="")], Aftermath(unmanaged=2)),
    "pods that existed before": Case({WEB: 1}, [pod("old")], Aftermath(missing=1)),
    "pods of others": Case({WEB: 1}, [pod("new", owner=JOB)], Aftermath(missing=1)),
    "one that terminates again": Case(
        {WEB: 1},
        [pod("new", deletionTimestamp="2030-01-01T12:00:00Z")],
        Aftermath(missing=1),
    ),
    "more than were evicted": Case(
        {WEB: 1}, [pod("n1", phase="Running"), pod("n2", phase="Running")], Aftermath(1)
    ),
    "a Job that has finished": Case({JOB: 1}, [pod("new", JOB, "Succeeded")], Aftermath(1)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_aftermath(case: Case) -> None:
    assert aftermath_of(case.evicted, {"old"}, case.pods) == case.want


UNDO = "  to undo:     kubectl delete devicetaintrule r (evicted pods are not restored)"
LINES = {
    "all run": (Aftermath(3), ["3 running again.", UNDO]),
    "some are Pending": (
        Aftermath(1, ("a/x", "a/y")),
        ["1 running again, 2 Pending.", "  to see why:  sully explain pod a/x", UNDO],
    ),
    "everything else": (
        Aftermath(0, starting=1, missing=2, unmanaged=1),
        [
            "0 running again, 1 starting, 2 not recreated yet,"
            " 1 pod without a controller not recreated.",
            UNDO,
        ],
    ),
    "no access to pods": (None, [UNDO]),
}


@pytest.mark.parametrize(("aftermath", "want"), LINES.values(), ids=LINES)
def test_lines(aftermath: Aftermath | None, want: list[str]) -> None:
    assert list(aftermath_lines(aftermath, delete_command(["r"]))) == want
