"""Which evictions of pods are an eviction loop that runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

import manifests
from sully.api.sully.types import EvictionRecord
from sully.client.objects import from_body
from sully.domain.claims.pods import Pod
from sully.domain.eviction.pod_events import EvictionEvent, InvolvedObject
from sully.domain.eviction.running_loops import PodEviction, evictions_in, running_loops
from sully.machinery.formats.timestamps import format_time
from sully.testing import builders
from sully.testing.clock import NOON
from sully.views.kinds import EVICTION_RECORDS


def pod(
    name: str, owner: str = "ReplicaSet/web-7d9", *, ends: bool = False, phase: str = ""
) -> Pod:
    metadata = {"deletionTimestamp": format_time(NOON)} if ends else {}
    return builders.pod(
        name, namespace="a", owner=owner, metadata=metadata, status={"phase": phase}
    )


def evicted(*seconds: float, name: str = "web-7d9-{}", owner: str = "") -> tuple[PodEviction, ...]:
    """Return evictions of different pods, so many seconds before noon."""
    return tuple(
        PodEviction(
            namespace="a",
            name=name.format(f"x{number}"),
            uid=f"{name}-{number}",
            time=NOON - timedelta(seconds=ago),
            owner=owner,
        )
        for number, ago in enumerate(seconds)
    )


@dataclass(frozen=True)
class Case:
    evictions: tuple[PodEviction, ...]
    pods: tuple[Pod, ...]
    want: tuple[str, int] | None = None
    """The owner, and how many of its pods were evicted."""


WEB = pod("web-7d9-abcde")
CASES = {
    "evicted three times": Case(evicted(1, 2, 3), (WEB,), ("ReplicaSet/web-7d9", 3)),
    "evicted twice": Case(evicted(1, 2), (WEB,)),
    "all pods once": Case(evicted(1, 1, 1), (WEB, pod("web-7d9-b"), pod("web-7d9-c"))),
    "all pods twice, for two rules": Case(evicted(1, 1, 9, 9), (WEB, pod("web-7d9-b"))),
    "all pods, and one of them three times": Case(
        evicted(1, 1, 9, 9, 12), (WEB, pod("web-7d9-b")), ("ReplicaSet/web-7d9", 5)
    ),
    "terminating pods are not replicas": Case(
        evicted(1, 2, 3),
        (WEB, *(pod(f"web-7d9-{x}", ends=True) for x in "abcdef")),
        ("ReplicaSet/web-7d9", 3),
    ),
    "it has ended": Case(evicted(20, 21, 22), (WEB,)),
    "a slow one has not": Case(evicted(20, 60, 100), (WEB,), ("ReplicaSet/web-7d9", 3)),
    "long ago": Case(evicted(1, 301, 302, 303), (WEB,)),
    "of another owner": Case(evicted(1, 2, 3, name="db-7d9-{}"), (WEB,)),
    "no pod is left": Case(evicted(1, 2, 3), ()),
    "the pod that is left has finished": Case(
        evicted(1, 2, 3), (pod("web-7d9-abcde", phase="Failed"),)
    ),
    "pods of a StatefulSet keep their names": Case(
        evicted(1, 2, 3, name="db-0"), (pod("db-0", "StatefulSet/db"),), ("StatefulSet/db", 3)
    ),
    "a name that begins as another": Case(
        evicted(1, 2, 3, name="web-7d9-{}"), (pod("web-abcde", "DaemonSet/web"),)
    ),
    "recorded owners": Case(
        evicted(1, 2, 3, name="any", owner="ReplicaSet/web-7d9"), (WEB,), ("ReplicaSet/web-7d9", 3)
    ),
    "without a controller": Case(evicted(1, 2, 3, name="p"), (pod("p", ""),)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_running_loops(case: Case) -> None:
    result = running_loops(case.evictions, case.pods, NOON)

    assert [(loop.owner, loop.evicted) for loop in result] == ([case.want] if case.want else [])


def test_a_pod_that_has_an_event_and_a_record_counts_once() -> None:
    def record(number: int) -> EvictionRecord:
        who = {"namespace": "a", "name": f"web-7d9-{number}", "uid": f"u{number}"}
        cause = {"kind": "DeviceTaintRule", "name": "fw", "uid": "uid-fw", "key": "k"}
        cause |= {"effect": "NoExecute", "device": "d/p/g"}
        owner = {"owner": {"kind": "ReplicaSet", "name": "web-7d9"}}
        spec = {"pod": who | owner, "causes": [cause], "evictedTime": format_time(NOON)}
        return from_body(EVICTION_RECORDS, manifests.body("EvictionRecord", "r", spec))

    events = [event(f"web-7d9-{number}", f"u{number}") for number in range(3)]
    result = tuple(evictions_in(events, [record(0), record(1)]))
    [loop] = running_loops(result, [WEB], NOON)

    assert (loop.evicted, loop.rules, loop.pods) == (
        3,
        frozenset({"uid-fw"}),
        ("web-7d9-abcde",),
    )


def event(name: str, uid: str = "u", message: str = "Marking for deletion") -> EvictionEvent:
    about = InvolvedObject(kind="Pod", namespace="a", name=name, uid=uid)
    return EvictionEvent(involved_object=about, message=message, last_timestamp=NOON)


def test_cancelled_evictions_and_other_kinds_do_not_count() -> None:
    node = EvictionEvent(
        involved_object=InvolvedObject(kind="Node", name="n"),
        message="Marking for deletion",
        last_timestamp=NOON,
    )

    assert list(evictions_in([event("p", message="Cancelling deletion"), node], ())) == []


def test_events_of_both_apis_have_a_time() -> None:
    about = InvolvedObject(kind="Pod", namespace="a", name="p", uid="u")
    new = EvictionEvent(involved_object=about, message="Marking for deletion", event_time=NOON)
    timeless = EvictionEvent(involved_object=about, message="Marking for deletion")

    assert [result.time for result in evictions_in([event("p"), new, timeless], ())] == [NOON, NOON]
