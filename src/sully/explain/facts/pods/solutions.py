"""Solutions as notes: the steps of a change that trials have shown to work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sully.domain.claims.pods import claim_references
from sully.domain.scheduling.diagnosis import BlockingTaint, Diagnosis
from sully.domain.scheduling.extended import NAMELESS
from sully.domain.scheduling.objects import Pod
from sully.domain.tolerations import taint_text
from sully.explain.causes import Note, note
from sully.explain.shortages import merged_holders, merged_taints
from sully.explain.sources import Sources
from sully.explain.text import object_text
from sully.explain.trials.changes import NodeObstacles, RequestName, Solution


class SolutionWriter:
    """Writes steps with the names in a diagnosis and in sources; `users` are pods of a claim."""

    def __init__(
        self, diagnosis: Diagnosis | None, sources: Sources, users: Callable[[str], tuple[str, ...]]
    ) -> None:
        self._requests = diagnosis.requests if diagnosis is not None else ()
        self._sources = sources
        self._users = users

    def solution(self, solution: Solution) -> Note:
        """Return the steps, and the node that the pod is scheduled to after them."""
        change, steps = solution.change, list[Note]()
        if change.obstacles is not None:
            steps += _cleared(change.obstacles)
        if change.remove:
            steps.append(note("RemovePods", pods=change.remove, node=solution.node))
        if change.tolerate:
            requests = change.requests or ()
            steps.append(self._tolerate(change.tolerate, requests, removable=solution.removable))
        if change.deallocate:
            steps.append(self._deallocate(change.deallocate))
        return note("ScheduledAfter", steps=steps, node=solution.node)

    def untried(self, diagnosis: Diagnosis) -> Iterator[Note]:
        """Yield what may help where it cannot be tried: the caller cannot see everything."""
        short = diagnosis.short
        requests = [(request.claim, request.request) for request in short if request.taints]
        taints = merged_taints(short)
        if taints and not any(claim.endswith(NAMELESS) for claim, _ in requests):
            yield note("MayHelp", step=self._tolerate(taints, requests), partly=False)
        if holders := tuple(merged_holders(short)):
            yield note("MayHelp", step=self._deallocate(holders), partly=True)

    def immutable_claims(self, solutions: Iterable[Solution], pod: Pod) -> Iterator[Note]:
        """Yield what tolerations must be written into: the spec of a claim is immutable."""
        claims = {
            claim
            for solution in solutions
            if solution.change.tolerate
            for claim, _ in solution.change.requests or ()
            if not claim.endswith(NAMELESS)
        }
        templates, own = list[str](), list[str]()
        for reference in claim_references(pod, extended=False):
            if f"{pod.metadata.namespace}/{reference.name}" in claims:
                template = reference.template
                (templates if template else own).append(template or reference.name)
        if templates or own:
            yield note("ImmutableClaims", templates=templates, claims=own)

    def _tolerate(
        self,
        taints: Sequence[BlockingTaint],
        requests: Sequence[RequestName],
        *,
        removable: bool = True,
    ) -> Note:
        ends = [self._sources.of(taint.origin).until for taint in taints]
        expiries = [end for end in ends if end is not None]
        return note(
            "TolerateDevices",
            taints=[
                note("TaintOf", taint=taint_text(x), source=object_text(x.origin)) for x in taints
            ],
            expired=any(taint.expired for taint in taints),
            requests=list(self._named(requests)),
            until=max(expiries) if expiries and len(expiries) == len(ends) else None,
            removable=removable,
        )

    def _named(self, requests: Sequence[RequestName]) -> Iterator[Note]:
        """Yield requests by claim; the claim is named if the pod has several."""
        by_claim: dict[str, list[str]] = {}
        for claim, request in requests:
            by_claim.setdefault(claim, []).append(request)
        single = len({request.claim for request in self._requests}) == 1
        for claim, names in by_claim.items():
            yield note("RequestsOf", requests=names, claim="" if single else claim)

    def _deallocate(self, claims: Sequence[str]) -> Note:
        holders, users = merged_holders(self._requests), self._users
        return note(
            "Deallocate",
            claims=[
                note("ClaimUse", claim=claim, devices=holders.get(claim, 0), pods=users(claim))
                for claim in claims
            ],
        )


def _cleared(obstacles: NodeObstacles) -> Iterator[Note]:
    node = obstacles.node
    if obstacles.cordoned:
        yield note("Uncordon", node=node)
    if obstacles.taints:
        yield note("TolerateNode", node=node, taints=list(map(taint_text, obstacles.taints)))
    if obstacles.unselected:
        yield note("MatchNode", node=node)
