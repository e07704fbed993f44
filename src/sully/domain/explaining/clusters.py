"""Why a managed cluster is or is not used: its health, its taints, what placements make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sully.api.cluster.types import ManagedCluster
from sully.domain.clusters.health import ACCEPTED, AVAILABLE, CLOCK_SYNCED, condition, is_health
from sully.domain.clusters.hub import TROUBLED
from sully.domain.explaining.clustermarks import ClusterMarks
from sully.domain.explaining.story import Explanation, Table, tables
from sully.domain.explaining.wording import are, ended, listed, mark, moment, number, since
from sully.domain.placement.verdicts import ClusterVerdict, sentence
from sully.machinery.meta import Condition
from sully.machinery.timestamps import format_time

_MOST: Final = 3


@dataclass(frozen=True, slots=True)
class Seen:
    """A cluster as one placement sees it."""

    placement: str
    verdict: ClusterVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What is known of a cluster."""

    cluster: ManagedCluster
    now: datetime
    marks: ClusterMarks
    sets: tuple[str, ...] = ()
    seen: Sequence[Seen] = ()
    """Every placement that could know it, in order."""
    help: Callable[[Seen], Iterable[str]] = lambda _: ()
    """Says what would give a placement the cluster."""


def explain_cluster(facts: ClusterFacts) -> Explanation:
    """Say how a cluster is, and why placements use it or not."""
    return _apart(facts) or _unhealthy(facts) or _healthy(facts)


def _story(facts: ClusterFacts, state: str, cause: str, *summary: str, **more: Any) -> Explanation:
    return Explanation(
        kind="ManagedCluster",
        name=facts.cluster.metadata.name,
        state=state,
        cause=cause,
        summary=(*summary, *_taints(facts), *_placements(facts), *_clock(facts)),
        because=tuple(
            dict.fromkeys(
                facts.marks.origin(facts.cluster, each) for each in facts.cluster.spec.taints
            )
        ),
        details=tables(_taint_table(facts), _placement_table(facts), _conditions(facts)),
        **more,
    )


def _apart(facts: ClusterFacts) -> Explanation | None:
    """Tell of a cluster that no placement can have, whatever its health."""
    metadata = facts.cluster.metadata
    name = f"Cluster {metadata.name}"
    if metadata.deletion_timestamp is not None:
        at = since(metadata.deletion_timestamp, facts.now)
        return _story(facts, "Deleting", "Deleted", f"{name} is being deleted{at}.")
    if not facts.sets:
        text = f"{name} is in no ManagedClusterSet, so no placement can have it."
        help_ = "Label it with cluster.open-cluster-management.io/clusterset, or widen a set."
        return _story(facts, "Apart", "InNoSet", text, remedies=(help_,))
    return None


def _unhealthy(facts: ClusterFacts) -> Explanation | None:
    name = f"Cluster {facts.cluster.metadata.name}"
    accepted = condition(facts.cluster, ACCEPTED)
    available = condition(facts.cluster, AVAILABLE)
    if available is not None and available.status == "True":
        return None
    if accepted is None and not facts.cluster.spec.hub_accepts_client:
        text = f"{name} registered, but the hub has not accepted it."
        help_ = "Set spec.hubAcceptsClient to true."
        return _story(facts, "Unreachable", "NotAccepted", text, remedies=(help_,))
    if accepted is not None and accepted.status == "False":
        why = _said(accepted, facts.now)
        if accepted.reason == TROUBLED:
            text = f"{name} cannot be accepted by the hub{why}"
            return _story(facts, "Unreachable", "AcceptanceFails", text)
        return _story(facts, "Unreachable", "Denied", f"{name} was turned away by the hub{why}")
    if available is None:
        text = f"{name} never told that it is available: its agent has not joined."
        return _story(facts, "Unreachable", "NeverAvailable", text)
    why = _said(available, facts.now)
    if available.status == "False":
        return _story(facts, "Unavailable", available.reason, f"{name} is not available{why}")
    text = f"{name} is out of touch{why}"
    help_ = "It recovers when its agent writes its status again; a fresh lease alone is not enough."
    return _story(facts, "Unreachable", available.reason, text, remedies=(help_,))


def _said(told: Condition, now: datetime) -> str:
    """End a sentence with what a condition says, since when; messages may be empty."""
    return f"{since(told.last_transition_time, now)}: {ended(told.message or told.reason)}"


def _healthy(facts: ClusterFacts) -> Explanation:
    found = condition(facts.cluster, AVAILABLE)
    at = since(found.last_transition_time, facts.now) if found is not None else ""
    sets = f"set{'s' * (len(facts.sets) > 1)} {listed(facts.sets)}"
    text = f"Cluster {facts.cluster.metadata.name} is available{at}, in {sets}"
    out = [each for each in facts.seen if each.verdict.stage == "TaintToleration"]
    if out:
        text = f"{text}, but {_blocker(facts, out)} keeps it out of {_placements_of(out)}."
        return _story(facts, "Tainted", "KeptOutByTaint", text, remedies=_help(facts, out))
    cause = "NothingAgainst" if not facts.cluster.spec.taints else "TaintsTolerated"
    state = "Available" if not facts.cluster.spec.taints else "Tainted"
    if not facts.seen:
        cause = "NoPlacement"
        text += ", but no placement may use that set"
    elif not any(each.verdict.stage == "Selected" for each in facts.seen):
        cause = "NotChosen"
        text += f", but not chosen by {_placements_of(facts.seen)}"
    help_ = _help(facts, facts.seen) if cause == "NotChosen" else ()
    return _story(facts, state, cause, f"{text}.", *_why_not(facts), remedies=help_)


def _help(facts: ClusterFacts, seen: Sequence[Seen]) -> tuple[str, ...]:
    """Say for each of the first placements what would give it the cluster."""
    return tuple(
        f"For placement {each.placement}: {text[:1].lower()}{text[1:]}"
        for each in seen[:_MOST]
        for text in facts.help(each)
    )


def _blocker(facts: ClusterFacts, out: Sequence[Seen]) -> str:
    """Name the taint that keeps a cluster out of the most placements, and who set it."""
    taints = [each.verdict.blocked_by.taint for each in out if each.verdict.blocked_by is not None]
    if not taints:
        return "a taint"
    common = Counter(map(mark, taints)).most_common(1)[0][0]
    taint = next(each for each in taints if mark(each) == common)
    who = facts.marks.who(facts.cluster, taint)
    return f"taint {common}, set by {who}," if who else f"taint {common}"


def _placements_of(seen: Sequence[Seen]) -> str:
    names = listed([each.placement for each in seen], 3)
    return f"placement {names}" if len(seen) == 1 else f"placements {names}"


def _why_not(facts: ClusterFacts) -> Iterator[str]:
    for each in facts.seen[:_MOST]:
        if each.verdict.stage not in ("Selected", "TaintToleration"):
            yield f"{each.placement}: {sentence(each.verdict)}."


def _taints(facts: ClusterFacts) -> Iterator[str]:
    for each in facts.cluster.spec.taints:
        yield f"It carries {facts.marks.told(facts.cluster, each)}."
        why = facts.marks.why(facts.cluster, each)
        if why and not is_health(each):
            # What the hub's own taints are about was told at the beginning.
            yield f"Its {why}"


def _placements(facts: ClusterFacts) -> Iterator[str]:
    has = [each for each in facts.seen if each.verdict.stage == "Selected"]
    out = [each for each in facts.seen if each.verdict.stage == "TaintToleration"]
    if has:
        names = listed([each.placement for each in has])
        yield f"{number(len(has), 'placement')} {'has' if len(has) == 1 else 'have'} it: {names}."
    if out:
        names = listed([each.placement for each in out])
        leaving = sum(each.verdict.decided for each in out)
        more = f", {leaving} of them had it" if leaving else ""
        yield f"{number(len(out), 'placement')} {are(len(out))} kept off by a taint{more}: {names}."
    yield from _soon(facts, has)


def _soon(facts: ClusterFacts, has: Sequence[Seen]) -> Iterator[str]:
    ends = [
        (one.until, each.placement)
        for each in has
        for one in each.verdict.taints
        if one.tolerated and one.until is not None
    ]
    if ends:
        at, first = min(ends)
        yield f"It leaves {first} at {moment(at, facts.now)}, when the toleration ends."


def _clock(facts: ClusterFacts) -> Iterator[str]:
    found = condition(facts.cluster, CLOCK_SYNCED)
    if found is not None and found.status == "False":
        yield f"Its clock is off{since(found.last_transition_time, facts.now)}: its agent is mute."


def _taint_table(facts: ClusterFacts) -> Table:
    rows = tuple(
        (
            mark(each),
            format_time(each.time_added) if each.time_added is not None else "",
            facts.marks.author(facts.cluster, each),
        )
        for each in facts.cluster.spec.taints
    )
    return Table("Taints", ("taint", "added", "by"), rows)


def _placement_table(facts: ClusterFacts) -> Table:
    rows = tuple(
        (each.placement, each.verdict.stage, sentence(each.verdict)) for each in facts.seen
    )
    return Table("Placements", ("placement", "stage", "why"), rows)


def _conditions(facts: ClusterFacts) -> Table:
    rows = tuple(
        (each.type, each.status, each.reason, each.message)
        for each in facts.cluster.status.conditions
    )
    return Table("Conditions", ("type", "status", "reason", "message"), rows)
