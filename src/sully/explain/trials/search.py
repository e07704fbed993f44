"""Searches for the smallest change that gets a pod scheduled, by trying.

A trial runs the scheduler once more on a copy of the cluster with something changed, so what is
found here works, now. On each of a few nodes everything is tried that may help there, and then as
little of it as is enough. To ask one node costs little; to ask all is done only a few times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import msgspec

from sully.domain.scheduling.diagnosis import BlockingTaint, Diagnosis, RequestAccount
from sully.domain.tolerations import taint_text
from sully.explain.shortages import merged_holders, merged_taints
from sully.explain.trials.changes import (
    Change,
    LargestNode,
    NodeObstacles,
    RequestName,
    Solution,
    WhatIf,
)

T = TypeVar("T")
NO_CHANGE: Final = Change()
_FIRST_CLAIMS: Final = 64
"""Claims that are tried to be deallocated before all are: a pool may be shared by thousands."""


def solutions(diagnosis: Diagnosis | None, what_if: WhatIf) -> tuple[Solution, ...]:
    """Return what would get a pod scheduled: the least of each kind, or of all together.

    The kinds are tolerating, waiting for devices, and clearing away what nodes object to.
    """
    search = _Search(what_if)
    fitting = search.on_fitting_nodes(diagnosis) if diagnosis is not None else []
    obstacles = what_if.obstacles()
    cleared = search.best(search.cleared(node) for node in obstacles if not node.full)
    if cleared is None and not fitting:
        cleared = search.best(search.cleared(node, more=True) for node in obstacles)
    return (*fitting, *((cleared,) if cleared is not None else ()))


def remaining(diagnosis: Diagnosis, what_if: WhatIf) -> tuple[str, Diagnosis] | None:
    """Return what else a node lacks if all taints were tolerated and all devices free."""
    for node in what_if.nodes()[:1]:
        base = Change(deallocate=tuple(what_if.claims_near(node)))
        taints = _Search(what_if).taints(node, base)
        then = what_if.diagnosis_after(replace(base, tolerate=taints), node)
        if then is not None and then.requests and then.reason != diagnosis.reason:
            return node, then
    return None


class _Search(msgspec.Struct, frozen=True):
    what_if: WhatIf

    def on_fitting_nodes(self, diagnosis: Diagnosis) -> list[Solution]:
        """Return what would help on nodes that fit the pod, devices aside."""
        taints = tuple(merged_taints(diagnosis.requests))
        holders = tuple(merged_holders(diagnosis.requests))
        tolerated = self.what_if.node_for(Change(tolerate=taints)) if taints else ""
        freed = self.what_if.node_for(Change(deallocate=holders)) if holders else ""
        names = dict.fromkeys((tolerated, freed, *self.what_if.nodes()))
        nodes = [name for name in names if name]
        # If all of it is not enough, less is not. Consumers of counters are listed nowhere.
        counters = any(request.refused.get("counters") for request in diagnosis.requests)
        candidates = [
            self.best(map(self.tolerating, nodes)) if tolerated else None,
            self.best(map(self.deallocating, nodes)) if freed or counters else None,
        ]
        if not any(candidates):
            candidates.append(self.best(map(self.both, nodes)))
        return [solution for solution in candidates if solution is not None]

    def tolerating(self, node: str) -> Change | None:
        return self.needed(node, Change(tolerate=self.taints(node)))

    def deallocating(self, node: str) -> Change | None:
        return _first(self.needed(node, Change(deallocate=some)) for some in self.holders(node))

    def both(self, node: str, base: Change = NO_CHANGE) -> Change | None:
        """Return what to deallocate and what to tolerate on a node, with something else done."""
        freed = (replace(base, deallocate=claims) for claims in self.holders(node))
        return _first(
            self.needed(node, replace(change, tolerate=self.taints(node, change)))
            for change in freed
        )

    def cleared(self, obstacles: NodeObstacles, *, more: bool = False) -> Change | None:
        """Return what gets a pod scheduled to a node that does not fit it as it is."""
        node, change = obstacles.node, Change(obstacles=obstacles)
        if not more:
            return change if self.what_if.node_for(change, node) else None
        if obstacles.full:
            # To remove a pod releases its devices too, so there is no need to wait for both.
            change = replace(change, remove=tuple(self.what_if.pods_on(node)))
        return self.both(node, change)

    def taints(self, node: str, base: Change = NO_CHANGE) -> tuple[BlockingTaint, ...]:
        """Return the taints on devices of a node; of those that one toleration covers, only one."""
        diagnosis = self.what_if.diagnosis_after(base, node)
        taints = merged_taints(diagnosis.requests) if diagnosis is not None else ()
        return tuple({taint_text(taint): taint for taint in reversed(taints)}.values())[::-1]

    def holders(self, node: str) -> Iterator[tuple[str, ...]]:
        """Yield the claims with devices near a node, those with the most usable devices first."""
        diagnosis = self.what_if.diagnosis_after(NO_CHANGE, node)
        held = merged_holders(diagnosis.requests if diagnosis is not None else ())
        near = sorted(
            self.what_if.claims_near(node), key=lambda claim: (-held.get(claim, 0), claim)
        )
        yield tuple(near[:_FIRST_CLAIMS])
        if len(near) > _FIRST_CLAIMS:
            yield tuple(near)

    def best(self, changes: Iterable[Change | None]) -> Solution | None:
        """Return the smallest change, with the node that the pod would really get then."""
        best: Change | None = None
        for change in changes:
            if change is not None and (best is None or change.size < best.size):
                best = change
            if best is not None and best.size == 1:
                break
        return self._solution(best) if best is not None else None

    def _solution(self, change: Change) -> Solution | None:
        """Name the node, and all objects behind the taints that are tolerated.

        What helps on a node may open others as well, and one of those may fail the whole attempt.
        """
        node = self.what_if.node_for(change)
        if not node:
            return None
        taints = change.tolerate
        if taints:
            base = replace(change, tolerate=(), requests=None)
            diagnosis = self.what_if.diagnosis_after(base, node)
            texts = {taint_text(taint) for taint in taints}
            on_node = merged_taints(diagnosis.requests) if diagnosis is not None else ()
            taints = tuple(taint for taint in on_node if taint_text(taint) in texts) or taints
        removable = not any(self.what_if.reveals(taint, node) for taint in taints)
        return Solution(replace(change, tolerate=taints), node, removable)

    def needed(self, node: str, most: Change) -> Change | None:
        """Leave out what the pod gets a node without; None if all of it is not enough."""
        if not self.what_if.node_for(most, node):
            return None
        steps = [
            *(Change(remove=(pod,)) for pod in most.remove),
            *(Change(deallocate=(claim,)) for claim in most.deallocate),
            *(Change(tolerate=(taint,)) for taint in most.tolerate),
        ]

        def made_of(subset: Sequence[Change]) -> Change:
            return replace(
                most,
                remove=tuple(pod for step in subset for pod in step.remove),
                deallocate=tuple(claim for step in subset for claim in step.deallocate),
                tolerate=tuple(taint for step in subset for taint in step.tolerate),
            )

        change = made_of(
            fewest(steps, lambda subset: bool(self.what_if.node_for(made_of(subset), node)))
        )
        return self._tolerating_requests(node, change) if change.tolerate else change

    def _tolerating_requests(self, node: str, change: Change) -> Change:
        diagnosis = self.what_if.diagnosis_after(replace(change, tolerate=()), node)
        requests = diagnosis.requests if diagnosis is not None else ()
        names: list[RequestName] = [(request.claim, request.request) for request in requests]

        def enough(subset: Sequence[RequestName]) -> bool:
            return bool(self.what_if.node_for(replace(change, requests=tuple(subset)), node))

        return replace(change, requests=tuple(fewest(names, enough)) if enough(names) else None)


def _first(changes: Iterable[Change | None]) -> Change | None:
    return next((change for change in changes if change is not None), None)


def fewest(things: Sequence[T], enough: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return some of the things that are enough, none of which can be left out.

    All of them must be enough, and more never harm. What comes first is rather kept. It asks about
    as often as the number of things kept times the logarithm of all.
    """
    subset: list[T] = []
    rest = list(things)
    while rest and not enough(subset):
        low, high = 1, len(rest)
        while low < high:
            middle = (low + high) // 2
            if enough([*rest[:middle], *subset]):
                high = middle
            else:
                low = middle + 1
        subset.insert(0, rest[low - 1])
        rest = rest[: low - 1]
    return subset


def too_large(
    diagnosis: Diagnosis, what_if: WhatIf
) -> tuple[tuple[RequestAccount, LargestNode], ...]:
    """Return requests for more devices than any node has, if a pod cannot do without them.

    A request with alternatives is too large only if all of them are.
    """
    known = what_if.largest()
    large: list[tuple[RequestAccount, LargestNode]] = []
    fitting: set[RequestName] = set()
    for request in diagnosis.requests:
        most = known.get((request.claim, request.request), LargestNode(0, ""))
        if 0 < most.devices < request.wanted:
            large.append((request, most))
        else:
            fitting.add(_whole(request))
    return tuple((request, most) for request, most in large if _whole(request) not in fitting)


def _whole(request: RequestAccount) -> RequestName:
    """Return the request that an alternative belongs to."""
    return request.claim, request.request.partition("/")[0]
