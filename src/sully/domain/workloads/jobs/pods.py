"""Which pods a Job creates and deletes, and when.

What is there is tracking.py; when a failed pod is replaced is failures.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice

import msgspec

from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.jobs.failures import (
    INDEX_FAILURES,
    back_off,
    creation_time,
    index_of,
    next_annotations,
)
from sully.domain.workloads.jobs.objects import Action
from sully.domain.workloads.jobs.tracking import JobPods, finish_time
from sully.domain.workloads.workloads import BURST
from sully.machinery.formats.timestamps import later


class NewPod(msgspec.Struct, frozen=True):
    """A pod to create."""

    index: int | None = None
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)


def surplus_pods(ctx: JobPods, count: int) -> list[Pod]:
    """Return the active pods to delete: with an index that has another, then the least useful."""
    if not ctx.job.is_indexed:
        return _least_useful(ctx.active)[: max(count, 0)]
    retained: set[int] = set()
    surplus: list[Pod] = []
    for pod in sorted(ctx.active, key=lambda pod: (-_worth(pod), pod.metadata.name)):
        index = index_of(pod)
        done = ctx.completed | ctx.state.failed_indexes | retained
        if index is None or index >= (ctx.job.spec.completions or 0) or index in done:
            surplus.append(pod)
        else:
            retained.add(index)
    # Of the others those with the highest indexes.
    others = [pod for pod in ctx.active if pod not in surplus]
    others.sort(key=lambda pod: -(index_of(pod) or 0))
    return surplus + others[: max(count - len(surplus), 0)]


def _least_useful(pods: Iterable[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda pod: (_worth(pod), pod.metadata.name))


def _worth(pod: Pod) -> int:
    return 2 * bool(pod.spec.node_name) + pod.ready


def missing_pods(
    ctx: JobPods, count: int, now: datetime
) -> tuple[tuple[NewPod, ...], datetime | None]:
    """Return the pods to create now, and when the next may be created."""
    job, count = ctx.job, min(count, BURST)
    if count <= 0:
        return (), None
    if not job.is_indexed:
        due = _due(ctx, now)
        return ((NewPod(),) * count, None) if due <= now else ((), due)
    new: list[NewPod] = []
    waits: list[datetime] = []
    for index in islice(_pending(ctx), count):
        last = _last_failed(ctx, index)
        due = _due(ctx, now, last)
        if due > now:
            waits.append(due)
            continue
        annotations = {}
        if job.spec.backoff_limit_per_index is not None:
            annotations = next_annotations(job, *last) if last is not None else {}
            annotations = {INDEX_FAILURES: "0", **annotations}
        new.append(NewPod(index, annotations))
    return tuple(new), min(waits, default=None)


def _due(ctx: JobPods, now: datetime, last: tuple[Pod, Action] | None = None) -> datetime:
    if last is not None and ctx.job.spec.backoff_limit_per_index is not None:
        return creation_time(ctx.job, ctx.state, last[0], finish_time(last[0], now))
    if ctx.job.spec.backoff_limit_per_index is not None or ctx.state.last_failure is None:
        return now
    return later(ctx.state.last_failure, back_off(ctx.state.failures))


def _pending(ctx: JobPods) -> Iterator[int]:
    """Yield the indexes without a pod in order; there may be billions."""
    is_pending = _pending_test(ctx)
    return filter(is_pending, range(ctx.job.spec.completions or 0))


def _pending_test(ctx: JobPods) -> Callable[[int], bool]:
    """Return whether an index has no pod; one that is terminating may have to terminate first."""
    job = ctx.job
    present = {
        index_of(pod)
        for pod in ctx.pods
        if pod.is_active
        or (pod.is_terminating and not pod.is_terminal and not job.replaces_terminating)
    }
    done = ctx.completed | ctx.state.failed_indexes
    return lambda index: index not in present and index not in done


def _last_failed(ctx: JobPods, index: int) -> tuple[Pod, Action] | None:
    """Return the failed pod of an index that is not replaced yet."""
    pods = [(pod, action) for pod, action in ctx.failed if index_of(pod) == index]
    return max(pods, key=lambda pair: pair[0].metadata.name, default=None)


def awaiting_replacement(ctx: JobPods, create: Sequence[NewPod]) -> frozenset[str]:
    """Return the uids of failed pods that keep their finalizer until they are replaced.

    With a limit for each index, the failures of an index are known only from its last pod.
    """
    job = ctx.job
    if job.spec.backoff_limit_per_index is None:
        return frozenset()
    is_pending, created = _pending_test(ctx), {new.index for new in create}
    failed = {index for pod, _ in ctx.failed if (index := index_of(pod)) is not None} - created
    indexes = range(job.spec.completions or 0)
    last = (_last_failed(ctx, index) for index in failed if index in indexes and is_pending(index))
    return frozenset(pair[0].metadata.uid for pair in last if pair is not None)
