"""What keeps clusters out of a placement, in sentences: who set which taint, what does not match.

What keeps most clusters out comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from sully.api.cluster.types import PREFER_NO_SELECT
from sully.domain.explaining.placementfacts import PlacementFacts
from sully.domain.explaining.wording import are, listed, mark, moment, number
from sully.domain.placement.predicates import Mismatch
from sully.domain.placement.verdicts import ClusterVerdict, sentence

_MOST_NAMED: Final = 3
_CAUSES: Final = {"Predicate": "PredicatesRefuse", "TaintToleration": "ClustersTainted"}


def worst(facts: PlacementFacts) -> str:
    """Return in a word what keeps clusters out."""
    found = Counter(each.stage for each in facts.verdicts if each.stage in _CAUSES)
    if not found:
        return "NotEnoughClusters"
    # A cluster that only a taint keeps out is nearer than one that is of the wrong kind.
    stage = "TaintToleration" if found["TaintToleration"] else "Predicate"
    return _CAUSES[stage]


def lead(facts: PlacementFacts, cause: str) -> str:
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


def refusals(facts: PlacementFacts) -> Iterator[str]:
    """Tell of clusters that are not chosen, by reason."""
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


def origins(facts: PlacementFacts) -> Iterator[str]:
    """Yield the objects behind the taints that keep clusters out."""
    seen: dict[str, None] = {}
    for each in facts.verdicts:
        cluster = facts.clusters.get(each.cluster)
        if each.stage == "TaintToleration" and each.blocked_by is not None and cluster is not None:
            seen[facts.marks.origin(cluster, each.blocked_by.taint)] = None
    yield from seen


def ends(facts: PlacementFacts) -> Iterator[str]:
    """Tell of clusters that leave by themselves when a toleration ends."""
    for each in facts.verdicts:
        ends = [one.until for one in each.taints if one.tolerated and one.until is not None]
        if each.stage == "Selected" and ends:
            yield f"{each.cluster} is tolerated until {moment(min(ends), facts.now)}."
