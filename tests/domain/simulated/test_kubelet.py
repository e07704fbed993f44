"""The next step of a pod, and what is written for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.domain.scheduling.objects import Pod
from sully.domain.simulated import statuses
from sully.domain.simulated.fleet import PodDelays
from sully.domain.simulated.kubelet import (
    REST,
    Create,
    End,
    Remove,
    RequeueAt,
    Run,
    Seen,
    Step,
    next_step,
)
from sully.domain.simulated.pods import Exit, parse_exit
from sully.machinery.formats.timestamps import format_time
from sully.testing.builders import pod_as
from sully.testing.clock import NOON

Obj = dict[str, Any]
PACE = PodDelays(start=2, stop=3)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def read(status: Obj | None = None, metadata: Obj | None = None, **spec: Any) -> Pod:
    spec = {"containers": [{"name": "c", "image": "i"}]} | spec
    status = status or {"phase": "Pending"}
    return pod_as(
        Pod,
        "p",
        namespace="a",
        node="n",
        uid="u",
        metadata=metadata or {},
        spec=spec,
        status=status,
    )


def terminating(phase: str, grace: int = 30, *finalizers: str) -> Pod:
    deletion = {
        "deletionTimestamp": format_time(at(grace)),
        "deletionGracePeriodSeconds": grace,
        "finalizers": finalizers,
    }
    return read({"phase": phase}, deletion)


def ending(exit_text: str, policy: str = "Never") -> Pod:
    since = {"type": "ContainersReady", "status": "True", "lastTransitionTime": format_time(NOON)}
    annotations = {"annotations": {"sully.dev/simulated-exit": exit_text}}
    status = {"phase": "Running", "conditions": [since]}
    return read(status, annotations, restartPolicy=policy)


@dataclass(frozen=True)
class Case:
    pod: Pod
    want: Step
    seen: Seen = field(default_factory=lambda: Seen(startable=NOON, terminating_since=NOON))
    after: float = 0
    delays: PodDelays = PACE


CREATING = read({"phase": "Pending", "startTime": format_time(NOON)})
CASES = {
    "new": Case(read(), Create()),
    "new and quick": Case(read(), RequeueAt(at(0.5)), delays=PodDelays(start=0.5)),
    "new and immediately": Case(read(), Run(), delays=PodDelays(start=0)),
    "new, quick, without its claims": Case(read(), Create(), Seen(), delays=PodDelays(start=0)),
    "waits for its claims": Case(CREATING, REST, Seen()),
    "starts": Case(CREATING, RequeueAt(at(2)), after=1),
    "has started": Case(CREATING, Run(), after=2),
    "runs": Case(read({"phase": "Running"}), REST),
    "has ended": Case(read({"phase": "Succeeded"}), REST),
    "runs for a while": Case(ending("0@5s"), RequeueAt(at(5)), after=4),
    "ran for a while": Case(ending("7@5s"), End(7), after=5),
    "would be started again": Case(ending("7@5s", "OnFailure"), REST, after=5),
    "deleted before it started": Case(terminating("Pending"), Remove()),
    "stops": Case(terminating("Running"), RequeueAt(at(3)), after=1),
    "has stopped": Case(terminating("Running"), End(143, remove=True), after=3),
    "is not given more than its grace": Case(
        terminating("Running", 1), End(143, remove=True), after=1
    ),
    "no grace at all": Case(terminating("Running", 0), End(143, remove=True)),
    "deadline passed while nobody looked": Case(
        terminating("Running", 10),
        End(143, remove=True),
        Seen(terminating_since=at(60)),
        after=60,
    ),
    "deleted after it ended": Case(terminating("Failed"), Remove()),
    "only a finalizer keeps it": Case(terminating("Succeeded", 0, "example.com/keep"), REST),
    "was let go by one who died before it went": Case(terminating("Succeeded", 0), Remove()),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_next_step(case: Case) -> None:
    got = next_step(case.pod, case.seen, delays=case.delays, now=at(case.after))

    assert got == case.want


SECONDS = st.floats(0, 1000, allow_nan=False)
PODS = st.sampled_from([case.pod for case in CASES.values()])


@given(PODS, SECONDS, SECONDS, SECONDS)
def test_whoever_looks_at_the_time_that_was_named_need_not_look_again(
    pod: Pod, start: float, stop: float, after: float
) -> None:
    seen, delays, now = (
        Seen(startable=NOON, terminating_since=NOON),
        PodDelays(start, stop),
        at(after),
    )
    step = next_step(pod, seen, delays=delays, now=now)

    if isinstance(step, RequeueAt):
        assert step.at > now
        assert not isinstance(next_step(pod, seen, delays=delays, now=step.at), RequeueAt)


EXITS = {
    "0@5s": Exit(0, timedelta(seconds=5)),
    "255@1.5m": Exit(255, timedelta(seconds=90)),
    "1@250ms": Exit(1, timedelta(milliseconds=250)),
    "2@1h": Exit(2, timedelta(hours=1)),
    "256@5s": None,
    "0@5": None,
    "0": None,
    "@5s": None,
    "-1@5s": None,
    "0@5s ": None,
    "": None,
}


@pytest.mark.parametrize("text", EXITS)
def test_parse_exit(text: str) -> None:
    assert parse_exit(text) == EXITS[text]


# -- what is written -------------------------------------------------------------------------------

INIT = [{"name": "first", "image": "i"}, {"name": "side", "image": "i", "restartPolicy": "Always"}]


def conditions_of(patch: Obj) -> dict[str, tuple[str, str | None]]:
    return {
        condition["type"]: (condition["status"], condition["reason"])
        for condition in patch["status"]["conditions"]
    }


def states(patch: Obj) -> dict[str, str]:
    result = patch["status"].get("initContainerStatuses", []) + patch["status"]["containerStatuses"]
    return {item["name"]: next(iter(item["state"])) for item in result}


def test_containers_are_created_after_those_before_them() -> None:
    patch = statuses.creating(read(initContainers=INIT), host="h", now=NOON)

    assert conditions_of(patch)["Initialized"] == ("False", "ContainersNotInitialized")
    assert conditions_of(patch)["Ready"] == ("False", "ContainersNotReady")
    assert states(patch) == {"first": "waiting", "side": "waiting", "c": "waiting"}


def test_init_containers_have_ended_and_sidecars_run() -> None:
    patch = statuses.running(read(initContainers=INIT), host="h", address="a", now=NOON)

    assert states(patch) == {"first": "terminated", "side": "running", "c": "running"}
    assert patch["status"]["initContainerStatuses"][0]["ready"] is True


def test_sidecars_end_with_the_pod() -> None:
    pod = read({"phase": "Running"}, initContainers=INIT)

    patch = statuses.ended(pod, code=1, now=NOON)

    assert states(patch) == {"first": "terminated", "side": "terminated", "c": "terminated"}
    codes = [
        status["state"]["terminated"]["exitCode"] for status in patch["status"]["containerStatuses"]
    ]
    assert codes == [1]
    assert patch["status"]["phase"] == "Failed"
    assert conditions_of(patch)["Ready"] == ("False", "PodFailed")


def test_containers_that_end_were_started_when_the_pod_was() -> None:
    since = {"type": "ContainersReady", "status": "True", "lastTransitionTime": format_time(at(-9))}
    pod = read({"phase": "Running", "conditions": [since]}, initContainers=INIT)

    patch = statuses.ended(pod, code=0, now=NOON)

    status = patch["status"]
    ended = [x["state"]["terminated"] for x in status["initContainerStatuses"]]
    ended.append(status["containerStatuses"][0]["state"]["terminated"])
    assert {x["startedAt"] for x in ended} == {format_time(at(-9))}
    assert [x["finishedAt"] for x in ended] == [format_time(at(after)) for after in (-9, 0, 0)]


GATES = {
    "no such condition": ((), "False"),
    "not true": ((("example.com/gate", "False"),), "False"),
    "true": ((("example.com/gate", "True"),), "True"),
}


@pytest.mark.parametrize("case", GATES)
def test_gates_keep_a_pod_from_being_ready(case: str) -> None:
    has, want = GATES[case]
    conditions = [{"type": kind, "status": status} for kind, status in has]
    gates = [{"conditionType": "example.com/gate"}]
    pod = read({"phase": "Pending", "conditions": conditions}, readinessGates=gates)

    patch = statuses.running(pod, host="h", address="a", now=NOON)

    assert conditions_of(patch)["Ready"][0] == want
    assert conditions_of(patch)["ContainersReady"][0] == "True"


def test_a_condition_that_stays_is_not_written() -> None:
    since = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(at(-9))}
    pod = read({"phase": "Pending", "conditions": [since]})

    assert "PodScheduled" not in conditions_of(
        statuses.running(pod, host="h", address="a", now=NOON)
    )
