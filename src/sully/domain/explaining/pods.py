"""Why a pod with a node stays, must leave, leaves, or left. Pods without a node: waiting.py.

The verdict is that of `domain/eviction.py`; what happened is read from conditions and records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sully.api.sully.types import EvictionRecord
from sully.domain.eviction import (
    KEEP,
    USUAL,
    Evict,
    Hold,
    Keep,
    Reason,
    Terms,
    Verdict,
    Wait,
    needs_budget,
)
from sully.domain.explaining.evicted import causes_told, record_tables
from sully.domain.explaining.holdings import Holding, device_table
from sully.domain.explaining.sources import Sources
from sully.domain.explaining.story import Explanation, tables
from sully.domain.explaining.wording import ended, listed, moment, number, quoted, since
from sully.domain.scheduling.objects import Pod
from sully.domain.taints import SourcedTaint

DISRUPTED: Final = "DisruptionTarget"
BY_TAINT: Final = "DeletionByDeviceTaintManager"
_MOST_REASONS: Final = 3


@dataclass(frozen=True, slots=True)
class BudgetFact:
    """A PodDisruptionBudget, and how many of its pods may go now."""

    name: str
    allowed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """What is known of a pod that has a node, or of one that leaves."""

    pod: Pod
    now: datetime
    sources: Sources
    verdict: Verdict = KEEP
    holdings: tuple[Holding, ...] = ()
    record: EvictionRecord | None = None
    unheld: tuple[str, ...] = ()
    """Claims that it names and that are not reserved for it."""
    blind: bool = False
    """Who asks may not see the taints of devices."""
    budgets: tuple[BudgetFact, ...] = ()
    """The PodDisruptionBudgets that are about it."""
    pausable: bool = True
    """Whoever evicts heeds pauses: Sully does, Kubernetes' own controller does not."""
    terms: Terms = USUAL


def explain_pod(facts: PodFacts) -> Explanation:
    """Say why a pod that has a node stays or leaves."""
    pod = facts.pod
    if pod.finished:
        text = f"Pod {pod.label} ran to its end ({pod.status.phase})."
        return _story(facts, "Finished", pod.status.phase, text)
    if pod.metadata.deletion_timestamp is not None:
        return _leaving(facts)
    match facts.verdict:
        case Keep():
            return _staying(facts)
        case Hold(because):
            return _held(facts, because)
        case Wait(until, because, _):
            return _due_later(facts, until, because)
        case Evict() as verdict:
            return _due(facts, verdict)


def _story(
    facts: PodFacts,
    state: str,
    cause: str,
    *summary: str,
    because: Iterable[str] = (),
    help_: tuple[str, ...] = (),
) -> Explanation:
    pod = facts.pod
    return Explanation(
        kind="Pod",
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        state=state,
        cause=cause,
        summary=summary,
        because=tuple(dict.fromkeys(because)),
        remedies=help_,
        details=tables(
            device_table(facts.holdings, facts.sources, now=facts.now, terms=facts.terms),
            *(record_tables((facts.record,)) if facts.record is not None else ()),
        ),
    )


# -- staying --------------------------------------------------------------------------------------


def _staying(facts: PodFacts) -> Explanation:
    pod = facts.pod
    where = f"Pod {pod.label} is on node {pod.spec.node_name}"
    if facts.unheld:
        names = listed(facts.unheld)
        return _story(
            facts,
            "Running",
            "ClaimNotReserved",
            f"{where}, but claim {names} is not reserved for it.",
            "It got its node past the scheduler; devices are never allocated for such a pod.",
            because=(f"ResourceClaim/{each}" for each in facts.unheld),
            help_=("Create the pod without spec.nodeName.",),
        )
    if not facts.holdings:
        return _story(facts, "Running", "NoDevices", f"{where} and holds no device.")
    devices = listed([str(each.device) for each in facts.holdings])
    where = f"{where} and holds {devices}"
    if facts.blind:
        text = f"{where}. Whether those are tainted, and so whether it may stay, you may not see."
        help_ = "Ask an admin, or for the right to list resourceslices and devicetaintrules."
        return _story(facts, "Running", "TaintsNotVisible", text, help_=(help_,))
    marks = list(_marks(facts))
    if not marks:
        return _story(facts, "Running", "NothingAgainst", f"{where}; none of them is tainted.")
    return _story(
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
        return f"It may stay: {_told(facts, found)} at most keeps new pods off."
    return f"It may stay: it tolerates what comes from {_told(facts, evicting)}."


def _told(facts: PodFacts, taints: Iterable[SourcedTaint]) -> str:
    """Name the objects behind taints, with their authors."""
    names = [facts.sources.of(str(each.origin)).told() for each in taints]
    return listed(dict.fromkeys(names), 2)


def _marks(facts: PodFacts) -> Iterator[str]:
    for held in facts.holdings:
        for each in held.taints:
            yield f"Device {held.device} carries {facts.sources.told_of(each, facts.now)}."


# -- leaving soon ---------------------------------------------------------------------------------


def _held(facts: PodFacts, because: Sequence[Reason]) -> Explanation:
    paused = [facts.sources.of(str(each.taint.origin)) for each in because]
    why = next((each.paused for each in paused if each.paused not in (None, "true")), None)
    reason = f": {quoted(why)}" if why else ""
    name = because[0].taint.origin.name
    return _story(
        facts,
        "Running",
        "EvictionPaused",
        f"Pod {facts.pod.label} is on node {facts.pod.spec.node_name} and stays while eviction by"
        f" {_told(facts, [each.taint for each in because])} is paused{reason}.",
        *_reasons(facts, because),
        because=_origins(because),
        help_=(
            f"It leaves when the rule is resumed (sully evictions resume {name}), and stays if"
            " the rule is deleted.",
        ),
    )


def _due_later(facts: PodFacts, until: datetime, because: Sequence[Reason]) -> Explanation:
    lasting = [each for each in because if not _ends_first(facts, each)]
    if not lasting:
        return _outlives(facts, because)
    until = min(each.due or until for each in lasting)
    return _story(
        facts,
        "Running",
        "ToleratedForNow",
        f"Pod {facts.pod.label} is on node {facts.pod.spec.node_name} and must leave at"
        f" {moment(until, facts.now)}: until then it tolerates what comes from"
        f" {_told(facts, [each.taint for each in lasting])}.",
        *_reasons(facts, lasting),
        because=_origins(lasting),
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
    return _story(
        facts,
        "Running",
        "TaintEndsFirst",
        f"Pod {facts.pod.label} is on node {facts.pod.spec.node_name} and may stay:"
        f" {_told(facts, [each.taint for each in because])} ends by itself before the pod's"
        " toleration does.",
        *_reasons(facts, because),
        because=_origins(because),
    )


def _due(facts: PodFacts, verdict: Evict) -> Explanation:
    because = verdict.due(facts.now) or verdict.because
    cause, why = _why_still_here(facts, because)
    return _story(
        facts,
        "Leaving",
        cause,
        f"Pod {facts.pod.label} has to leave node {facts.pod.spec.node_name}"
        f"{since(verdict.since, facts.now)} because of"
        f" {_told(facts, [each.taint for each in because])}. {why}",
        *_reasons(facts, because),
        because=_origins(because),
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


def _reasons(facts: PodFacts, because: Sequence[Reason]) -> Iterator[str]:
    for each in because[:_MOST_REASONS]:
        yield f"Device {each.device} carries {facts.sources.told_of(each.taint, facts.now)}."
    if len(because) > _MOST_REASONS:
        yield f"{number(len(because) - _MOST_REASONS, 'more taint')} say the same."


def _origins(because: Iterable[Reason]) -> Iterator[str]:
    return (str(each.taint.origin) for each in because)


def _undo(facts: PodFacts, because: Sequence[Reason]) -> str:
    rules = [each.taint.origin.name for each in because if each.rule is not None]
    if len(rules) < len(because):
        return "It stays if the taint is cleared in time by whoever set it."
    names = list(dict.fromkeys(rules))
    one = len(names) == 1
    text = f"rule {names[0]} is" if one else f"rules {listed(names)} are"
    pause = f"; pausing {'the rule' if one else 'them'} puts it off" if facts.pausable else ""
    return f"It stays if {text} deleted in time{pause}."


# -- on its way ---------------------------------------------------------------------------------


def _leaving(facts: PodFacts) -> Explanation:
    pod = facts.pod
    gone = f"Pod {pod.label} is being deleted{_by_when(facts)}"
    told = pod.condition(DISRUPTED)
    if facts.record is not None:
        return _story(
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
        return _story(
            facts,
            "Leaving",
            "EvictedByTaint",
            f"{gone} because it was evicted:"
            f" {_told(facts, [each.taint for each in because])} made it leave.",
            *_reasons(facts, because),
            because=_origins(because),
        )
    if told is not None and told.reason == BY_TAINT:
        marks = tuple(_marks(facts)) or ("Which one is not on record.",)
        return _story(
            facts,
            "Leaving",
            "EvictedByTaint",
            f"{gone} because of a taint on one of its devices.",
            *marks,
            because=(str(each.origin) for held in facts.holdings for each in held.taints),
        )
    if told is not None:
        text = f"{gone.removesuffix(',')}: {ended(told.message)}"
        return _story(facts, "Leaving", told.reason, text)
    return _story(facts, "Leaving", "Deleted", f"{gone} and no taint of a device is the reason.")


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
