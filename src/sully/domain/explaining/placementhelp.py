"""What would give a placement its clusters, or a cluster to a placement: found by trying.

A trial decides once more with something of the placement changed; clusters that a taint keeps out
are the same to it whether the taint is tolerated or lifted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from sully.api.cluster.types import NO_SELECT_IF_NEW, PREFER_NO_SELECT, Taint
from sully.domain.clusters.health import is_health
from sully.domain.explaining.nearest import fewest
from sully.domain.explaining.placementfacts import Altered, PlacementFacts, Retry
from sully.domain.explaining.wording import joined, listed, mark, number
from sully.domain.placement.predicates import Part
from sully.domain.placement.verdicts import ClusterVerdict

_MATCHING: Final[dict[Part, str]] = {
    "labels": "label {0} so that {1}",
    "claims": "have {0} report such claims",
    "expression": "see that {0} {2} what the expression asks for",
}
"""What makes clusters match a part of a predicate."""


def for_placement(facts: PlacementFacts) -> Iterator[str]:
    """Say what would give a placement as many clusters as it wants, or else more than it has."""
    if facts.retry is None:
        return
    retry, want = facts.retry, facts.placement.spec.number_of_clusters or 1
    parts = {one.part for each in facts.verdicts for one in each.mismatches}
    ways = [Altered(), Altered(tolerate=tuple(_taints(facts.verdicts)))]
    if parts:
        ways.append(Altered(widen=True))
        ways.append(replace(ways[2], tolerate=tuple(_taints(retry(ways[2]).all()))))
    counts = [_selected(retry, each) for each in ways]
    most = max(counts)
    first = next(at for at, count in enumerate(counts) if count >= min(want, most))
    if first:
        yield _whole(retry, ways[first], min(want, most), parts)
    if most < want:
        at_most = f"Ask for at most {number(most, 'cluster')}" if most else "Ask for others"
        yield f"{at_most}, or add some to the sets."


def _whole(retry: Retry, way: Altered, goal: int, parts: set[Part]) -> str:
    """Say how little of a way is enough, and what comes of it."""

    def enough(kept: Sequence[Taint]) -> bool:
        return _selected(retry, replace(way, tolerate=tuple(kept))) >= goal

    way = replace(way, tolerate=tuple(fewest(way.tolerate, enough)))
    steps = [_tolerate(way.tolerate)] if way.tolerate else []
    if way.widen:
        steps.append(f"widen the predicates, or {_matching(parts, 'clusters')}")
    got = number(_selected(retry, way), "cluster")
    return _sentence(steps, f"The placement would then get {got}")


def _selected(retry: Retry, altered: Altered) -> int:
    return len(retry(altered).trace.selected)


def _taints(verdicts: Sequence[ClusterVerdict]) -> list[Taint]:
    """Return the taints that keep clusters out, the one on the most clusters first."""
    found: dict[str, Taint] = {}
    count: Counter[str] = Counter()
    for each in verdicts:
        for taint in _against(each) if each.stage == "TaintToleration" else ():
            found.setdefault(mark(taint), taint)
            count[mark(taint)] += 1
    return sorted(found.values(), key=lambda each: (-count[mark(each)], mark(each)))


def _against(verdict: ClusterVerdict) -> Iterator[Taint]:
    """Yield the taints for which a placement does not get, or loses, a cluster."""
    harmless = (PREFER_NO_SELECT, NO_SELECT_IF_NEW) if verdict.decided else (PREFER_NO_SELECT,)
    for each in verdict.taints:
        if not each.tolerated and each.taint.effect not in harmless:
            yield each.taint


def _tolerate(taints: Sequence[Taint]) -> str:
    them = "it" if len(taints) == 1 else "them"
    text = f"tolerate {joined(list(map(mark, taints)))}, or have {them} lifted"
    if all(map(is_health, taints)):
        return f"{text}, which the hub does when a cluster is well again"
    return text


def _matching(parts: set[Part], who: str, *, one: bool = False) -> str:
    part = min(parts, key=list(_MATCHING).index)
    match, has = ("it matches", "has") if one else ("they match", "have")
    return _MATCHING[part].format(who, match, has)


def _sentence(steps: Sequence[str], then: str) -> str:
    text = ". Also ".join(steps)
    return f"{text[:1].upper()}{text[1:]}. {then}."


# -- one cluster ----------------------------------------------------------------------------------


def for_cluster(facts: PlacementFacts) -> Iterator[str]:
    """Say what would give the placement the cluster that somebody asks about."""
    for verdict in facts.verdicts:
        if verdict.cluster == facts.about and facts.retry is not None:
            yield from to_have(verdict, facts.retry, facts.eligible)


def to_have(verdict: ClusterVerdict, retry: Retry, sets: Sequence[str]) -> Iterator[str]:
    """Say what would give a placement a cluster; it may use these sets."""
    if verdict.stage == "Sets" and sets:
        yield f"Put cluster {verdict.cluster} into set {listed(sets)}."
    elif verdict.stage in ("Predicate", "TaintToleration", "Rank"):
        yield from _one(retry, verdict)


def _one(retry: Retry, verdict: ClusterVerdict) -> Iterator[str]:
    name, parts = verdict.cluster, {one.part for one in verdict.mismatches}
    steps = []
    way = Altered(match=name if parts else "")
    if taints := tuple(_against(retry(way).of(name))):
        way = replace(way, tolerate=taints)
        steps.append(_tolerate(taints))
    if parts:
        steps.append(f"widen the predicates, or {_matching(parts, f'cluster {name}', one=True)}")
    then = retry(way).of(name)
    if then.stage == "Rank" and then.rank is not None:
        steps.append(f"ask for {number(then.rank, 'cluster')}")
        then = retry(replace(way, number=then.rank)).of(name)
    if then.stage == "Selected":
        yield _sentence(steps, f"Cluster {name} would then be selected")
