"""What a rule would do, in words."""

from __future__ import annotations

import pytest

from sully.domain.eviction.preview import SHOWN, Preview, PreviewedPod, preview
from sully.domain.eviction.status import Report

WEB = PreviewedPod("a", "web-1", "ReplicaSet/web")
BARE = PreviewedPod("b", "bare", "Pod/bare")

CASES = {
    "nobody": (
        Preview(published=3, allocated=1),
        Report(
            "False",
            "NoPodsWouldBeEvicted",
            "0 pods would be evicted. 3 devices published, 1 allocated.",
        ),
    ),
    "one": (
        Preview(published=1, allocated=1, evictions=(WEB,)),
        Report(
            "True",
            "PodsWouldBeEvicted",
            "1 pod would be evicted: 1 immediately. 1 device published, 1 allocated."
            " By namespace: a 1. By owner: a/ReplicaSet/web 1.",
        ),
    ),
    "some later": (
        Preview(
            evictions=(
                WEB,
                PreviewedPod("a", "web-2", "ReplicaSet/web", 30),
                PreviewedPod("b", "bare", "Pod/bare", 3600),
            ),
            allocated=3,
        ),
        Report(
            "True",
            "PodsWouldBeEvicted",
            "3 pods would be evicted: 1 immediately, 2 after 30s to 3600s."
            " 0 devices published, 3 allocated."
            " By namespace: a 2, b 1. By owner: a/ReplicaSet/web 2, b/Pod/bare 1.",
        ),
    ),
    "all later, at one time": (
        Preview(published=1, allocated=1, evictions=(PreviewedPod("b", "bare", "Pod/bare", 60),)),
        Report(
            "True",
            "PodsWouldBeEvicted",
            "1 pod would be evicted: 0 immediately, 1 after 60s. 1 device published, 1 allocated."
            " By namespace: b 1. By owner: b/Pod/bare 1.",
        ),
    ),
    "the same owner in two namespaces": (
        Preview(
            published=2,
            allocated=2,
            evictions=(WEB, PreviewedPod("b", "web-1", "ReplicaSet/web")),
        ),
        Report(
            "True",
            "PodsWouldBeEvicted",
            "2 pods would be evicted: 2 immediately. 2 devices published, 2 allocated."
            " By namespace: a 1, b 1. By owner: a/ReplicaSet/web 1, b/ReplicaSet/web 1.",
        ),
    ),
}


@pytest.mark.parametrize(("would", "want"), CASES.values(), ids=CASES.keys())
def test_preview(would: Preview, want: Report) -> None:
    assert preview(would) == want


def test_many_names_are_cut_and_the_largest_stay() -> None:
    few = [PreviewedPod(f"ns-{number:03}", "p", "Pod/p") for number in range(100)]
    many = [PreviewedPod("zoo", f"p-{number}", "Job/large") for number in range(5)]

    message = preview(Preview(evictions=(*few, *many))).message

    assert "By namespace: zoo 5, ns-000 1, ns-001 1," in message
    assert message.count(f"and {101 - SHOWN} more") == 2


def test_the_longest_names_fit_into_a_condition() -> None:
    space, kind, name = "n" * 60, "K" * 63, "o" * 253
    evictions = tuple(
        PreviewedPod(f"{space}{number:03}", "p", f"{kind}/{number:03}{name}")
        for number in range(500)
    )

    assert len(preview(Preview(evictions=evictions)).message.encode()) < 32768


def test_the_order_of_pods_does_not_matter() -> None:
    evictions = (WEB, BARE, PreviewedPod("c", "x", "Pod/x", 5))

    assert preview(Preview(evictions=evictions)) == preview(Preview(evictions=evictions[::-1]))
