"""What is known of a pod that has a node, and the frame of what is told about it.

pods.py tells why it stays, leavers.py why it must leave or leaves. Pods without a node: waiting.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sully.api.sully.types import EvictionRecord
from sully.domain.devices.taints import SourcedTaint
from sully.domain.eviction.judge import (
    KEEP,
    USUAL,
    Reason,
    Terms,
    Verdict,
)
from sully.domain.explaining.evicted import evicted_before, record_tables
from sully.domain.explaining.holdings import Holding, device_table
from sully.domain.explaining.sources import Sources
from sully.domain.explaining.story import Explanation, tables
from sully.domain.explaining.wording import listed, number
from sully.domain.scheduling.objects import Pod

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
    before: tuple[EvictionRecord, ...] = ()
    """Evictions of pods that it came in place of."""
    unheld: tuple[str, ...] = ()
    """Claims that it names and that are not reserved for it."""
    stranded: bool = False
    """Its node does not exist."""
    blind: bool = False
    """Who asks may not see the taints of devices."""
    budgets: tuple[BudgetFact, ...] = ()
    """The PodDisruptionBudgets that are about it."""
    pausable: bool = True
    """Whoever evicts heeds pauses: Sully does, Kubernetes' own controller does not."""
    terms: Terms = USUAL


def story(
    facts: PodFacts,
    state: str,
    cause: str,
    *summary: str,
    because: Iterable[str] = (),
    help_: tuple[str, ...] = (),
) -> Explanation:
    """Put together what is told of a pod that has a node."""
    pod = facts.pod
    return Explanation(
        kind="Pod",
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        state=state,
        cause=cause,
        summary=(*summary, *evicted_before(facts.before, facts.sources, facts.now)),
        because=tuple(dict.fromkeys(because)),
        remedies=help_,
        details=tables(
            device_table(facts.holdings, facts.sources, now=facts.now, terms=facts.terms),
            *(record_tables((facts.record,)) if facts.record is not None else ()),
        ),
    )


def authors_of(facts: PodFacts, taints: Iterable[SourcedTaint]) -> str:
    """Name the objects behind taints, with their authors."""
    names = [facts.sources.of(str(each.origin)).told() for each in taints]
    return listed(dict.fromkeys(names), 2)


def marks_told(facts: PodFacts) -> Iterator[str]:
    """Tell of all taints on its devices."""
    for held in facts.holdings:
        for each in held.taints:
            yield f"Device {held.device} carries {facts.sources.told_of(each, facts.now)}."


def reasons_told(facts: PodFacts, because: Sequence[Reason]) -> Iterator[str]:
    """Tell of the taints behind a verdict, not of too many."""
    for each in because[:_MOST_REASONS]:
        yield f"Device {each.device} carries {facts.sources.told_of(each.taint, facts.now)}."
    if len(because) > _MOST_REASONS:
        yield f"{number(len(because) - _MOST_REASONS, 'more taint')} say the same."


def origins_of(because: Iterable[Reason]) -> Iterator[str]:
    """Yield the objects behind a verdict."""
    return (str(each.taint.origin) for each in because)
