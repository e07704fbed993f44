"""What belongs to a question about a placement or a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from sully.api.cluster.types import (
    ClusterCelSelector,
    ClusterPredicate,
    ClusterSelector,
    Placement,
    Toleration,
)
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.explaining.clusters import ClusterFacts, Seen, explain_cluster
from sully.domain.explaining.placementfacts import Altered, PlacementFacts, Retry
from sully.domain.explaining.placementhelp import to_have
from sully.domain.explaining.placements import explain_placement
from sully.domain.explaining.story import Explanation
from sully.domain.placement.membership import BrokenSetError
from sully.domain.placement.outcome import is_disabled
from sully.explaining.hub import Hub
from sully.views.fleet_kinds import PLACEMENTS


def placement(hub: Hub, key: Key, about: str = "") -> Explanation | None:
    """Explain a placement, also what it makes of one cluster; None if nobody knows it."""
    found = hub.snapshot.get(PLACEMENTS, key)
    if found is None:
        return None
    fleet = hub.view.fleet
    decided = tuple(sorted(fleet.counting.own(key)))
    bound = tuple(sorted(fleet.registry.bound(key.namespace)))
    try:
        eligible = fleet.registry.eligible(key.namespace, found.spec.cluster_sets)
        given = hub.view.explain(found)
        outcome = hub.view.decide(key)
    except BrokenSetError as error:
        return explain_placement(
            PlacementFacts(
                placement=found, now=hub.now, marks=hub.marks, broken=str(error), decided=decided
            )
        )
    verdicts = given.all()
    if about and about not in {each.cluster for each in verdicts}:
        verdicts.append(given.of(about))
    return explain_placement(
        PlacementFacts(
            placement=found,
            now=hub.now,
            marks=hub.marks,
            bound=bound,
            eligible=eligible,
            outcome=outcome,
            breakdown=given.breakdown,
            verdicts=verdicts,
            decided=decided,
            clusters=hub.clusters,
            about=about,
            retry=_retry(hub, found),
        )
    )


def _altered(found: Placement, altered: Altered) -> Placement:
    """Return a placement with something changed."""
    spec = found.spec
    more = tuple(
        Toleration(key=each.key, operator="Equal", value=each.value, effect=each.effect)
        for each in altered.tolerate
    )
    predicates = () if altered.widen else spec.predicates
    if altered.match and predicates:
        predicates = (*predicates, _only(altered.match))
    number = spec.number_of_clusters if altered.number is None else altered.number
    spec = replace(
        spec,
        tolerations=(*spec.tolerations, *more),
        predicates=predicates,
        number_of_clusters=number,
    )
    return replace(found, spec=spec)


def _only(cluster: str) -> ClusterPredicate:
    """Return a predicate for one cluster."""
    cel = ClusterCelSelector(cel_expressions=(f"managedCluster.metadata.name == {cluster!r}",))
    selector = ClusterSelector(cel_selector=cel)
    return ClusterPredicate(required_cluster_selector=selector)


def cluster(hub: Hub, name: str) -> Explanation | None:
    """Explain a cluster; None if nobody knows it."""
    found = hub.clusters.get(name)
    if found is None:
        return None
    return explain_cluster(
        ClusterFacts(
            cluster=found,
            now=hub.now,
            marks=hub.marks,
            sets=tuple(sorted(hub.view.fleet.registry.sets_of(name))),
            seen=tuple(_seen(hub, name)),
            help=lambda seen: _help(hub, seen),
        )
    )


def _help(hub: Hub, seen: Seen) -> Iterator[str]:
    namespace, _, name = seen.placement.partition("/")
    found = hub.snapshot.get(PLACEMENTS, Key(namespace, name))
    if found is not None:
        sets = hub.view.fleet.registry.eligible(namespace, found.spec.cluster_sets)
        yield from to_have(seen.verdict, _retry(hub, found), sets)


def _retry(hub: Hub, found: Placement) -> Retry:
    return lambda altered: hub.view.explain(_altered(found, altered))


def _seen(hub: Hub, name: str) -> Iterator[Seen]:
    placements = hub.snapshot.of(PLACEMENTS)
    for each in sorted(placements.values(), key=key_of):
        if not is_disabled(each):
            yield from _by(hub, each, name)


def _by(hub: Hub, found: Placement, name: str) -> Iterator[Seen]:
    try:
        verdict = hub.view.explain(found).of(name)
    except BrokenSetError:
        return
    # A placement that may not use any of its sets has nothing to say about a cluster.
    if verdict.stage != "Sets" or verdict.decided:
        yield Seen(str(key_of(found)), verdict)
