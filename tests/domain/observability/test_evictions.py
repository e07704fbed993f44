"""The life of an eviction, from the states of pods."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from sully.api.core.pods.conditions import DEVICE_TAINT
from sully.domain.observability.evictions import (
    AWAITED_MAX,
    Begun,
    Ended,
    EvictionEvent,
    EvictionTracker,
    Replaced,
    ReplacementUnschedulable,
)
from sully.domain.scheduling.objects import Pod
from sully.testing.builders import owner_reference, pod_as
from sully.testing.clock import NOON

LATER = NOON + timedelta(seconds=10)


def pod(
    name: str = "a",
    *conditions: dict[str, Any],
    uid: str = "",
    owner: str = "rs",
    node: str = "n1",
    created: datetime = NOON,
    claim: str = "c",
) -> Pod:
    owners = [owner_reference("R/r", uid=owner)] if owner else []
    return pod_as(
        Pod,
        name,
        *((claim,) if claim else ()),
        namespace="ns",
        uid=uid,
        node=node,
        metadata={"creationTimestamp": created.isoformat(), "ownerReferences": owners},
        status={"conditions": list(conditions)},
    )


def disrupted(reason: str = DEVICE_TAINT, **more: Any) -> dict[str, Any]:
    time = {"lastTransitionTime": LATER.isoformat()}
    return {"type": "DisruptionTarget", "status": "True", "reason": reason, **time, **more}


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes",
}


class Story:
    """Pods that change one after the other."""

    def __init__(self, awaited_max: int = AWAITED_MAX) -> None:
        self.tracker = EvictionTracker(awaited_max=awaited_max)

    def change(self, old: Pod | None, new: Pod | None) -> list[EvictionEvent]:
        return list(self.tracker.change(old, new, LATER))

    def names(self, old: Pod | None, new: Pod | None) -> list[str]:
        return [type(event).__name__ for event in self.change(old, new)]


def test_from_the_condition_to_a_replacement_with_a_node() -> None:
    story = Story()
    running, marked = pod(), pod("a", disrupted(message="why"))
    fresh = pod("b", node="", created=LATER)
    assert story.change(None, running) == []
    (begun,) = story.change(running, marked)
    assert isinstance(begun, Begun)
    eviction = begun.eviction
    assert (eviction.namespace, eviction.name, eviction.node) == ("ns", "a", "n1")
    assert (eviction.reason, eviction.message, eviction.began) == (DEVICE_TAINT, "why", LATER)
    assert story.change(marked, marked) == []
    assert story.change(None, fresh) == []
    pending = pod("b", UNSCHEDULABLE, node="", created=LATER)
    assert story.change(fresh, pending) == [
        ReplacementUnschedulable(eviction, pending, "0/3 nodes")
    ]
    assert story.change(pending, pending) == []
    bound = pod("b", created=LATER)
    assert story.change(marked, None) == [Ended(eviction)]
    assert story.change(pending, bound) == [Replaced(eviction, bound)]
    assert story.change(bound, None) == []


IGNORED = {
    "another reason": pod("a", disrupted("PreemptionByScheduler")),
    "not true": pod("a", disrupted(status="False")),
    "no claim": pod("a", disrupted(), claim=""),
}


@pytest.mark.parametrize("marked", IGNORED.values(), ids=IGNORED)
def test_other_disruptions_are_none(marked: Pod) -> None:
    story = Story()
    assert story.change(pod(), marked) == []
    assert story.change(marked, None) == []


NO_REPLACEMENT = {
    "of another controller": pod("b", owner="other", created=LATER),
    "of no controller": pod("b", owner="", created=LATER),
    "older": pod("b", created=NOON),
}


@pytest.mark.parametrize("other", NO_REPLACEMENT.values(), ids=NO_REPLACEMENT)
def test_other_pods_replace_nothing(other: Pod) -> None:
    story = Story()
    story.change(None, pod("a", disrupted()))
    assert story.change(None, other) == []


def test_a_pod_without_a_controller_is_not_replaced() -> None:
    story = Story()
    assert story.names(None, pod("a", disrupted(), owner="")) == ["Begun"]
    assert story.names(None, pod("b", owner="", created=LATER)) == []


def test_the_same_name_again_ends_one_and_replaces_it() -> None:
    story = Story()
    old, new = pod("a", disrupted()), pod("a", uid="next", created=LATER)
    assert story.names(None, old) == ["Begun"]
    assert story.names(old, new) == ["Ended", "Replaced"]


def test_a_replacement_that_is_evicted_in_turn() -> None:
    story = Story()
    story.change(None, pod("a", disrupted()))
    waiting = pod("b", node="", created=LATER)
    story.change(None, waiting)
    assert story.names(waiting, pod("b", disrupted(), node="", created=LATER)) == ["Begun"]
    assert story.names(None, pod("c", created=LATER)) == ["Replaced"]


def test_two_evictions_of_one_controller_are_replaced_in_order() -> None:
    story = Story()
    first, second = pod("a", disrupted()), pod("b", disrupted())
    story.change(None, first)
    story.change(None, second)
    names = [
        event.eviction.name
        for name in ("c", "d", "e")
        for event in story.change(None, pod(name, created=LATER))
    ]
    assert names == ["a", "b"]


def test_what_is_never_replaced_is_forgotten_at_last() -> None:
    story = Story(awaited_max=2)
    for name in ("a", "b", "c"):
        story.change(None, pod(name, disrupted(), owner=f"rs-{name}"))
    assert story.names(None, pod("x", owner="rs-a", created=LATER)) == []
    assert story.names(None, pod("y", owner="rs-b", created=LATER)) == ["Replaced"]
