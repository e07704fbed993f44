"""The parts of a plan that are about the owners of pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from sully.client.transport import Kind
from sully.domain.planning.owner_messages import job_end_text, obstacle_text
from sully.domain.planning.owners import JobEnded, Obstacle, Recreation, behavior_of
from sully.domain.planning.report import (
    CreatedPod,
    DeletedPod,
    Replacement,
    ReplacementOutcome,
)
from sully.planning.owners.kinds import JOBS, STATEFUL_SETS
from sully.planning.simulation.simulator import Simulation
from sully.views.snapshot.snapshot import Gap

_UNKNOWN: Final[Mapping[Recreation, tuple[Kind[Any], str]]] = {
    Recreation.AS_JOB: (JOBS, "whether a Job would fail, and when it recreates pods, is not known"),
    Recreation.IN_ORDER: (
        STATEFUL_SETS,
        "they are expected to wait for each pod before they create the next",
    ),
}
_MATTERS_FROM: Final = {Recreation.AS_JOB: 1, Recreation.IN_ORDER: 2}
"""From how many evicted pods of one owner on it matters what is in the owner."""


def gap_text(gap: Gap) -> str:
    """Return what a plan does not consider."""
    if gap.only_namespace:
        return f"the plan only considers {gap.kind.plural} in namespace {gap.only_namespace}"
    return f"the plan does not consider {gap.kind.plural} ({gap.reason})"


def owner_notes(simulation: Simulation) -> Iterator[str]:
    """Yield which owners of evicted pods could not be read, and what the plan assumes."""
    gaps = {kind: simulation.cluster.gap(kind) for kind, _ in _UNKNOWN.values()}
    if not any(gaps.values()):
        return
    owned = Counter(
        (behavior_of(pod).recreation, pod.metadata.namespace, pod.owner_text)
        for pod in (eviction.pod for eviction in simulation.evicted)
    )
    for recreation, (kind, meaning) in _UNKNOWN.items():
        gap = gaps[kind]
        most = max((count for (x, *_), count in owned.items() if x is recreation), default=0)
        if gap is not None and most >= _MATTERS_FROM[recreation]:
            yield f"{gap_text(gap)}: {meaning}"


def not_created(obstacle: Obstacle) -> Replacement:
    """Return the replacement of a pod that its owner does not create."""
    # Whether a JobSet may restart once more is in its failure policy, which is not read.
    restarts = isinstance(obstacle, JobEnded) and obstacle.job_set and obstacle.end.fails
    outcome = ReplacementOutcome.UNKNOWN if restarts else ReplacementOutcome.NOT_REPLACED
    return Replacement(outcome=outcome, message=obstacle_text(obstacle))


def deleted_pods(simulation: Simulation) -> Iterator[DeletedPod]:
    """Yield the pods that owners delete because others of their pods are evicted."""
    start = simulation.cluster.clock.start
    ended = {
        eviction.pod.owner.uid: eviction.obstacle
        for eviction in simulation.evicted
        if isinstance(eviction.obstacle, JobEnded) and eviction.pod.owner is not None
    }
    for deletion in simulation.deleted:
        pod, owner = deletion.pod, deletion.pod.owner
        known = ended.get(owner.uid) if owner is not None else None
        failed, limit = (known.failed, known.limit) if known is not None else (0, 0)
        name = owner.name if owner is not None else ""
        yield DeletedPod(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            owner=pod.owner_text,
            node=pod.spec.node_name,
            deletion_time=deletion.time,
            after_seconds=(deletion.time - start).total_seconds(),
            message=job_end_text(name, deletion.end, failed, limit),
        )


def created_pods(simulation: Simulation) -> Iterator[CreatedPod]:
    """Yield the pods that owners create, and that replace no evicted pod."""
    for uid, pod in simulation.created.items():
        binding = simulation.scheduler.bindings.get(uid)
        yield CreatedPod(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            owner=pod.owner_text,
            node=binding.node if binding is not None else "",
            evicted_again=uid in simulation.evicted_again,
        )
