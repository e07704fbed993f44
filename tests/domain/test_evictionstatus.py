"""What the status of rules says, word for word."""

from __future__ import annotations

import pytest

from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.domain.eviction.status import (
    Counts,
    EvictedCount,
    Report,
    ReportedCounts,
    count_pods,
    evicted,
    evicted_count,
    paused,
    report,
    reported_counts,
)
from sully.machinery.meta import Condition

ONCE = (
    "if the effect was NoExecute. This information will not be updated again."
    " Recreate the DeviceTaintRule to trigger an update."
)
OTHER = "Eviction only happens for the NoExecute effect."

CASES = {
    "nothing happened": ("NoExecute", Counts(), Report("False", "NotStarted", "")),
    "one pod": (
        "NoExecute",
        Counts(pods=1, namespaces=1),
        Report("True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace."),
    ),
    "two pods in two namespaces": (
        "NoExecute",
        Counts(pods=2, namespaces=2),
        Report(
            "True", "PodsPendingEviction", "2 pods need to be evicted in 2 different namespaces."
        ),
    ),
    "two pods in one namespace": (
        "NoExecute",
        Counts(pods=2, namespaces=1),
        Report("True", "PodsPendingEviction", "2 pods need to be evicted in 1 namespace."),
    ),
    "one left, one to go": (
        "NoExecute",
        Counts(pods=1, namespaces=1, evicted=1),
        Report(
            "True",
            "PodsPendingEviction",
            "1 pod needs to be evicted in 1 namespace."
            " 1 pod evicted since starting the controller.",
        ),
    ),
    "all left": (
        "NoExecute",
        Counts(evicted=2),
        Report("False", "Completed", "2 pods evicted since starting the controller."),
    ),
    "one left": (
        "NoExecute",
        Counts(evicted=1),
        Report("False", "Completed", "1 pod evicted since starting the controller."),
    ),
    "a preview of one": (
        "None",
        Counts(published=3, allocated=1, pods=1, namespaces=1),
        Report(
            "False",
            "NoEffect",
            "3 published devices selected. 1 allocated device selected."
            f" 1 pod would be evicted in 1 namespace {ONCE}",
        ),
    ),
    "a preview without slices": (
        "None",
        Counts(allocated=3, pods=2, namespaces=2),
        Report(
            "False",
            "NoEffect",
            "0 published devices selected. 3 allocated devices selected."
            f" 2 pods would be evicted in 2 different namespaces {ONCE}",
        ),
    ),
    "a preview of nothing": (
        "None",
        Counts(published=1),
        Report(
            "False",
            "NoEffect",
            "1 published device selected. 0 allocated devices selected."
            f" 0 pods would be evicted in 0 different namespaces {ONCE}",
        ),
    ),
    "a preview after an eviction": (
        "None",
        Counts(evicted=3),
        Report(
            "False",
            "NoEffect",
            "0 published devices selected. 0 allocated devices selected."
            f" 0 pods would be evicted in 0 different namespaces {ONCE}"
            " 3 pods evicted since starting the controller.",
        ),
    ),
    "another effect": ("NoSchedule", Counts(pods=5), Report("False", "OtherEffect", OTHER)),
    "an unknown effect": ("Sparkle", Counts(), Report("False", "OtherEffect", OTHER)),
    "another effect after an eviction": (
        "NoSchedule",
        Counts(evicted=1),
        Report("False", "OtherEffect", f"{OTHER} 1 pod evicted since starting the controller."),
    ),
}


@pytest.mark.parametrize(("effect", "counts", "want"), CASES.values(), ids=CASES.keys())
def test_report(effect: str, counts: Counts, want: Report) -> None:
    assert report(effect, counts) == want


def test_a_pod_counts_once_however_often_it_is_hit() -> None:
    assert count_pods([("a", "x"), ("a", "x"), ("a", "y"), ("b", "x")]) == (3, 2)


def test_an_effect_with_budgets_is_reported_like_any_that_evicts() -> None:
    effect, counts = "NoExecuteWithPodDisruptionBudget", Counts(pods=1, namespaces=1)

    assert report(effect, counts).reason == "OtherEffect"
    assert report(effect, counts, EVICTING_EFFECTS) == report("NoExecute", counts)


LASTING = {0: None, 1: "1 pod evicted.", 1000: "1000 pods evicted."}


@pytest.mark.parametrize(("number", "text"), LASTING.items())
def test_the_lasting_count_can_be_read_again(number: int, text: str | None) -> None:
    said = evicted(number)

    assert said == (Report("True", "PodsEvicted", text) if text else None)
    conditions = [] if said is None else [_condition("sully.dev/Evicted", said.message)]
    assert reported_counts(conditions).evicted == number


def test_somebody_elses_text_counts_for_nothing() -> None:
    conditions = [
        _condition("EvictionInProgress", "some pods left"),
        _condition("sully.dev/Evicted", "a few pods"),
    ]

    assert reported_counts(conditions) == ReportedCounts(ever=0)


def _condition(type_: str, message: str) -> Condition:
    return Condition(type=type_, status="True", reason="r", message=message)


def test_a_pause_gives_its_reason() -> None:
    assert paused(None) is None
    assert paused("waiting for the vendor") == Report("True", "Paused", "waiting for the vendor")
    assert paused("true") == Report(
        "True", "Paused", "No pod is evicted while the annotation sully.dev/paused is set."
    )


@pytest.mark.parametrize(("effect", "counts", "_"), CASES.values(), ids=CASES)
def test_what_is_said_of_evictions_can_be_read(effect: str, counts: Counts, _: Report) -> None:
    said = report(effect, counts)
    condition = Condition(
        type="EvictionInProgress", status=said.status, reason=said.reason, message=said.message
    )

    reported = reported_counts([condition])

    assert reported.evicted == reported.since_start == counts.evicted
    assert reported.pending == (counts.pods if said.reason == "PodsPendingEviction" else 0)


OTHERS = "2 pods evicted since starting the controller."
TALLIES: dict[str, tuple[dict[str, str], int, bool, EvictedCount]] = {
    "nothing is said": ({}, 0, True, EvictedCount(0, True)),
    "nothing is said, and nobody records": ({}, 0, False, EvictedCount(0, False)),
    "recorded": ({}, 3, True, EvictedCount(3, True)),
    "ours": (
        {"EvictionInProgress": OTHERS, "sully.dev/Evicted": "5 pods evicted."},
        4,
        True,
        EvictedCount(4, True, True),
    ),
    "another's": ({"EvictionInProgress": OTHERS}, 0, False, EvictedCount(2, False)),
    "another's, beside our records": (
        {"EvictionInProgress": OTHERS},
        3,
        True,
        EvictedCount(3, False),
    ),
    "another's that says nothing": ({"EvictionInProgress": ""}, 0, False, EvictedCount(0, False)),
    "words that nobody knows": (
        {"EvictionInProgress": "pods evicted since starting the controller."},
        0,
        True,
        EvictedCount(0, True),
    ),
}


@pytest.mark.parametrize(("said", "recorded", "kept", "want"), TALLIES.values(), ids=TALLIES)
def test_tally(said: dict[str, str], recorded: int, kept: bool, want: EvictedCount) -> None:
    conditions = [
        Condition(type=type_, status="True", reason="r", message=text)
        for type_, text in said.items()
    ]

    found = evicted_count(conditions, recorded, has_records=kept)

    assert found == want
    assert found.at_least(9) == (want.count if want.ours else 9)
