"""Why a pod with a node stays; why it leaves is leavers.py's. Pods without a node: waiting.py."""

from __future__ import annotations

from typing import Final

from sully.domain.eviction.judge import (
    Evict,
    Hold,
    Keep,
    Wait,
)
from sully.domain.explaining.leavers import due_later, due_now, held_back, on_its_way
from sully.domain.explaining.podfacts import (
    PodFacts,
    authors_of,
    marks_told,
    story,
)
from sully.domain.explaining.story import Explanation
from sully.domain.explaining.wording import listed

_MOST_REASONS: Final = 3


def explain_pod(facts: PodFacts) -> Explanation:
    """Say why a pod that has a node stays or leaves."""
    pod = facts.pod
    if pod.finished:
        text = f"Pod {pod.label} ran to its end ({pod.status.phase})."
        return story(facts, "Finished", pod.status.phase, text)
    if pod.metadata.deletion_timestamp is not None:
        return on_its_way(facts)
    match facts.verdict:
        case Keep():
            return _staying(facts)
        case Hold(because):
            return held_back(facts, because)
        case Wait(until, because, _):
            return due_later(facts, until, because)
        case Evict() as verdict:
            return due_now(facts, verdict)


def _staying(facts: PodFacts) -> Explanation:
    pod = facts.pod
    where = f"Pod {pod.label} is on node {pod.spec.node_name}"
    if facts.stranded:
        node = pod.spec.node_name
        text = f"{where}, which does not exist: nothing runs it."
        help_ = f"Delete the pod, or bring node {node} back."
        return story(
            facts, "Stranded", "NodeMissing", text, because=(f"Node/{node}",), help_=(help_,)
        )
    if facts.unheld:
        names = listed(facts.unheld)
        return story(
            facts,
            "Running",
            "ClaimNotReserved",
            f"{where}, but claim {names} is not reserved for it.",
            "It got its node past the scheduler; devices are never allocated for such a pod.",
            because=(f"ResourceClaim/{each}" for each in facts.unheld),
            help_=("Create the pod without spec.nodeName.",),
        )
    if not facts.holdings:
        return story(facts, "Running", "NoDevices", f"{where} and holds no device.")
    devices = listed([str(each.device) for each in facts.holdings])
    where = f"{where} and holds {devices}"
    if facts.blind:
        text = f"{where}. Whether those are tainted, and so whether it may stay, you may not see."
        help_ = "Ask an admin, or for the right to list resourceslices and devicetaintrules."
        return story(facts, "Running", "TaintsNotVisible", text, help_=(help_,))
    marks = list(marks_told(facts))
    if not marks:
        one = len(facts.holdings) == 1
        clean = "which is not tainted" if one else "none of which is tainted"
        return story(facts, "Running", "NothingAgainst", f"{where}, {clean}.")
    return story(
        facts,
        "Running",
        "TaintsDoNotEvict",
        f"{where}. {_may_stay(facts)}",
        *marks[:_MOST_REASONS],
        because=(str(each.origin) for held in facts.holdings for each in held.taints),
    )


def _may_stay(facts: PodFacts) -> str:
    found = [each for held in facts.holdings for each in held.taints]
    evicting = [each for each in found if each.taint.effect in facts.terms.effects]
    if not evicting:
        return f"It may stay: {authors_of(facts, found)} at most keeps new pods off."
    return f"It may stay: it tolerates what comes from {authors_of(facts, evicting)}."
