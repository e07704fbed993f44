"""One pass over one placement, from nothing: filter, score, sort, select.

`trace` keeps every stage, for explanations (results/verdicts.py) and the debug endpoint;
`schedule` is its result. `incremental/fleet.py` comes to the same results without looking at every
cluster again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial

import msgspec

from sully.api.cluster.types import Placement, Toleration
from sully.domain.placement.candidates import Candidate
from sully.domain.placement.options import OCM, PlacementOptions
from sully.domain.placement.predicates import (
    Predicate,
    compile_expressions,
    compile_predicates,
    qualifies,
)
from sully.domain.placement.prioritizers import (
    MOST,
    AddOnResult,
    Prioritizer,
    add_on_score,
    balance_score,
    expired_message,
    prioritizers,
    resource_score,
)
from sully.domain.placement.results.outcome import Outcome, Reach, Selection, conclude, keep
from sully.domain.placement.results.status import SUCCESS, MisconfiguredError, Status
from sully.domain.placement.tolerations import TaintVerdict, effective, judge, problem, tier
from sully.machinery.cel import CostBudget
from sully.machinery.formats.timestamps import later

TAINTS = "TaintToleration"
MOMENT = timedelta(microseconds=1)
"""A score is valid until its `validUntil`, inclusive."""


class Rules:
    """The requirements of a placement, compiled; an error is kept until it matters."""

    def __init__(self, placement: Placement, options: PlacementOptions) -> None:
        spec = placement.spec
        self._spec = spec
        self._options = options
        self.tolerations: tuple[Toleration, ...] = effective(spec.tolerations, options)
        text = problem(spec.tolerations)
        self.toleration_problem = Status("Misconfigured", TAINTS, text) if text else None

    @cached_property
    def predicates(self) -> tuple[Predicate, ...] | Status:
        """Return the alternatives, or what is wrong with them."""
        try:
            return compile_predicates(self._spec.predicates)
        except MisconfiguredError as error:
            return error.status

    @cached_property
    def prioritizers(self) -> tuple[Prioritizer, ...] | Status:
        """Return the scores that count, or what is wrong with them."""
        try:
            return prioritizers(self._spec.prioritizer_policy, self._options)
        except MisconfiguredError as error:
            return error.status


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one pass depends on."""

    placement: Placement
    reach: Reach
    candidates: Sequence[Candidate]
    """The clusters of the eligible sets that are not being deleted, in any order."""
    known: Mapping[str, Candidate]
    """All clusters there are, for those that were decided and are no longer available."""
    decided: Mapping[str, int] = msgspec.field(default_factory=dict)
    """How often this placement's decisions name a cluster now."""
    counts: Mapping[str, int] = msgspec.field(default_factory=dict)
    """How often the decisions of all other placements name a cluster."""
    now: datetime
    options: PlacementOptions = OCM
    granted: frozenset[str] = frozenset()
    """Clusters that may be removed because of their health, if there is a budget."""
    budget: CostBudget = msgspec.field(default_factory=CostBudget)
    """What evaluating expressions may cost; beyond it, CostBudgetExceededError is raised."""


class Trace(msgspec.Struct, kw_only=True):
    """A pass with all its stages; a stage that was not reached is None."""

    status: Status = SUCCESS
    qualified: list[Candidate] | None = None
    verdicts: dict[str, TaintVerdict] = msgspec.field(default_factory=dict)
    held: set[str] = msgspec.field(default_factory=set)
    feasible: list[Candidate] | None = None
    scores: list[tuple[Prioritizer, dict[str, int]]] = msgspec.field(default_factory=list)
    totals: dict[str, int] = msgspec.field(default_factory=dict)
    ranked: list[str] = msgspec.field(default_factory=list)
    """Feasible clusters, the best first."""
    selected: list[str] = msgspec.field(default_factory=list)
    unscheduled: int = 0
    requeue_at: datetime | None = None


def schedule(inputs: Inputs) -> Outcome:
    """Decide for one placement."""
    result = trace(inputs)
    spared = tuple(sorted(result.held.intersection(result.selected)))
    selection = Selection(
        sorted(result.selected), result.unscheduled, result.status, result.requeue_at, spared
    )
    if result.status.stops and inputs.options.compat.keeps_clusters_on_error:
        available = frozenset(candidate.name for candidate in inputs.candidates)
        here = available.__contains__
        selection = keep(inputs.placement, inputs.decided, here, result.status)
    find = inputs.known.__getitem__
    return conclude(inputs.placement, selection, inputs.reach, find, inputs.options)


def trace(inputs: Inputs) -> Trace:
    """Run all stages and keep the result of each."""
    compile_expressions(inputs.placement.spec.predicates, inputs.budget)
    rules = Rules(inputs.placement, inputs.options)
    result = Trace()
    result.status = _filter(inputs, rules, result)
    if not result.status.stops:
        result.status = _score(inputs, rules, result)
    if not result.status.stops:
        _select(inputs, result)
    return result


def _filter(inputs: Inputs, rules: Rules, result: Trace) -> Status:
    candidates = sorted(inputs.candidates, key=lambda candidate: candidate.name)
    if candidates and inputs.placement.spec.predicates:
        predicates = rules.predicates
        if isinstance(predicates, Status):
            return predicates
        budget = inputs.budget
        candidates = [
            candidate for candidate in candidates if _qualifies(predicates, candidate, budget)
        ]
    result.qualified = candidates
    if candidates and rules.toleration_problem is not None:
        return rules.toleration_problem
    result.feasible = [
        candidate for candidate in candidates if _tolerated(inputs, rules, candidate, result)
    ]
    return SUCCESS


def _qualifies(predicates: Sequence[Predicate], candidate: Candidate, budget: CostBudget) -> bool:
    return budget.run(partial(qualifies, predicates, candidate))


def _tolerated(inputs: Inputs, rules: Rules, candidate: Candidate, result: Trace) -> bool:
    verdict = judge(candidate.taints, rules.tolerations, inputs.now, inputs.options)
    result.verdicts[candidate.name] = verdict
    if candidate.name not in inputs.decided:
        return verdict.blocks is None
    if verdict.expels is not None and is_held(verdict, candidate.name, inputs):
        result.held.add(candidate.name)
        return True
    return verdict.expels is None


def is_held(verdict: TaintVerdict, name: str, inputs: Inputs) -> bool:
    """Report whether a decided cluster must wait for the budget before it is removed."""
    limited = inputs.options.removals_per_minute is not None
    return limited and verdict.unhealthy and name not in inputs.granted


def _score(inputs: Inputs, rules: Rules, result: Trace) -> Status:
    chosen = rules.prioritizers
    if isinstance(chosen, Status):
        return chosen
    status = SUCCESS
    feasible = result.feasible or []
    result.totals = {candidate.name: 0 for candidate in feasible}
    for prioritizer in chosen:
        scores, warning = _scores(prioritizer, feasible, inputs)
        status = warning or status
        result.scores.append((prioritizer, scores))
        for name, score in scores.items():
            result.totals[name] += prioritizer.weight * score
    return status


def _scores(
    prioritizer: Prioritizer, feasible: Sequence[Candidate], inputs: Inputs
) -> tuple[dict[str, int], Status | None]:
    match prioritizer.kind:
        case "Balance":
            most = max(inputs.counts.values(), default=0)
            counts = inputs.counts
            return {
                candidate.name: balance_score(counts.get(candidate.name, 0), most)
                for candidate in feasible
            }, None
        case "Steady":
            return {
                candidate.name: MOST if candidate.name in inputs.decided else 0
                for candidate in feasible
            }, None
        case "Resource":
            return _resource_scores(prioritizer.resource, feasible), None
        case "AddOn":
            return _add_on_scores(prioritizer, feasible, inputs.now)


def _resource_scores(resource: str, feasible: Iterable[Candidate]) -> dict[str, int]:
    known = ((candidate.name, candidate.allocatable(resource)) for candidate in feasible)
    amounts = {name: amount for name, amount in known if amount is not None}
    least, most = min(amounts.values(), default=0.0), max(amounts.values(), default=0.0)
    return {name: resource_score(amount, least, most) for name, amount in amounts.items()}


def _add_on_scores(
    prioritizer: Prioritizer, feasible: Iterable[Candidate], now: datetime
) -> tuple[dict[str, int], Status | None]:
    results: dict[str, AddOnResult] = {}
    add_on = prioritizer.add_on
    if add_on is not None:
        results = {candidate.name: add_on_score(add_on, candidate, now) for candidate in feasible}
    expired = [name for name, result in results.items() if result.expired]
    warning = None
    if add_on is not None and expired:
        warning = Status("Warning", prioritizer.name, expired_message(add_on, expired))
    return {name: result.value for name, result in results.items()}, warning


def _select(inputs: Inputs, result: Trace) -> None:
    compat, verdicts, totals = inputs.options.compat, result.verdicts, result.totals
    tiers = {name: tier(verdicts[name], compat, selected=name in inputs.decided) for name in totals}
    result.ranked = sorted(totals, key=lambda name: (tiers[name], -totals[name], name))
    want = inputs.placement.spec.number_of_clusters
    # OCM crashes on a negative number; it can only mean none.
    result.selected = result.ranked if want is None else result.ranked[: max(want, 0)]
    result.unscheduled = max(want, 0) - len(result.selected) if want is not None else 0
    result.requeue_at = _requeue_at(inputs, result)


def _requeue_at(inputs: Inputs, result: Trace) -> datetime | None:
    ends = [result.verdicts[name].stays_until for name in result.selected]
    if inputs.options.compat.requeues_on_scores:
        ends += _score_ends(inputs, result)
    return min((end for end in ends if end is not None), default=None)


def _score_ends(inputs: Inputs, result: Trace) -> Iterable[datetime]:
    for prioritizer, _ in result.scores:
        for candidate in result.feasible or ():
            if prioritizer.add_on is not None:
                until = add_on_score(prioritizer.add_on, candidate, inputs.now).valid_until
                if until is not None:
                    yield later(until, MOMENT)
