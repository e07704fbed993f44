"""The status of a terminating namespace."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

import pytest

from sully.client.transport import Kind
from sully.controllers.framework.kinds import Metadata, PartialObjectMetadata
from sully.controllers.namespaces.conditions import Remainder, conditions, remainder
from sully.controllers.namespaces.objects import NamespaceCondition
from sully.testing.clock import NOON

THEN, NOW = NOON - timedelta(hours=12), NOON
CLAIMS: Kind[PartialObjectMetadata] = Kind(
    "resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", PartialObjectMetadata
)
FINE = {
    "NamespaceDeletionDiscoveryFailure": "All resources successfully discovered",
    "NamespaceDeletionGroupVersionParsingFailure": "All legacy kube types successfully parsed",
    "NamespaceDeletionContentFailure": (
        "All content successfully deleted, may be waiting on finalization"
    ),
    "NamespaceContentRemaining": "All content successfully removed",
    "NamespaceFinalizersRemaining": "All content-preserving finalizers finished",
}


@dataclass(frozen=True)
class Case:
    left: Remainder
    want: dict[str, str]


CASES = {
    "nothing": Case(Remainder(), {}),
    "objects": Case(
        Remainder(Counter({"pods.": 2, "claims.resource.k8s.io": 1})),
        {
            "NamespaceContentRemaining": (
                "Some resources are remaining: claims.resource.k8s.io has 1 resource instances,"
                " pods. has 2 resource instances"
            )
        },
    ),
    "finalizers": Case(
        Remainder(Counter({"pods.": 2}), Counter({"b.io/x": 1, "a.io/x": 2})),
        {
            "NamespaceContentRemaining": (
                "Some resources are remaining: pods. has 2 resource instances"
            ),
            "NamespaceFinalizersRemaining": (
                "Some content in the namespace has finalizers remaining: a.io/x in 2 resource"
                " instances, b.io/x in 1 resource instances"
            ),
        },
    ),
    "failures": Case(
        Remainder(failures=("second", "first")),
        {
            "NamespaceDeletionContentFailure": (
                "Failed to delete all resource types, 2 remaining: first, second"
            )
        },
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_conditions(case: Case) -> None:
    got = conditions((), case.left, now=NOW)

    assert {item.type: item.message for item in got} == FINE | case.want
    assert [item.type for item in got] == list(FINE)
    assert {item.type for item in got if item.status == "True"} == set(case.want)
    assert {item.last_transition_time for item in got} == {NOW}
    assert bool(case.left) == bool(case.want)


def test_the_time_of_a_condition_changes_with_its_status_only() -> None:
    one, two = (Remainder(Counter({"pods.": number})) for number in (1, 2))
    first = conditions((), one, now=THEN)

    assert conditions(first, one, now=NOW) == first
    fewer = {condition.type: condition for condition in conditions(first, two, now=NOW)}
    assert fewer["NamespaceContentRemaining"].last_transition_time == THEN
    assert "has 2" in fewer["NamespaceContentRemaining"].message
    gone = {condition.type: condition for condition in conditions(first, Remainder(), now=NOW)}
    assert gone["NamespaceContentRemaining"].last_transition_time == NOW
    assert gone["NamespaceFinalizersRemaining"].last_transition_time == THEN


def test_conditions_of_others_stay() -> None:
    foreign = NamespaceCondition(type="example.com/Archived", status="True", reason="R")

    assert conditions((foreign,), Remainder(), now=NOW)[0] == foreign


def item(*finalizers: str, terminating: bool = True) -> PartialObjectMetadata:
    marked = NOON if terminating else None
    return PartialObjectMetadata(
        metadata=Metadata(finalizers=finalizers, deletion_timestamp=marked)
    )


REMAINDERS = {
    "nothing": ((), Remainder()),
    "waiting for its grace period": (
        (item(),),
        Remainder(Counter({"resourceclaims.resource.k8s.io": 1})),
    ),
    "waiting for finalizers": (
        (item("a", "b"), item("b")),
        Remainder(Counter({"resourceclaims.resource.k8s.io": 2}), Counter({"a": 1, "b": 2})),
    ),
    "not even deleted": (
        (item(), item(terminating=False)),
        Remainder(
            Counter({"resourceclaims.resource.k8s.io": 2}),
            failures=(
                "unexpected items still remain in namespace: demo for gvr:"
                " resource.k8s.io/v1, Resource=resourceclaims",
            ),
        ),
    ),
}


@pytest.mark.parametrize(("items", "want"), REMAINDERS.values(), ids=REMAINDERS.keys())
def test_remainder(items: tuple[PartialObjectMetadata, ...], want: Remainder) -> None:
    assert remainder(CLAIMS, "demo", items) == want


def test_remainders_add_up() -> None:
    one = Remainder(Counter({"a.": 1}), Counter({"x": 1}), ("first",))
    two = Remainder(Counter({"b.": 2}), Counter({"x": 2}), ("second",))

    both = Remainder(Counter({"a.": 1, "b.": 2}), Counter({"x": 3}), ("first", "second"))
    assert one + two == both
    assert one + Remainder() == one
