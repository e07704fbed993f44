"""Clusters, sets, placements and decisions for tests, with what a case is not about filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from sully.api.cluster.types import (
    PLACEMENT_LABEL,
    AddOnPlacementScore,
    AddOnPlacementScoreItem,
    AddOnPlacementScoreStatus,
    AddOnScore,
    ClusterCelSelector,
    ClusterClaimSelector,
    ClusterDecision,
    ClusterPredicate,
    ClusterSelector,
    DecisionGroup,
    DecisionStrategy,
    GroupClusterSelector,
    GroupStrategy,
    LabelSelector,
    LabelSelectorRequirement,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    Placement,
    PlacementDecision,
    PlacementDecisionStatus,
    PlacementSpec,
    PrioritizerConfig,
    PrioritizerPolicy,
    ScoreCoordinate,
    Toleration,
)
from sully.domain.placement.candidates import Candidate
from sully.domain.placement.incremental.fleet import Fleet, PlacementKeys
from sully.domain.placement.incremental.membership import eligible_sets, membership
from sully.domain.placement.options import OCM, PlacementOptions
from sully.domain.placement.results.outcome import Reach
from sully.domain.placement.schedule import Inputs
from sully.machinery.meta import ObjectMeta
from sully.testing.builders import NAMESPACE
from sully.testing.clock import NOON


def later(seconds: float) -> datetime:
    """Return a time relative to noon."""
    return NOON + timedelta(seconds=seconds)


def equal(key: str = "k1", value: str = "v1", effect: str = "", seconds: int | None = None) -> Any:
    return Toleration(
        key=key, operator="Equal", value=value, effect=effect, toleration_seconds=seconds
    )


def exists(key: str = "k1", effect: str = "", seconds: int | None = None) -> Toleration:
    return Toleration(key=key, operator="Exists", effect=effect, toleration_seconds=seconds)


def labelled(**labels: str) -> LabelSelector:
    return LabelSelector(match_labels=labels)


def expression(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def predicate(
    *expressions: str,
    labels: LabelSelector | None = None,
    claims: Iterable[LabelSelectorRequirement] = (),
) -> ClusterPredicate:
    """Return a predicate of CEL expressions, labels and claims."""
    return ClusterPredicate(
        required_cluster_selector=ClusterSelector(
            label_selector=labels or LabelSelector(),
            claim_selector=ClusterClaimSelector(match_expressions=tuple(claims)),
            cel_selector=ClusterCelSelector(cel_expressions=expressions),
        )
    )


def scored(name: str, weight: int = 1, **more: Any) -> PrioritizerConfig:
    """Return an entry for a built-in, or for an add-on as `resource/score`."""
    resource, slash, score = name.partition("/")
    if slash:
        add_on = AddOnScore(resource_name=resource, score_name=score)
        coordinate = ScoreCoordinate(type="AddOn", add_on=add_on)
    else:
        coordinate = ScoreCoordinate(type="BuiltIn", built_in=name, **more)
    return PrioritizerConfig(score_coordinate=coordinate, weight=weight)


def policy(*configurations: PrioritizerConfig, mode: str = "Additive") -> PrioritizerPolicy:
    return PrioritizerPolicy(mode=mode, configurations=configurations)


def group(
    name: str,
    labels: LabelSelector | None = None,
    claims: Iterable[LabelSelectorRequirement] = (),
) -> DecisionGroup:
    return DecisionGroup(
        group_name=name,
        group_cluster_selector=GroupClusterSelector(
            label_selector=labels or LabelSelector(),
            claim_selector=ClusterClaimSelector(match_expressions=tuple(claims)),
        ),
    )


def groups(*named: DecisionGroup, size: int | str = "100%") -> DecisionStrategy:
    return DecisionStrategy(
        group_strategy=GroupStrategy(decision_groups=named, clusters_per_decision_group=size)
    )


def placement(
    name: str = "p",
    *tolerations: Toleration,
    want: int | None = None,
    namespace: str = NAMESPACE,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Placement:
    return Placement(
        metadata=ObjectMeta(
            namespace=namespace,
            name=name,
            uid=f"uid-{namespace}-{name}",
            annotations={**(annotations or {})},
        ),
        spec=PlacementSpec(number_of_clusters=want, tolerations=tolerations, **spec),
    )


def decision(
    owner: str, *clusters: str, namespace: str = NAMESPACE, number: int = 1
) -> PlacementDecision:
    return PlacementDecision(
        metadata=ObjectMeta(
            namespace=namespace,
            name=f"{owner}-decision-{number}",
            uid=f"uid-{namespace}-{owner}-{number}",
            labels={PLACEMENT_LABEL: owner},
        ),
        status=PlacementDecisionStatus(
            decisions=tuple(ClusterDecision(cluster_name=name, reason="") for name in clusters)
        ),
    )


def score(
    of: str, name: str, *, valid_until: float | None = None, **values: int
) -> AddOnPlacementScore:
    """Return scores of a cluster, valid until so many seconds after noon."""
    return AddOnPlacementScore(
        metadata=ObjectMeta(namespace=of, name=name, uid=f"uid-{of}-{name}"),
        status=AddOnPlacementScoreStatus(
            scores=tuple(
                AddOnPlacementScoreItem(name=key, value=value) for key, value in values.items()
            ),
            valid_until=later(valid_until) if valid_until is not None else None,
        ),
    )


def inputs_of(
    objects: Iterable[Any],
    desired: Placement,
    *,
    at: float = 0,
    options: PlacementOptions = OCM,
    granted: Iterable[str] = (),
) -> Inputs:
    """Collect what a pass depends on from objects, plainly: what the fleet is compared with."""
    result = list(objects)
    scores: dict[str, dict[str, AddOnPlacementScore]] = {}
    for one in result:
        if isinstance(one, AddOnPlacementScore):
            scores.setdefault(one.metadata.namespace, {})[one.metadata.name] = one
    known = {
        one.metadata.name: Candidate(one, scores.get(one.metadata.name, {}))
        for one in result
        if isinstance(one, ManagedCluster)
    }
    rules = {
        one.metadata.name: membership(one) for one in result if isinstance(one, ManagedClusterSet)
    }
    namespace = desired.metadata.namespace
    bound = {
        one.metadata.name
        for one in result
        if isinstance(one, ManagedClusterSetBinding) and one.metadata.namespace == namespace
    } & rules.keys()
    sets = eligible_sets(bound, desired.spec.cluster_sets)
    candidates = [
        one
        for one in known.values()
        if not one.is_terminating and any(rules[name].has(one.labels) for name in sets)
    ]
    own: dict[str, int] = {}
    others: dict[str, int] = {}
    for one in result:
        if isinstance(one, PlacementDecision):
            mine = (one.metadata.namespace, one.metadata.labels.get(PLACEMENT_LABEL)) == (
                namespace,
                desired.metadata.name,
            )
            counts = own if mine else others
            for decision in one.status.decisions:
                counts[decision.cluster_name] = counts.get(decision.cluster_name, 0) + 1
    return Inputs(
        placement=desired,
        reach=Reach(len(bound), sets, len(candidates)),
        candidates=candidates,
        known=known,
        decided=own,
        counts=others,
        now=later(at),
        options=options,
        granted=frozenset(granted),
    )


def fleet_of(objects: Iterable[Any], options: PlacementOptions = OCM) -> Fleet:
    """Return a fleet of objects, as they came one after the other."""
    fleet = Fleet(options)
    for one in objects:
        put(fleet, one)
    return fleet


def put(fleet: Fleet, one: Any) -> PlacementKeys:
    """Take an object as it is now."""
    match one:
        case ManagedCluster():
            return fleet.put_cluster(one)
        case ManagedClusterSet():
            return fleet.put_set(one)
        case ManagedClusterSetBinding():
            return fleet.put_binding(one)
        case Placement():
            return fleet.put_placement(one)
        case PlacementDecision():
            return fleet.put_decision(one)
        case AddOnPlacementScore():
            return fleet.put_score(one)
    raise TypeError(type(one))


def remove(fleet: Fleet, one: Any) -> PlacementKeys:
    """Forget an object."""
    namespace, name = one.metadata.namespace, one.metadata.name
    match one:
        case ManagedCluster():
            return fleet.remove_cluster(name)
        case ManagedClusterSet():
            return fleet.remove_set(name)
        case ManagedClusterSetBinding():
            return fleet.remove_binding(namespace, name)
        case Placement():
            return fleet.remove_placement((namespace, name))
        case PlacementDecision():
            return fleet.remove_decision((namespace, name))
        case AddOnPlacementScore():
            return fleet.remove_score(namespace, name)
    raise TypeError(type(one))
