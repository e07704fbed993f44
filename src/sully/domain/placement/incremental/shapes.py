"""What placements with equal rules and sets share: qualified clusters, feasible clusters, ranks.

A shape looks at a cluster again when the cluster changed or when a toleration or a score of it ran
out, and at no other. What differs between its placements, which clusters they have and how many
they want, is asked of `choose`. Clusters that a placement only keeps because it has them already
are not part of the shape; `fleet.py` brings them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from heapq import heappop, heappush, merge
from itertools import islice
from typing import Protocol

import msgspec

from sully.api.cluster.types import Taint
from sully.domain.placement.candidates import Candidate
from sully.domain.placement.incremental.amounts import Amounts
from sully.domain.placement.incremental.ranking import Key, Rank, Ranking
from sully.domain.placement.options import PlacementOptions
from sully.domain.placement.predicates import NO_SPENDING, qualifies
from sully.domain.placement.prioritizers import (
    MOST,
    add_on_score,
    balance_score,
    expired_message,
)
from sully.domain.placement.results.status import SUCCESS, Status
from sully.domain.placement.schedule import MOMENT, Rules
from sully.domain.placement.tolerations import CLEAN, LAST_TIER, TaintVerdict, judge, tier
from sully.machinery.cel import CostBudget, Spending
from sully.machinery.formats.timestamps import later

_WHOLE_AGAIN = 0.25
"""From this share of changed clusters on, starting over is cheaper than moving each."""


_REMEMBERED = 1000
_NEVER = datetime.max.replace(tzinfo=UTC)


class Standing(msgspec.Struct, frozen=True):
    """What sets one placement of a shape apart: what it has, and what others have."""

    own: Mapping[str, int]
    """How often its decisions name a cluster."""
    retained: Mapping[str, Rank]
    """Clusters that are feasible only because it has them."""
    most: int
    """The largest number of decisions of others for one cluster."""


class ClusterSource(Protocol):
    """Where a shape finds its clusters and how often each is decided."""

    def available(self, name: str, sets: Sequence[str]) -> Candidate | None:
        """Return a cluster of these sets that is not being deleted."""

    def all_available(self, sets: Sequence[str]) -> list[Candidate]:
        """Return all of them, in order of name."""

    def count(self, name: str) -> int:
        """Return how often decisions name a cluster."""


class Shape:
    """One kind of placement spec, kept up to date."""

    def __init__(self, rules: Rules, sets: tuple[str, ...], options: PlacementOptions) -> None:
        self.rules = rules
        self.sets = sets
        self._options = options
        self._predicates = () if isinstance(rules.predicates, Status) else rules.predicates
        chosen = () if isinstance(rules.prioritizers, Status) else rules.prioritizers
        self._balance = sum(
            prioritizer.weight for prioritizer in chosen if prioritizer.kind == "Balance"
        )
        self._steady = sum(
            prioritizer.weight for prioritizer in chosen if prioritizer.kind == "Steady"
        )
        self._resources = tuple(
            prioritizer for prioritizer in chosen if prioritizer.kind == "Resource"
        )
        self._add_ons = tuple(prioritizer for prioritizer in chosen if prioritizer.kind == "AddOn")
        self._evaluates = any(predicate.programs for predicate in self._predicates)
        self._judged: dict[str, tuple[Candidate, bool]] = {}
        """Clusters on which expressions were evaluated in an update that is not finished."""
        self._fresh = False
        self._dirty: set[str] = set()
        self._recount: set[str] = set()
        self._available: set[str] = set()
        self._qualified: dict[str, Candidate] = {}
        self._names: list[str] = []
        self._feasible: set[str] = set()
        self._ranking = Ranking()
        self._amounts = {prioritizer.resource: Amounts() for prioritizer in self._resources}
        self._ends: dict[str, datetime] = {}
        """When a cluster that is selected must be evaluated again."""
        self._score_ends: dict[str, datetime] = {}
        self._expired: dict[str, set[str]] = {
            prioritizer.name: set() for prioritizer in self._add_ons
        }
        self._timers: list[tuple[datetime, str]] = []
        self._memory: dict[tuple[Taint, ...], TaintVerdict] = {}

    def copy(self) -> Shape:
        """Return one that can be changed without changing this."""
        other = Shape(self.rules, self.sets, self._options)
        other._fresh, other._judged = self._fresh, self._judged.copy()
        other._dirty, other._recount = self._dirty.copy(), self._recount.copy()
        other._available, other._qualified = self._available.copy(), self._qualified.copy()
        other._names, other._feasible = self._names.copy(), self._feasible.copy()
        other._ranking = self._ranking.copy()
        other._amounts = {name: amounts.copy() for name, amounts in self._amounts.items()}
        other._ends, other._score_ends = self._ends.copy(), self._score_ends.copy()
        other._expired = {name: names.copy() for name, names in self._expired.items()}
        other._timers, other._memory = self._timers.copy(), self._memory.copy()
        return other

    @property
    def available(self) -> int:
        """Return how many clusters the sets offer."""
        return len(self._available)

    @property
    def names(self) -> Sequence[str]:
        """Return the feasible clusters in order of name."""
        return self._names

    @property
    def reads_everything(self) -> bool:
        """Report whether an expression may read any part of a cluster."""
        return self._evaluates

    @property
    def scores_clusters(self) -> bool:
        """Report whether clusters have scores of their own, beside what decisions make of them."""
        return bool(self._resources or self._add_ons)

    def uses_score(self, resource_name: str) -> bool:
        """Report whether a prioritizer reads the AddOnPlacementScores of a name."""
        used = (prioritizer.add_on for prioritizer in self._add_ons)
        return any(add_on is not None and add_on.resource_name == resource_name for add_on in used)

    def touch(self, name: str) -> None:
        """Note that a cluster must be evaluated again."""
        if self._fresh:
            self._dirty.add(name)

    def recount(self, names: Iterable[str]) -> None:
        """Note that decisions name some clusters more or less often."""
        if self._balance and self._fresh:
            self._recount.update(names)

    def status(self) -> Status:
        """Return what stops all placements of the shape, or the warning they share."""
        rules = self.rules
        if self._available and isinstance(rules.predicates, Status):
            return rules.predicates
        if self._qualified and rules.toleration_problem is not None:
            return rules.toleration_problem
        if isinstance(rules.prioritizers, Status):
            return rules.prioritizers
        return self._warning()

    def _warning(self) -> Status:
        status = SUCCESS
        for prioritizer in self._add_ons:
            names = self._expired[prioritizer.name]
            if prioritizer.add_on is not None and names:
                text = expired_message(prioritizer.add_on, sorted(names))
                status = Status("Warning", prioritizer.name, text)
        return status

    def settle(self, source: ClusterSource, now: datetime, budget: CostBudget) -> None:
        """Evaluate again what changed, and what expired by now.

        Raises what the budget raises; what was evaluated until then is kept.
        """
        while self._timers and self._timers[0][0] <= now:
            self._dirty.add(heappop(self._timers)[1])
        if not self._fresh or len(self._dirty) > max(64, _WHOLE_AGAIN * len(self._available)):
            self._start_over(source, now, budget)
        if self._dirty:
            self._judge_dirty(source, budget)
            bounds = self._bounds()
            for name in self._dirty:
                self._evaluate_cluster(name, source, now, budget)
            self._recount |= self._dirty if bounds == self._bounds() else set(self._names)
            self._dirty.clear()
        if self._recount:
            for name in self._recount & self._feasible:
                self._ranking.put(name, self._rank(name, source, now))
            self._recount.clear()
        self._judged.clear()

    def _judge_dirty(self, source: ClusterSource, budget: CostBudget) -> None:
        """Evaluate expressions before anything changes: that may take more than one attempt."""
        for name in sorted(self._dirty) if self._evaluates else ():
            candidate = source.available(name, self.sets)
            if candidate is not None:
                self._qualifies(candidate, budget)

    def _qualifies(self, candidate: Candidate, budget: CostBudget) -> bool:
        if not self._evaluates:
            return qualifies(self._predicates, candidate, NO_SPENDING)
        known = self._judged.get(candidate.name)
        if known is None or known[0] is not candidate:
            return budget.run(partial(self._judge, candidate))
        return known[1]

    def _judge(self, candidate: Candidate, spending: Spending) -> bool:
        qualified = qualifies(self._predicates, candidate, spending)
        self._judged[candidate.name] = candidate, qualified
        return qualified

    def _start_over(self, source: ClusterSource, now: datetime, budget: CostBudget) -> None:
        every = candidates = source.all_available(self.sets)
        if self._predicates:
            candidates = [
                candidate for candidate in candidates if self._qualifies(candidate, budget)
            ]
        self._fresh, self._dirty, self._recount, self._timers = True, set(), set(), []
        self._ends, self._score_ends = {}, {}
        self._expired = {prioritizer.name: set() for prioritizer in self._add_ons}
        self._available = {candidate.name for candidate in every}
        self._qualified = {candidate.name: candidate for candidate in candidates}
        verdict = self._verdict
        candidates = [
            candidate
            for candidate in candidates
            if not candidate.taints or verdict(candidate, now).blocks is None
        ]
        self._names = [candidate.name for candidate in candidates]
        self._feasible = set(self._names)
        for candidate in candidates:
            if candidate.taints or self._add_ons:
                self._note(candidate, now)
        for resource, amounts in self._amounts.items():
            known = ((candidate.name, candidate.allocatable(resource)) for candidate in candidates)
            amounts.load({name: amount for name, amount in known if amount is not None})
        self._ranking.load(self._ranks(source, now))

    def _ranks(self, source: ClusterSource, now: datetime) -> dict[str, Rank]:
        if self._options.compat.honors_prefer_no_select or self.scores_clusters:
            return {name: self._rank(name, source, now) for name in self._names}
        if self._balance:
            # Few counts, many clusters: those of one count share their rank.
            counts = [source.count(name) for name in self._names]
            known = {count: Rank(0, count, 0) for count in set(counts)}
            return {name: known[count] for name, count in zip(self._names, counts, strict=True)}
        return dict.fromkeys(self._names, Rank(0, 0, 0))

    def _evaluate_cluster(
        self, name: str, source: ClusterSource, now: datetime, budget: CostBudget
    ) -> None:
        """Bring everything about a cluster up to date but its rank."""
        self._ends.pop(name, None)
        self._score_ends.pop(name, None)
        for names in self._expired.values():
            names.discard(name)
        candidate = source.available(name, self.sets)
        (self._available.discard if candidate is None else self._available.add)(name)
        if candidate is not None and self._qualifies(candidate, budget):
            self._qualified[name] = candidate
            fits = self._verdict(candidate, now).blocks is None
        else:
            self._qualified.pop(name, None)
            fits = False
        if candidate is not None and fits:
            self._note(candidate, now)
        self._set_feasible(name, candidate if fits else None)

    def _set_feasible(self, name: str, candidate: Candidate | None) -> None:
        """Make a cluster feasible, or not."""
        for resource, amounts in self._amounts.items():
            amounts.put(name, candidate.allocatable(resource) if candidate is not None else None)
        if candidate is not None and name not in self._feasible:
            self._feasible.add(name)
            insort(self._names, name)
        elif candidate is None and name in self._feasible:
            self._feasible.remove(name)
            del self._names[bisect_left(self._names, name)]
            self._ranking.drop(name)

    def _note(self, candidate: Candidate, now: datetime) -> None:
        """Record when a feasible cluster must be evaluated again."""
        name, verdict = candidate.name, self._verdict(candidate, now)
        if verdict.stays_until is not None:
            self._ends[name] = verdict.stays_until
        if verdict.expires is not None:
            heappush(self._timers, (verdict.expires, name))
        for prioritizer in self._add_ons:
            if prioritizer.add_on is None:
                continue
            result = add_on_score(prioritizer.add_on, candidate, now)
            if result.expired:
                self._expired[prioritizer.name].add(name)
            elif result.valid_until is not None:
                end = min(later(result.valid_until, MOMENT), self._score_ends.get(name, _NEVER))
                self._score_ends[name] = end
                heappush(self._timers, (end, name))

    def _bounds(self) -> list[tuple[float, float] | None]:
        return [amounts.bounds for amounts in self._amounts.values()]

    def _verdict(self, candidate: Candidate, now: datetime) -> TaintVerdict:
        taints = candidate.taints
        if not taints:
            return CLEAN
        verdict = self._memory.get(taints)
        if verdict is None or (verdict.expires is not None and verdict.expires <= now):
            verdict = judge(taints, self.rules.tolerations, now, self._options)
            if len(self._memory) > 2 * len(self._available) + _REMEMBERED:
                self._memory.clear()
            self._memory[taints] = verdict
        return verdict

    def verdict(self, name: str, now: datetime) -> TaintVerdict | None:
        """Return what the shape makes of the taints of a cluster that qualifies, or None."""
        candidate = self._qualified.get(name)
        return self._verdict(candidate, now) if candidate is not None else None

    def infeasible(self, names: Mapping[str, int]) -> set[str]:
        """Return which of these clusters a placement that has none of them could not get."""
        return names.keys() - self._feasible

    def _rank(self, name: str, source: ClusterSource, now: datetime) -> Rank:
        candidate = self._qualified[name]
        rank = tier(self._verdict(candidate, now), self._options.compat, selected=False)
        count = source.count(name) if self._balance else 0
        return Rank(rank, count, -self._own_score(candidate, now))

    def _own_score(self, candidate: Candidate, now: datetime) -> int:
        total = 0
        for prioritizer in self._resources:
            total += prioritizer.weight * self._amounts[prioritizer.resource].score(candidate.name)
        for prioritizer in self._add_ons:
            if prioritizer.add_on is not None:
                total += prioritizer.weight * add_on_score(prioritizer.add_on, candidate, now).value
        return total

    def best(self, number: int, standing: Standing) -> list[str]:
        """Return the best clusters for a placement, the best first."""
        also = sorted(self._keys(standing))
        return self._ranking.best(
            number, partial(self._shared_score, standing.most), without=standing.own, also=also
        )

    def totals(self, standing: Standing, first: int | None = None) -> dict[str, int]:
        """Return what feasible clusters score for a placement: all, or the first by name."""
        own = {name: -total for _, total, name in self._keys(standing)}
        scores: dict[str, int] = {}
        for name in islice(merge(self._names, sorted(standing.retained)), first):
            if name in own:
                scores[name] = own[name]
            else:
                _, count, malus = self._ranking.rank(name)
                scores[name] = self._shared_score(standing.most, count) - malus
        return scores

    def _shared_score(self, most: int, count: int) -> int:
        return self._balance * balance_score(count, most) if self._balance else 0

    def _keys(self, standing: Standing) -> Iterator[Key]:
        """Rank the clusters that a placement has, of which some are feasible for it alone."""
        for name, times in standing.own.items():
            if name in self._feasible:
                rank, count, malus = self._ranking.rank(name)
                rank %= LAST_TIER
            elif name in standing.retained:
                rank, count, malus = standing.retained[name]
            else:
                continue
            score = self._shared_score(standing.most, count - times) + self._steady * MOST
            yield rank, malus - score, name

    def ends(self, selected: Sequence[str], *, everything: bool) -> datetime | None:
        """Return when the first of the selected clusters must be evaluated again."""
        if everything:
            times: Iterable[datetime] = self._ends.values()
        else:
            times = (self._ends[name] for name in selected if name in self._ends)
        ends = min(times, default=None)
        if not self._options.compat.requeues_on_scores or not self._score_ends:
            return ends
        scores = min(self._score_ends.values())
        return scores if ends is None else min(ends, scores)
