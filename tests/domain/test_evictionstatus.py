"""The status of rules, word for word."""

from __future__ import annotations

import pytest

from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.domain.eviction.status import (
    Counts,
    EvictedCount,
    KubernetesCounts,
    Report,
    count_pods,
    evicted,
    evicted_count,
    parse_kubernetes_message,
    paused,
    report,
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
    "one evicted, one pending": (
        "NoExecute",
        Counts(pods=1, namespaces=1, evicted=1),
        Report(
            "True",
            "PodsPendingEviction",
            "1 pod needs to be evicted in 1 namespace."
            " 1 pod evicted since starting the controller.",
        ),
    ),
    "all evicted": (
        "NoExecute",
        Counts(evicted=2),
        Report("False", "Completed", "2 pods evicted since starting the controller."),
    ),
    "one evicted": (
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
def test_the_count_since_the_rule_was_created_is_reported(number: int, text: str | None) -> None:
    assert evicted(number) == (Report("True", "PodsEvicted", text) if text else None)


def test_pods_are_pending_in_whatever_words() -> None:
    conditions = [_condition("EvictionInProgress", "some pods left")]

    assert parse_kubernetes_message(conditions) == KubernetesCounts(pending=1)


def test_the_message_of_another_condition_is_not_parsed() -> None:
    conditions = [_condition("sully.dev/Evicted", "5 pods evicted since starting the controller.")]

    assert parse_kubernetes_message(conditions) == KubernetesCounts()
    assert evicted_count(conditions, recorded=3) == EvictedCount(3, complete=True, ours=True)


def _condition(type_: str, message: str) -> Condition:
    return Condition(type=type_, status="True", reason="r", message=message)


def test_a_pause_gives_its_reason() -> None:
    assert paused(None) is None
    assert paused("waiting for the vendor") == Report("True", "Paused", "waiting for the vendor")
    assert paused("true") == Report(
        "True", "Paused", "No pod is evicted while the annotation sully.dev/paused is set."
    )


@pytest.mark.parametrize(("effect", "counts", "_"), CASES.values(), ids=CASES)
def test_the_message_is_parsed_as_it_is_written(effect: str, counts: Counts, _: Report) -> None:
    written = report(effect, counts)
    condition = Condition(
        type="EvictionInProgress",
        status=written.status,
        reason=written.reason,
        message=written.message,
    )

    parsed = parse_kubernetes_message([condition])

    assert parsed.since_start == counts.evicted
    assert parsed.pending == (counts.pods if written.reason == "PodsPendingEviction" else 0)


OTHERS = "2 pods evicted since starting the controller."
TALLIES: dict[str, tuple[dict[str, str], int, bool, EvictedCount]] = {
    "nothing is reported": ({}, 0, True, EvictedCount(0, True)),
    "nothing is reported, and nobody records": ({}, 0, False, EvictedCount(0, False)),
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
    "another's that reports nothing": (
        {"EvictionInProgress": ""},
        0,
        False,
        EvictedCount(0, False),
    ),
    "unknown text": (
        {"EvictionInProgress": "pods evicted since starting the controller."},
        0,
        True,
        EvictedCount(0, True),
    ),
}


@pytest.mark.parametrize(
    ("reported", "recorded", "has_records", "want"), TALLIES.values(), ids=TALLIES
)
def test_tally(
    reported: dict[str, str], recorded: int, has_records: bool, want: EvictedCount
) -> None:
    conditions = [
        Condition(type=type_, status="True", reason="r", message=text)
        for type_, text in reported.items()
    ]

    result = evicted_count(conditions, recorded, has_records=has_records)

    assert result == want
    assert result.at_least(9) == (want.count if want.ours else 9)
