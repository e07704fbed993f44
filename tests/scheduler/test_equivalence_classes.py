"""Which pods are equal to the scheduler, and that their class is computed once."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from domain.allocation.fixtures import exactly, unallocated
from sully.domain.allocation.toleration_expiry import AsOf
from sully.domain.scheduling.objects import Pod
from sully.scheduler.equivalence.classes import EquivalenceClasses, PodQuery
from sully.testing.builders import pod_as
from sully.testing.clock import NOON

TOLERATION = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}
CLAIM = unallocated(exactly(tolerations=[TOLERATION]))


class Times:
    """One taint, which was added at noon."""

    def newest(self, until: datetime, key: str) -> datetime | None:
        return NOON if until >= NOON else None

    def next(self, after: datetime, key: str) -> datetime | None:
        return NOON if after < NOON else None


def test_pods_with_the_same_specs_have_one_class() -> None:
    first, classes = pod_as(Pod, "p1", namespace="a"), EquivalenceClasses()
    second = replace(pod_as(Pod, "p2", namespace="a"), spec=first.spec)
    other = replace(unallocated(name="other"), spec=CLAIM.spec)

    results = [classes.of(pod, [claim], None) for pod, claim in ((first, CLAIM), (second, other))]

    assert results[0] is results[1]
    assert classes.of(first, [], None) != results[0]
    assert (
        classes.of(
            replace(first, metadata=pod_as(Pod, "p1", namespace="b").metadata), [CLAIM], None
        )
        != results[0]
    )


def test_a_class_changes_when_a_toleration_expires() -> None:
    pod, classes = pod_as(Pod, "p", namespace="a"), EquivalenceClasses()

    def at(now: datetime) -> bytes:
        classes.invalidate_if_changed(now)
        return classes.of(pod, [CLAIM], AsOf(now, Times()))

    before, after = at(NOON), at(NOON + timedelta(seconds=10))

    assert before != after
    assert at(NOON) == before


def test_constraints_are_part_of_the_class() -> None:
    pods = [pod_as(Pod, "p", namespace="a", metadata={"labels": {"app": app}}) for app in "ab"]

    def classes_of(*, constrained: bool) -> set[bytes]:
        classes = EquivalenceClasses()
        return {PodQuery(x, [], classes, constrained=constrained).equivalence for x in pods}

    assert (len(classes_of(constrained=False)), len(classes_of(constrained=True))) == (1, 2)
