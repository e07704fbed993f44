"""What `sully plan` prints about the owners of pods."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest

from manifests import body, stored
from planning.building import Obj, machines, planned, put, rule, running, toleration
from sully.cli.change.plan.printer import show_plan, summary
from sully.domain.capabilities.control_plane import ControlPlane
from sully.planning.simulation.cluster_copy import SimulationOptions
from sully.scheduler.options import options_for

KUBERNETES = SimulationOptions(stop_seconds=1, scheduling=options_for(ControlPlane.KUBERNETES))
JOB = "Job/train"


def job(limit: int) -> Obj:
    spec = {"parallelism": 2, "completions": 2, "backoffLimit": limit}
    return stored(body("Job", "train", spec), namespace="a")


def shown(plan: Any, *, wide: bool = False) -> str:
    out = StringIO()
    show_plan(plan, wide=wide, stream=out)
    return out.getvalue()


def plan(owner: str, *more: Obj, nodes: int = 3) -> Any:
    objects = [*machines(*(f"n{number}" for number in range(1, nodes + 1))), *more]
    name = owner.partition("/")[2]
    for number in (0, 1):
        objects += running(f"{name}-{number}", f"n{number + 1}", "gpu-0", owned_by=owner)
    return planned(objects, put(rule(pool="n1")), options=KUBERNETES)


def test_a_job_that_waits() -> None:
    assert "rescheduled to n3, 10s later\n" in shown(plan(JOB, job(6)), wide=True)


def test_a_job_that_fails_deletes_other_pods() -> None:
    why = "Job train would fail: 1 failed pod would exceed its backoffLimit of 0"
    text = shown(plan(JOB, job(0)))

    assert "1 not recreated\n" in text
    assert f"a/train-1 would be deleted by its owner: {why}\n" in text
    assert f"  a/train-0: {why}\n" in text


def test_an_owner_that_is_not_known() -> None:
    built = plan("Foo/x")

    assert summary(built).endswith(
        "1 pod would be evicted (immediately). What happens to it is not known."
    )
    assert "What happens to 1 pod is not known:\n  a/x-0: owner Foo/x of kind" in shown(built)


@pytest.mark.parametrize(
    ("nodes", "want"),
    [(3, "1 rescheduled to n3\n"), (4, "to one of n3, n4\n"), (7, "one of n3, n4, n5 and 2 more")],
)
def test_several_nodes_may_fit(nodes: int, want: str) -> None:
    assert want in shown(plan("ReplicaSet/web", nodes=nodes))


def test_a_pod_that_may_be_evicted_again() -> None:
    objects = [*machines("n1", devices=2), *machines("n2")[1:]]
    objects += running("p", "n1", "gpu-0", owned_by="ReplicaSet/web", tolerations=[toleration(3)])
    built = planned(objects, put(rule(pool="n1")), options=KUBERNETES)
    text = shown(built)

    assert summary(built).endswith("It would be rescheduled; 1 may be evicted again.")
    assert "1 rescheduled to one of n2, n1, may be evicted again\n" in text
    assert "pods of ReplicaSet a/web may be scheduled to n1, and evicted again: taints" in text


ANYWAY: dict[str, tuple[int, bool, list[str]]] = {
    "one pod": (1, False, ["pod a/late-0 {}"]),
    "more than a few": (
        5,
        False,
        [
            *(f"pod a/late-{number} {{}}" for number in range(3)),
            "and 2 more pods; -o wide shows all",
        ],
    ),
    "all": (5, True, [f"pod a/late-{number} {{}}" for number in range(5)]),
}


@pytest.mark.parametrize(("pods", "wide", "want"), ANYWAY.values(), ids=ANYWAY)
def test_pods_that_are_evicted_without_the_change_are_named(
    pods: int, wide: bool, want: list[str]
) -> None:
    objects = [*machines("n1"), *machines("n2", devices=pods)[1:], *machines("n3")[1:]]
    objects += running("web-0", "n1", "gpu-0", owned_by="ReplicaSet/web")
    for number in range(pods):
        objects += running(f"late-{number}", "n2", f"gpu-{number}")
    # The new rule selects all of them as well, but is not why they are evicted anyway.
    built = planned(
        [*objects, rule("maintenance", pool="n2")], put(rule("new")), options=KUBERNETES
    )
    because = "will be evicted without the change, too, because of DeviceTaintRule/maintenance"

    lines = shown(built, wide=wide).splitlines()

    start = lines.index(want[0].format(because))
    assert lines[start : start + len(want)] == [line.format(because) for line in want]
    assert sum("without the change" in line for line in lines) == min(pods, 5 if wide else 3)
