"""Why a placement has the clusters it has, and not the others.

The verdicts are those of `domain/placement/verdicts.py`; here they are put in an order for people:
what keeps the whole placement from working first, then what keeps most clusters out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sully.api.cluster.placement_types import Placement
from sully.api.cluster.types import PREFER_NO_SELECT, ManagedCluster
from sully.domain.explaining.clustermarks import ClusterMarks
from sully.domain.explaining.story import Explanation, Table, tables
from sully.domain.explaining.wording import are, ended, listed, mark, moment, number, since
from sully.domain.placement.conditions import LEAVES_HELD, SATISFIED
from sully.domain.placement.outcome import DISABLED, Outcome
from sully.domain.placement.predicates import Mismatch
from sully.domain.placement.verdicts import Breakdown, ClusterVerdict, sentence
from sully.machinery.meta import Condition

_MOST_NAMED: Final = 3
_MATCHING: Final = {
    "labels": "label clusters so that they match",
    "claims": "have clusters report such claims",
    "expression": "see that the clusters have what the expression asks for",
}
"""What makes clusters match a part of a predicate."""
_CAUSES: Final = {"Predicate": "PredicatesRefuse", "TaintToleration": "ClustersTainted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementFacts:
    """What is known of a placement."""

    placement: Placement
    now: datetime
    marks: ClusterMarks
    broken: str = ""
    """A set that it may use and that nobody can read."""
    bound: tuple[str, ...] = ()
    """Sets that are bound to its namespace."""
    eligible: tuple[str, ...] = ()
    """Of those, the ones that it may use."""
    outcome: Outcome | None = None
    breakdown: Breakdown | None = None
    verdicts: Sequence[ClusterVerdict] = ()
    decided: tuple[str, ...] = ()
    """Clusters that its decisions name now."""
    clusters: Mapping[str, ManagedCluster] = field(default_factory=dict)
    about: str = ""
    """The one cluster that somebody asks about."""


def explain_placement(facts: PlacementFacts) -> Explanation:
    """Say why a placement has what it has."""
    return _left_alone(facts) or _nothing_to_use(facts) or _misconfigured(facts) or _chosen(facts)


def _story(
    facts: PlacementFacts, state: str, cause: str, *summary: str, **more: Any
) -> Explanation:
    metadata = facts.placement.metadata
    return Explanation(
        kind="Placement",
        namespace=metadata.namespace,
        name=metadata.name,
        state=state,
        cause=cause,
        summary=(*summary, *_asked_about(facts), *_stale(facts)),
        details=tables(_verdicts(facts), _scores(facts)),
        **more,
    )


def _name(facts: PlacementFacts) -> str:
    metadata = facts.placement.metadata
    return f"Placement {metadata.namespace}/{metadata.name}"


def _left_alone(facts: PlacementFacts) -> Explanation | None:
    metadata = facts.placement.metadata
    has = f"keeps {number(len(facts.decided), 'cluster')}"
    if metadata.deletion_timestamp is not None:
        at = since(metadata.deletion_timestamp, facts.now)
        return _story(facts, "Deleting", "Deleted", f"{_name(facts)} is being deleted{at}.")
    if metadata.annotations.get(DISABLED) == "true":
        text = f"{_name(facts)} {has}: the annotation {DISABLED} says to leave it alone."
        help_ = "Remove the annotation."
        return _story(facts, "Disabled", "SchedulingDisabled", text, remedies=(help_,))
    if facts.broken:
        text = f"{_name(facts)} {has}: nothing is decided while a set is broken."
        help_ = "Correct the selector of the set."
        return _story(facts, "Blocked", "SetBroken", text, ended(facts.broken), remedies=(help_,))
    return None


def _nothing_to_use(facts: PlacementFacts) -> Explanation | None:
    namespace = facts.placement.metadata.namespace
    wanted = facts.placement.spec.cluster_sets
    gets = f"{_name(facts)} gets no cluster{_when(facts)}"
    if not facts.bound:
        text = f"{gets}: no ManagedClusterSet that exists is bound to namespace {namespace}."
        help_ = f"Create a ManagedClusterSetBinding in {namespace}, named after the set."
        return _story(facts, "Empty", "NoManagedClusterSetBindings", text, remedies=(help_,))
    if not facts.eligible:
        text = (
            f"{gets}: it asks for set {listed(wanted)}, and only {listed(facts.bound)}"
            f" {are(len(facts.bound))} bound to namespace {namespace}."
        )
        help_ = f"Bind the set to {namespace}, or name one that is bound in spec.clusterSets."
        return _story(facts, "Empty", "NoIntersection", text, remedies=(help_,))
    if facts.breakdown is not None and not facts.breakdown.considered:
        sets = tuple(f"ManagedClusterSet/{each}" for each in facts.eligible)
        text = f"{gets}: set {listed(facts.eligible)} has no cluster that stays."
        return _story(facts, "Empty", "AllManagedClusterSetsEmpty", text, because=sets)
    return None


def _when(facts: PlacementFacts) -> str:
    told = _condition(facts, SATISFIED)
    return since(told.last_transition_time, facts.now) if told is not None else ""


def _condition(facts: PlacementFacts, kind: str) -> Condition | None:
    conditions = facts.placement.status.conditions
    return next((each for each in conditions if each.type == kind), None)


def _misconfigured(facts: PlacementFacts) -> Explanation | None:
    outcome = facts.outcome
    if outcome is None or outcome.status.code != "Misconfigured":
        return None
    status = outcome.status
    what = f" ({status.plugin})" if status.plugin else ""
    has = number(outcome.selected, "cluster")
    text = f"{_name(facts)} cannot be evaluated{what}: {ended(status.message)}"
    keeps = f"It has {has} meanwhile." if outcome.selected else "It gets no cluster."
    help_ = "Correct what the message names."
    return _story(facts, "Misconfigured", "Misconfigured", text, keeps, remedies=(help_,))


def _chosen(facts: PlacementFacts) -> Explanation:
    outcome, breakdown = facts.outcome, facts.breakdown
    if outcome is None or breakdown is None:
        return _story(facts, "Unknown", "NotDecided", f"{_name(facts)} was not decided yet.")
    want = facts.placement.spec.number_of_clusters
    if want is not None and want <= 0:
        text = f"{_name(facts)} gets no cluster: its numberOfClusters is {want}, not above 0."
        help_ = "Raise numberOfClusters, or leave it out for all clusters that fit."
        return _story(facts, "Empty", "NoneWanted", text, remedies=(help_,))
    wants = "all clusters that fit" if want is None else number(want, "cluster")
    lead = (
        f"{_name(facts)} wants {wants} and gets {outcome.selected} of the"
        f" {breakdown.considered} in its sets{_when(facts)}"
    )
    reasons = (*_refusals(facts), *_warning(outcome))
    if (held := _condition(facts, LEAVES_HELD)) is not None and held.status == "True":
        return _held(facts, wants, held, reasons)
    if outcome.unscheduled or not outcome.selected:
        cause = _worst(facts)
        return _story(
            facts,
            "Short" if outcome.selected else "Empty",
            cause,
            f"{lead}: {_lead(facts, cause)}.",
            *reasons,
            because=tuple(_origins(facts)),
            remedies=tuple(_remedies(facts)),
        )
    cause = "AllDecisionsScheduled"
    return _story(facts, "Satisfied", cause, f"{lead}.", *_ends(facts), *reasons)


def _held(
    facts: PlacementFacts, wants: str, told: Condition, reasons: Sequence[str]
) -> Explanation:
    """Tell of clusters that stay only because not all may leave at once."""
    text = (
        f"{_name(facts)} wants {wants} and keeps {number(len(facts.decided), 'cluster')}, some of"
        f" which would leave were it not for the hub's budget of departures"
        f"{since(told.last_transition_time, facts.now)}."
    )
    return _story(
        facts,
        "Satisfied",
        "HeldByBudget",
        text,
        ended(told.message),
        *reasons,
        because=tuple(_origins(facts)),
        remedies=("They stay if they recover before it is their turn.",),
    )


def _lead(facts: PlacementFacts, cause: str) -> str:
    """End the first sentence: what keeps most clusters out, and who set it."""
    if cause == "ClustersTainted":
        kept = Counter(
            mark(each.blocked_by.taint)
            for each in facts.verdicts
            if each.stage == "TaintToleration" and each.blocked_by is not None
        )
        text, count = kept.most_common(1)[0]
        return f"taint {text}{_set_by(facts, text)} keeps {number(count, 'cluster')} out"
    if cause == "PredicatesRefuse":
        count = sum(each.stage == "Predicate" for each in facts.verdicts)
        return f"its predicates do not match {number(count, 'cluster')}"
    return "there are no more"


def _set_by(facts: PlacementFacts, text: str) -> str:
    for each in facts.verdicts:
        cluster = facts.clusters.get(each.cluster)
        blocked = each.blocked_by
        if cluster is not None and blocked is not None and mark(blocked.taint) == text:
            who = facts.marks.who(cluster, blocked.taint)
            return f", set by {who}," if who else ""
    return ""


def _warning(outcome: Outcome) -> Iterator[str]:
    """Tell of scores that have run out: clusters are ranked without them."""
    if outcome.status.code == "Warning":
        yield ended(outcome.status.message)


def _worst(facts: PlacementFacts) -> str:
    found = Counter(each.stage for each in facts.verdicts if each.stage in _CAUSES)
    if not found:
        return "NotEnoughClusters"
    # A cluster that only a taint keeps out is nearer than one that is of the wrong kind.
    stage = "TaintToleration" if found["TaintToleration"] else "Predicate"
    return _CAUSES[stage]


def _refusals(facts: PlacementFacts) -> Iterator[str]:
    by_taint: dict[str, list[ClusterVerdict]] = {}
    by_part: dict[str, list[str]] = {}
    ranked: list[str] = []
    disliked: list[str] = []
    for each in facts.verdicts:
        if each.stage == "TaintToleration" and each.blocked_by is not None:
            by_taint.setdefault(mark(each.blocked_by.taint), []).append(each)
        elif each.stage == "Predicate":
            part = listed(list(map(_mismatch, each.mismatches)), 2)
            by_part.setdefault(part, []).append(each.cluster)
        elif each.stage == "Rank":
            (disliked if _is_disliked(each) else ranked).append(each.cluster)
    for verdicts in by_taint.values():
        yield from _by_taint(facts, verdicts)
    for part, names in by_part.items():
        yield f"{_clusters(names)} not matched: {part}."
    if ranked:
        yield f"{_clusters(ranked)} left out because others score higher."
    if disliked:
        yield f"{_clusters(disliked)} left out because a PreferNoSelect taint advises against it."


def _is_disliked(verdict: ClusterVerdict) -> bool:
    return any(
        each.taint.effect == PREFER_NO_SELECT and not each.tolerated for each in verdict.taints
    )


def _mismatch(found: Mismatch) -> str:
    fails = f", which fails: {found.error}" if found.error else ""
    return f"{found.part} {found.text}{fails}"


def _by_taint(facts: PlacementFacts, verdicts: Sequence[ClusterVerdict]) -> Iterator[str]:
    first = verdicts[0]
    names = [each.cluster for each in verdicts]
    cluster = facts.clusters.get(first.cluster)
    if first.blocked_by is None or cluster is None:
        return
    yield f"{_clusters(names)} kept out: {sentence(first)}."
    taint = first.blocked_by.taint
    yield f"On {first.cluster}: {facts.marks.told(cluster, taint)}."
    if why := facts.marks.why(cluster, taint):
        yield f"On {first.cluster}: {why}"


def _clusters(names: Sequence[str]) -> str:
    count = len(names)
    return f"{number(count, 'cluster')} ({listed(names, _MOST_NAMED)}) {are(count)}"


def _origins(facts: PlacementFacts) -> Iterator[str]:
    seen: dict[str, None] = {}
    for each in facts.verdicts:
        cluster = facts.clusters.get(each.cluster)
        if each.stage == "TaintToleration" and each.blocked_by is not None and cluster is not None:
            seen[facts.marks.origin(cluster, each.blocked_by.taint)] = None
    yield from seen


def _remedies(facts: PlacementFacts) -> Iterator[str]:
    kept = Counter(
        mark(each.blocked_by.taint)
        for each in facts.verdicts
        if each.stage == "TaintToleration" and each.blocked_by is not None
    )
    for text, count in kept.most_common(2):
        yield f"Tolerate {text}, which keeps {number(count, 'cluster')} out, or have it lifted."
    parts = {one.part for each in facts.verdicts for one in each.mismatches}
    if not kept and parts:
        yield f"Widen the predicates, or {_MATCHING[min(parts, key=list(_MATCHING).index)]}."
    if not kept and not parts:
        yield "Ask for fewer clusters, or add some to the sets."


def _ends(facts: PlacementFacts) -> Iterator[str]:
    """Tell of clusters that leave by themselves when a toleration ends."""
    for each in facts.verdicts:
        ends = [one.until for one in each.taints if one.tolerated and one.until is not None]
        if each.stage == "Selected" and ends:
            yield f"{each.cluster} is tolerated until {moment(min(ends), facts.now)}."


def _asked_about(facts: PlacementFacts) -> Iterator[str]:
    for each in facts.verdicts:
        if each.cluster == facts.about:
            yield f"Cluster {each.cluster}: {sentence(each)}."


def _stale(facts: PlacementFacts) -> Iterator[str]:
    if facts.outcome is not None and set(facts.decided) != set(facts.outcome.clusters):
        has = listed(facts.decided) or "none"
        yield f"Its decisions do not say so yet; they name {has}."


def _verdicts(facts: PlacementFacts) -> Table:
    rows = tuple((each.cluster, each.stage, sentence(each)) for each in facts.verdicts)
    return Table("Clusters", ("cluster", "stage", "why"), rows)


def _scores(facts: PlacementFacts) -> Table:
    rows = tuple(
        (each.cluster, one.prioritizer, str(one.weight), str(one.score or 0))
        for each in facts.verdicts
        for one in each.scores
    )
    return Table("Scores", ("cluster", "prioritizer", "weight", "score"), rows)
