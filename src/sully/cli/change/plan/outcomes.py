"""What becomes of pods, in the tables of `sully plan`."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING

from sully.cli.change.plan.reasons import shorten
from sully.cli.output.formatting import duration
from sully.cli.output.tables import Cell
from sully.domain.planning.report import ReplacementOutcome, group_by_owner
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.domain.planning.report import (
        CreatedPod,
        OwnerEvictions,
        Plan,
        PlannedEviction,
        Replacement,
    )

MOST_NAMES = 3
"""Names that the short format lists for the same reason."""


def eviction_row(eviction: "PlannedEviction") -> list[Cell | str]:
    return [
        eviction.namespace,
        eviction.name,
        eviction.owner,
        eviction.node,
        when_text(eviction.after_seconds),
        _later(_outcome(eviction.replacement), eviction.delay),
    ]


def _later(cell: Cell, seconds: float) -> Cell:
    """Add how long a Job or StatefulSet waits before it creates the replacement."""
    return Cell(f"{cell.text}, {when_text(seconds)} later", cell.style) if seconds >= 1 else cell


def when_text(seconds: float) -> str:
    # Times of taints are whole seconds, so a fraction is rounded up.
    return duration(ceil(seconds)) if seconds >= 1 else "immediately"


def _outcome(replacement: "Replacement") -> Cell:

    match replacement.outcome:
        case ReplacementOutcome.RESCHEDULED:
            text = f"rescheduled to {_candidates(replacement)}"
            if not replacement.evicting_candidates:
                return Cell(text, "green")
            return Cell(f"{text}, may be evicted again", "yellow")
        case ReplacementOutcome.PENDING:
            return Cell("unschedulable", "red")
        case ReplacementOutcome.EVICTED_AGAIN:
            return Cell(f"rescheduled to {_candidates(replacement)}, evicted again", "red")
        case ReplacementOutcome.NOT_REPLACED:
            return Cell("not recreated", "red")
        case ReplacementOutcome.UNKNOWN:
            return Cell("not known", "yellow")


def _candidates(replacement: "Replacement") -> str:
    """Return the node of a pod, or the nodes of which the scheduler selects one."""
    count, names = replacement.candidate_count, replacement.candidates[:MOST_NAMES]
    if count <= 1:
        return replacement.node
    left = count - len(names)
    return f"one of {', '.join(names)}" + (f" and {left} more" if left else "")


def owner_row(owner: "OwnerEvictions") -> list[Cell | str]:
    first, last = when_text(owner.first), when_text(owner.last)
    return [
        owner.namespace,
        owner.owner,
        str(len(owner.evictions)),
        first if first == last else f"{first} to {last}",
        _outcomes(owner),
    ]


def _outcomes(owner: "OwnerEvictions") -> Cell:

    candidates = owner.candidates
    among = "some of " if len(candidates) > len(owner.nodes) > 1 else "one of "
    among = among if len(candidates) > len(owner.nodes) else ""
    nodes = f" to {among}{shorten(candidates, MOST_NAMES)}" if candidates else ""
    texts = {
        ReplacementOutcome.RESCHEDULED: f"rescheduled{nodes}",
        ReplacementOutcome.PENDING: "unschedulable",
        ReplacementOutcome.EVICTED_AGAIN: "evicted again",
        ReplacementOutcome.NOT_REPLACED: "not recreated",
        ReplacementOutcome.UNKNOWN: "not known",
    }
    text = ", ".join(f"{count} {texts[outcome]}" for outcome, count in owner.outcomes.items())
    if owner.outcomes.keys() != {ReplacementOutcome.RESCHEDULED}:
        return Cell(text, "red")
    risk = any(eviction.replacement.evicting_candidates for eviction in owner.evictions)
    return Cell(f"{text}, may be evicted again", "yellow") if risk else Cell(text, "green")


def created_text(pod: "CreatedPod") -> str:
    then = f"scheduled to {pod.node}" if pod.node else "unschedulable"
    again = " and evicted again" if pod.evicted_again else ""
    return f"would be created by {pod.owner}, and {then}{again}"


def risk_text(evictions: "Sequence[PlannedEviction]") -> "Iterator[str]":
    """Yield on which nodes pods would be evicted again, for each owner."""

    for owner in group_by_owner(evictions):
        names = {x for pod in owner.evictions for x in pod.replacement.evicting_candidates}
        nodes = shorten(sorted(names), MOST_NAMES)
        name = owner.owner.replace("/", f" {owner.namespace}/")
        yield (
            f"pods of {name} may be scheduled to {nodes}, and evicted again: taints there evict"
            " them, but do not prevent scheduling"
        )


def without_change_text(plan: "Plan", limit: int | None) -> "Iterator[str]":
    """Yield which pods are evicted without the change, too, and because of what."""
    evictions = [eviction for eviction in plan.evictions if eviction.without_change]
    created = {change.object for change in plan.changes if change.verb == "created"}
    for eviction in evictions[:limit]:
        origins = {reason.origin for reason in eviction.reasons} - created
        cause = f", because of {', '.join(sorted(origins))}" if origins else ""
        pod = f"{eviction.namespace}/{eviction.name}"
        yield f"pod {pod} will be evicted without the change, too{cause}"
    left = 0 if limit is None else len(evictions) - limit
    if left > 0:
        yield f"and {number_of(left, 'more pod')}; -o wide shows all"
