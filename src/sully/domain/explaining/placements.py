"""Why a placement has the clusters it has, and not the others.

The verdicts are those of `domain/placement/verdicts.py`; here they are put in an order for people:
what keeps the whole placement from working first, then what keeps most clusters out
(placementreasons.py), and what would help (placementhelp.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sully.domain.explaining.placementfacts import (
    PlacementFacts,
    condition_of,
    name_of,
    story,
    when,
)
from sully.domain.explaining.placementhelp import for_cluster, for_placement
from sully.domain.explaining.placementreasons import ends, lead, origins, refusals, worst
from sully.domain.explaining.story import Explanation
from sully.domain.explaining.wording import are, ended, listed, number, since
from sully.domain.placement.conditions import LEAVES_HELD
from sully.domain.placement.outcome import DISABLED, Outcome
from sully.machinery.meta import Condition


def explain_placement(facts: PlacementFacts) -> Explanation:
    """Say why a placement has what it has."""
    return _left_alone(facts) or _nothing_to_use(facts) or _misconfigured(facts) or _chosen(facts)


def _left_alone(facts: PlacementFacts) -> Explanation | None:
    metadata = facts.placement.metadata
    has = f"keeps {number(len(facts.decided), 'cluster')}"
    if metadata.deletion_timestamp is not None:
        at = since(metadata.deletion_timestamp, facts.now)
        return story(facts, "Deleting", "Deleted", f"{name_of(facts)} is being deleted{at}.")
    if metadata.annotations.get(DISABLED) == "true":
        text = f"{name_of(facts)} {has}: the annotation {DISABLED} says to leave it alone."
        help_ = "Remove the annotation."
        return story(facts, "Disabled", "SchedulingDisabled", text, remedies=(help_,))
    if facts.broken:
        text = f"{name_of(facts)} {has}: nothing is decided while a set is broken."
        help_ = "Correct the selector of the set."
        return story(facts, "Blocked", "SetBroken", text, ended(facts.broken), remedies=(help_,))
    return None


def _nothing_to_use(facts: PlacementFacts) -> Explanation | None:
    namespace = facts.placement.metadata.namespace
    wanted = facts.placement.spec.cluster_sets
    gets = f"{name_of(facts)} gets no cluster{when(facts)}"
    if not facts.bound:
        text = f"{gets}: no ManagedClusterSet that exists is bound to namespace {namespace}."
        help_ = f"Create a ManagedClusterSetBinding in {namespace}, named after the set."
        return story(facts, "Empty", "NoManagedClusterSetBindings", text, remedies=(help_,))
    if not facts.eligible:
        text = (
            f"{gets}: it asks for set {listed(wanted)}, and only {listed(facts.bound)}"
            f" {are(len(facts.bound))} bound to namespace {namespace}."
        )
        help_ = f"Bind the set to {namespace}, or name one that is bound in spec.clusterSets."
        return story(facts, "Empty", "NoIntersection", text, remedies=(help_,))
    if facts.breakdown is not None and not facts.breakdown.considered:
        sets = tuple(f"ManagedClusterSet/{each}" for each in facts.eligible)
        text = f"{gets}: set {listed(facts.eligible)} has no cluster that stays."
        return story(facts, "Empty", "AllManagedClusterSetsEmpty", text, because=sets)
    return None


def _misconfigured(facts: PlacementFacts) -> Explanation | None:
    outcome = facts.outcome
    if outcome is None or outcome.status.code != "Misconfigured":
        return None
    status = outcome.status
    what = f" ({status.plugin})" if status.plugin else ""
    has = number(outcome.selected, "cluster")
    text = f"{name_of(facts)} cannot be evaluated{what}: {ended(status.message)}"
    keeps = f"It has {has} meanwhile." if outcome.selected else "It gets no cluster."
    help_ = "Correct what the message names."
    return story(facts, "Misconfigured", "Misconfigured", text, keeps, remedies=(help_,))


def _chosen(facts: PlacementFacts) -> Explanation:
    outcome, breakdown = facts.outcome, facts.breakdown
    if outcome is None or breakdown is None:
        return story(facts, "Unknown", "NotDecided", f"{name_of(facts)} was not decided yet.")
    want = facts.placement.spec.number_of_clusters
    if want is not None and want <= 0:
        text = f"{name_of(facts)} gets no cluster: its numberOfClusters is {want}, not above 0."
        help_ = "Raise numberOfClusters, or leave it out for all clusters that fit."
        return story(facts, "Empty", "NoneWanted", text, remedies=(help_,))
    wants = "all clusters that fit" if want is None else number(want, "cluster")
    gets = (
        f"{name_of(facts)} wants {wants} and gets {outcome.selected} of the"
        f" {breakdown.considered} in its sets{when(facts)}"
    )
    reasons = (*refusals(facts), *_warning(outcome))
    if (held := condition_of(facts, LEAVES_HELD)) is not None and held.status == "True":
        return _held(facts, wants, held, reasons)
    if outcome.unscheduled or not outcome.selected:
        cause = worst(facts)
        return story(
            facts,
            "Short" if outcome.selected else "Empty",
            cause,
            f"{gets}: {lead(facts, cause)}.",
            *reasons,
            because=tuple(origins(facts)),
            remedies=tuple(for_cluster(facts)) or tuple(for_placement(facts)),
        )
    cause = "AllDecisionsScheduled"
    wanted = tuple(for_cluster(facts))
    return story(facts, "Satisfied", cause, f"{gets}.", *ends(facts), *reasons, remedies=wanted)


def _held(
    facts: PlacementFacts, wants: str, told: Condition, reasons: Sequence[str]
) -> Explanation:
    """Tell of clusters that stay only because not all may leave at once."""
    text = (
        f"{name_of(facts)} wants {wants} and keeps {number(len(facts.decided), 'cluster')}, some of"
        f" which would leave were it not for the hub's budget of departures"
        f"{since(told.last_transition_time, facts.now)}."
    )
    return story(
        facts,
        "Satisfied",
        "HeldByBudget",
        text,
        ended(told.message),
        *reasons,
        because=tuple(origins(facts)),
        remedies=("They stay if they recover before it is their turn.",),
    )


def _warning(outcome: Outcome) -> Iterator[str]:
    """Tell of scores that have run out: clusters are ranked without them."""
    if outcome.status.code == "Warning":
        yield ended(outcome.status.message)
