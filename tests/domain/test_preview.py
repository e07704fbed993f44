"""What a rule would do, in words."""

from __future__ import annotations

import pytest

from sully.domain.eviction.preview import SHOWN, Leaver, Preview, preview
from sully.domain.eviction.status import Report

WEB = Leaver("a", "web-1", "ReplicaSet/web")
BARE = Leaver("b", "bare", "Pod/bare")

CASES = {
    "nobody": (
        Preview(published=3, allocated=1),
        Report(
            "False",
            "NobodyWouldLeave",
            "0 pods would be evicted. 3 devices published, 1 allocated.",
        ),
    ),
    "one": (
        Preview(published=1, allocated=1, leavers=(WEB,)),
        Report(
            "True",
            "PodsWouldLeave",
            "1 pod would be evicted: 1 at once. 1 device published, 1 allocated."
            " By namespace: a 1. By owner: a/ReplicaSet/web 1.",
        ),
    ),
    "some later": (
        Preview(
            leavers=(
                WEB,
                Leaver("a", "web-2", "ReplicaSet/web", 30),
                Leaver("b", "bare", "Pod/bare", 3600),
            ),
            allocated=3,
        ),
        Report(
            "True",
            "PodsWouldLeave",
            "3 pods would be evicted: 1 at once, 2 after 30s to 3600s."
            " 0 devices published, 3 allocated."
            " By namespace: a 2, b 1. By owner: a/ReplicaSet/web 2, b/Pod/bare 1.",
        ),
    ),
    "all later, at one time": (
        Preview(published=1, allocated=1, leavers=(Leaver("b", "bare", "Pod/bare", 60),)),
        Report(
            "True",
            "PodsWouldLeave",
            "1 pod would be evicted: 0 at once, 1 after 60s. 1 device published, 1 allocated."
            " By namespace: b 1. By owner: b/Pod/bare 1.",
        ),
    ),
    "the same owner in two namespaces": (
        Preview(published=2, allocated=2, leavers=(WEB, Leaver("b", "web-1", "ReplicaSet/web"))),
        Report(
            "True",
            "PodsWouldLeave",
            "2 pods would be evicted: 2 at once. 2 devices published, 2 allocated."
            " By namespace: a 1, b 1. By owner: a/ReplicaSet/web 1, b/ReplicaSet/web 1.",
        ),
    ),
}


@pytest.mark.parametrize(("would", "want"), CASES.values(), ids=CASES.keys())
def test_preview(would: Preview, want: Report) -> None:
    assert preview(would) == want


def test_many_names_are_cut_and_the_largest_stay() -> None:
    few = [Leaver(f"ns-{number:03}", "p", "Pod/p") for number in range(100)]
    many = [Leaver("zoo", f"p-{number}", "Job/large") for number in range(5)]

    message = preview(Preview(leavers=(*few, *many))).message

    assert "By namespace: zoo 5, ns-000 1, ns-001 1," in message
    assert message.count(f"and {101 - SHOWN} more") == 2


def test_the_longest_names_fit_into_a_condition() -> None:
    space, kind, name = "n" * 60, "K" * 63, "o" * 253
    leavers = tuple(
        Leaver(f"{space}{number:03}", "p", f"{kind}/{number:03}{name}") for number in range(500)
    )

    assert len(preview(Preview(leavers=leavers)).message.encode()) < 32768


def test_the_order_of_pods_does_not_matter() -> None:
    leavers = (WEB, BARE, Leaver("c", "x", "Pod/x", 5))

    assert preview(Preview(leavers=leavers)) == preview(Preview(leavers=leavers[::-1]))
