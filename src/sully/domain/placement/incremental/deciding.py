"""What a placement of a fleet should have now, and the inputs of explanations.

`decide` reads the answer off the fleet's shapes; `inputs` collects everything for a pass from
nothing (schedule.py), which explanations and trials of other placements use. Both come to the same.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from itertools import islice

import msgspec
from msgspec.structs import replace

from sully.api.cluster.types import Placement
from sully.domain.placement.incremental.decision_counts import PlacementKey
from sully.domain.placement.incremental.fleet import Fleet, key_of
from sully.domain.placement.incremental.ranking import Rank
from sully.domain.placement.incremental.shapes import Shape, Standing
from sully.domain.placement.predicates import PLUGIN
from sully.domain.placement.results.outcome import (
    Outcome,
    Reach,
    Selection,
    conclude,
    is_disabled,
    is_unnameable,
    keep,
    unnameable,
)
from sully.domain.placement.results.status import Status
from sully.domain.placement.schedule import Inputs, schedule, trace
from sully.domain.placement.tolerations import tier
from sully.machinery.cel import CostBudget, CostBudgetExceededError

_LONGEST_EXPRESSION = 128
"""Characters of an expression that a condition repeats."""


def decide(
    fleet: Fleet, key: PlacementKey, now: datetime, budget: CostBudget | None = None
) -> Outcome | None:
    """Return what to write for a placement; None: nothing.

    Raises BrokenSetError while a set that it may use is unreadable, and UnfinishedError if the
    budget for evaluating expressions has slices. Where removals are limited, asking takes from
    that budget.
    """
    placement = fleet.placements.get(key)
    if placement is None or is_disabled(placement):
        return None
    if is_unnameable(placement):
        return unnameable() if fleet.options.compat.reports_long_names else None
    budget = budget or CostBudget()
    try:
        shape = fleet.shape(key, budget)
        shape.settle(fleet, now, budget)
        return _settled(fleet, placement, shape, now, budget)
    except CostBudgetExceededError as error:
        return _over_budget(fleet, placement, error)


def _settled(
    fleet: Fleet, placement: Placement, shape: Shape, now: datetime, budget: CostBudget
) -> Outcome:
    key, status = key_of(placement), shape.status()
    find = fleet.clusters.__getitem__
    if not status.stops:
        stayers = _stayers(fleet, shape, key, now)
        if stayers.ranks and shape.scores_clusters:
            # They change what the others' resources are compared with.
            return _from_nothing(fleet, placement, stayers, now, budget)
        selection = _select(fleet, shape, key, stayers, status)
    elif fleet.options.compat.keeps_clusters_on_error:
        here = partial(_is_available, fleet, shape.sets)
        selection = keep(placement, fleet.counts.own(key), here, status)
    else:
        selection = Selection(status=status)
    reach = Reach(len(fleet.registry.bound(key[0])), shape.sets, shape.available)
    return conclude(placement, selection, reach, find, fleet.options)


def _over_budget(fleet: Fleet, placement: Placement, error: CostBudgetExceededError) -> Outcome:
    """Keep what a placement has, also with OCM's own behavior: no cluster was ruled out."""
    expression = error.expression
    if len(expression) > _LONGEST_EXPRESSION:
        expression = f"{expression[:_LONGEST_EXPRESSION]}..."
    status = Status("Misconfigured", PLUGIN, f"{error}, at expression {expression}")
    key = key_of(placement)
    sets = fleet.registry.eligible(key[0], placement.spec.cluster_sets)
    here = partial(_is_available, fleet, sets)
    selection = keep(placement, fleet.counts.own(key), here, status)
    reach = Reach(len(fleet.registry.bound(key[0])), sets, len(fleet.all_available(sets)))
    find = fleet.clusters.__getitem__
    outcome = conclude(placement, selection, reach, find, fleet.options)
    return replace(outcome, back_off=True)


def _is_available(fleet: Fleet, sets: tuple[str, ...], name: str) -> bool:
    return fleet.available(name, sets) is not None


def totals(
    fleet: Fleet, key: PlacementKey, now: datetime, first: int | None = None
) -> dict[str, int]:
    """Return what feasible clusters score for a placement, in order of name: all, or the first."""
    shape = fleet.shape(key)
    shape.settle(fleet, now, CostBudget())
    if shape.status().stops:
        return {}
    stayers = _stayers(fleet, shape, key, now)
    if stayers.ranks and shape.scores_clusters:
        totals = trace(inputs(fleet, fleet.placements[key], now)).totals
        return dict(islice(sorted(totals.items()), first))
    standing = Standing(fleet.counts.own(key), stayers.ranks, fleet.counts.most(key))
    return shape.totals(standing, first)


def inputs(fleet: Fleet, placement: Placement, now: datetime) -> Inputs:
    """Collect what a pass over a placement depends on; it need not be one that exists."""
    key = key_of(placement)
    namespace = placement.metadata.namespace
    sets = fleet.registry.eligible(namespace, placement.spec.cluster_sets)
    candidates = fleet.registry.all_available(sets)
    return Inputs(
        placement=placement,
        reach=Reach(len(fleet.registry.bound(namespace)), sets, len(candidates)),
        candidates=candidates,
        known=fleet.clusters,
        decided=fleet.counts.own(key),
        counts=fleet.counts.others(key),
        now=now,
        options=fleet.options,
        granted=fleet.removals.granted,
    )


class _Stayers(msgspec.Struct):
    """Clusters that a placement keeps although it could not select them now."""

    ranks: dict[str, Rank] = msgspec.field(default_factory=dict)
    ends: dict[str, datetime] = msgspec.field(default_factory=dict)
    held: set[str] = msgspec.field(default_factory=set)
    next_at: datetime | None = None


def _stayers(fleet: Fleet, shape: Shape, key: PlacementKey, now: datetime) -> _Stayers:
    stayers = _Stayers()
    removable = []
    for name in shape.infeasible(fleet.counts.own(key)):
        verdict = shape.verdict(name, now)
        if verdict is None or (verdict.expels is not None and not verdict.unhealthy):
            continue
        if verdict.expels is not None:
            removable.append(name)
        stayers.ranks[name] = Rank(
            tier(verdict, fleet.options.compat, selected=True), fleet.counts.count(name), 0
        )
        if verdict.stays_until is not None:
            stayers.ends[name] = verdict.stays_until
    grant = fleet.removals.ask(removable, now)
    if grant is not None:
        stayers.held.update(grant.held)
        stayers.next_at = grant.next_at
    for name in removable:
        if name not in stayers.held:
            del stayers.ranks[name]
            stayers.ends.pop(name, None)
    return stayers


def _select(
    fleet: Fleet, shape: Shape, key: PlacementKey, stayers: _Stayers, status: Status
) -> Selection:
    want = fleet.placements[key].spec.number_of_clusters
    if want is None or want >= len(shape.names) + len(stayers.ranks):
        names = sorted((*shape.names, *stayers.ranks)) if stayers.ranks else shape.names
        unscheduled = want - len(names) if want is not None else 0
        end = shape.ends(names, everything=True)
    else:
        standing = Standing(fleet.counts.own(key), stayers.ranks, fleet.counts.most(key))
        names = sorted(shape.best(max(want, 0), standing))
        unscheduled = 0
        end = shape.ends(names, everything=False)
    chosen = frozenset(names) if stayers.ranks else frozenset()
    ends = [at for name, at in stayers.ends.items() if name in chosen]
    held = tuple(sorted(stayers.held & chosen))
    return Selection(names, unscheduled, status, _first(end, stayers.next_at, *ends), held)


def _from_nothing(
    fleet: Fleet, placement: Placement, stayers: _Stayers, now: datetime, budget: CostBudget
) -> Outcome:
    outcome = schedule(replace(inputs(fleet, placement, now), budget=budget))
    return replace(outcome, requeue_at=_first(outcome.requeue_at, stayers.next_at))


def _first(*moments: datetime | None) -> datetime | None:
    return min((at for at in moments if at is not None), default=None)
