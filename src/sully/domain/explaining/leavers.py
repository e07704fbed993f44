"""Why a pod must leave, is not yet gone, or is on its way.

The verdict is that of `domain/eviction.py`; what happened is read from conditions and records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from sully.api.sully.types import EvictionRecord
from sully.domain.eviction.judge import (
    Evict,
    Reason,
    needs_budget,
)
from sully.domain.explaining.evicted import causes_told
from sully.domain.explaining.podfacts import (
    PodFacts,
    authors_of,
    marks_told,
    origins_of,
    reasons_told,
    story,
)
from sully.domain.explaining.story import Explanation
from sully.domain.explaining.wording import ended, listed, moment, number, quoted, since

DISRUPTED: Final = "DisruptionTarget"
BY_TAINT: Final = "DeletionByDeviceTaintManager"


def held_back(facts: PodFacts, because: Sequence[Reason]) -> Explanation:
    """Tell of a pod that stays while eviction is paused."""
    paused = [facts.sources.of(str(each.taint.origin)) for each in because]
    why = next((each.paused for each in paused if each.paused not in (None, "true")), None)
    reason = f": {quoted(why)}" if why else ""
    name = because[0].taint.origin.name
    return story(
        facts,
        "Running",
        "EvictionPaused",
        f"Pod {facts.pod.label} is on node {facts.pod.spec.node_name} and stays while eviction by"
        f" {authors_of(facts, [each.taint for each in because])} is paused{reason}.",
        *reasons_told(facts, because),
        because=origins_of(because),
        help_=(
            f"It leaves when the rule is resumed (sully evictions resume {name}), and stays if"
            " the rule is deleted.",
        ),
    )


def due_later(facts: PodFacts, until: datetime, because: Sequence[Reason]) -> Explanation:
    """Tell of a pod that must leave at some time."""
    lasting = [each for each in because if not _ends_first(facts, each)]
    if not lasting:
        return _outlives(facts, because)
    until = min(each.due or until for each in lasting)
    authors = authors_of(facts, [each.taint for each in lasting])
    if any(each.taint.taint.time_added == until for each in lasting):
        cause, why = "TaintBegins", f"what comes from {authors} counts from then on"
    else:
        cause, why = "ToleratedForNow", f"until then it tolerates what comes from {authors}"
    return story(
        facts,
        "Running",
        cause,
        f"Pod {facts.pod.label} is on node {facts.pod.spec.node_name} and must leave at"
        f" {moment(until, facts.now)}: {why}.",
        *reasons_told(facts, lasting),
        because=origins_of(lasting),
        help_=(
            _undo(facts, lasting),
            "More tolerations in its claim would not help: they count when devices are chosen.",
        ),
    )


def _ends_first(facts: PodFacts, reason: Reason) -> bool:
    """Say whether a taint goes by itself before anybody has to leave because of it."""
    end = facts.sources.of(str(reason.taint.origin)).until
    return end is not None and reason.due is not None and end <= reason.due


def _outlives(facts: PodFacts, because: Sequence[Reason]) -> Explanation:
    return story(
        facts,
        "Running",
        "TaintEndsFirst",
        f"Pod {facts.pod.label} is on node {facts.pod.spec.node_name} and may stay:"
        f" {authors_of(facts, [each.taint for each in because])} ends by itself before the pod's"
        " toleration does.",
        *reasons_told(facts, because),
        because=origins_of(because),
    )


def due_now(facts: PodFacts, verdict: Evict) -> Explanation:
    """Tell of a pod that should be gone."""
    because = verdict.due(facts.now) or verdict.because
    cause, why = _why_still_here(facts, because)
    return story(
        facts,
        "Leaving",
        cause,
        f"Pod {facts.pod.label} has to leave node {facts.pod.spec.node_name}"
        f"{since(verdict.since, facts.now)} because of"
        f" {authors_of(facts, [each.taint for each in because])}. {why}",
        *reasons_told(facts, because),
        because=origins_of(because),
        help_=(_undo(facts, because),),
    )


def _budgets(facts: PodFacts) -> str:
    known = facts.budgets
    if not known:
        return "It goes as soon as its PodDisruptionBudgets allow."
    names = listed([each.name for each in known])
    if len(known) > 1:
        return f"It cannot go: more than one PodDisruptionBudget is about it, {names}."
    if known[0].allowed > 0:
        return f"PodDisruptionBudget {names} allows it to go."
    return f"It goes as soon as PodDisruptionBudget {names} allows, which allows nobody to go now."


def _why_still_here(facts: PodFacts, because: Sequence[Reason]) -> tuple[str, str]:
    if needs_budget(because):
        return "WaitsForBudget", _budgets(facts)
    rates = [each.taint.taint.evictions_per_second for each in because]
    known = [rate for rate in rates if rate is not None]
    if known and len(known) == len(rates):
        pace = f"The pace is {number(max(known), 'pod')} a second"
        return "WaitsForPace", f"{pace}, and others are before it."
    return "DueNow", "It goes as soon as the eviction controller gets to it."


def _undo(facts: PodFacts, because: Sequence[Reason]) -> str:
    rules = [each.taint.origin.name for each in because if each.rule is not None]
    if len(rules) < len(because):
        return "It stays if the taint is cleared in time by whoever set it."
    names = list(dict.fromkeys(rules))
    one = len(names) == 1
    text = f"rule {names[0]} is" if one else f"rules {listed(names)} are"
    pause = f"; pausing {'the rule' if one else 'them'} puts it off" if facts.pausable else ""
    return f"It stays if {text} deleted in time{pause}."


def on_its_way(facts: PodFacts) -> Explanation:
    """Tell of a pod that is being deleted, and why."""
    pod = facts.pod
    gone = f"Pod {pod.label} is being deleted{_by_when(facts)}"
    told = pod.condition(DISRUPTED)
    if told is not None and (told.status != "True" or not told.reason):
        # Somebody was about to evict it once, and did not.
        told = None
    if facts.record is not None:
        return story(
            facts,
            "Leaving",
            "EvictedByTaint",
            f"{gone} because it was evicted:"
            f" {listed(dict.fromkeys(_causes(facts, facts.record)), 2)} made it leave.",
            *causes_told(facts.record.spec.causes, facts.sources, facts.now),
            because=(f"{each.kind}/{each.name}" for each in facts.record.spec.causes),
        )
    if told is not None and told.reason == BY_TAINT and isinstance(facts.verdict, Evict):
        because = facts.verdict.due(facts.now) or facts.verdict.because
        return story(
            facts,
            "Leaving",
            "EvictedByTaint",
            f"{gone} because it was evicted:"
            f" {authors_of(facts, [each.taint for each in because])} made it leave.",
            *reasons_told(facts, because),
            because=origins_of(because),
        )
    if told is not None and told.reason == BY_TAINT:
        marks = tuple(marks_told(facts)) or ("Which one is not on record.",)
        return story(
            facts,
            "Leaving",
            "EvictedByTaint",
            f"{gone} because of a taint on one of its devices.",
            *marks,
            because=(str(each.origin) for held in facts.holdings for each in held.taints),
        )
    if told is not None:
        text = f"{gone.removesuffix(',')}: {ended(told.message or told.reason)}"
        return story(facts, "Leaving", told.reason, text)
    return story(facts, "Leaving", "Deleted", f"{gone} and no taint of a device is the reason.")


def _by_when(facts: PodFacts) -> str:
    """Say how long it may take: the time in a pod is when its grace ends, not when it began."""
    end = facts.pod.metadata.deletion_timestamp
    if end is None:
        return ""
    if end > facts.now:
        return f", until {moment(end, facts.now)} at the latest,"
    return f", which should have ended at {moment(end, facts.now)},"


def _causes(facts: PodFacts, record: EvictionRecord) -> Iterator[str]:
    return (facts.sources.of(f"{each.kind}/{each.name}").told() for each in record.spec.causes)
