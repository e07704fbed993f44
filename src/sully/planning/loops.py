"""Eviction loops in a simulation that has run: pods that would be evicted again and again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from sully.domain.eviction.judge import EvictingTaint
from sully.domain.eviction.loop_advice import remedies, why
from sully.domain.eviction.loops import evicted_again, evictions_per_minute, selector_pattern
from sully.domain.planning.owners import Recreation
from sully.domain.planning.replacements import is_replaced_after_deletion
from sully.domain.planning.report import EvictionLoop
from sully.domain.scheduling.objects import Pod
from sully.domain.tolerations import taint_text
from sully.domain.workloads.jobs.failures import action_for
from sully.planning.owners.kinds import JOBS
from sully.planning.simulation.simulator import DueAgain, Simulation

_IMMEDIATELY: Final = timedelta(seconds=1)
_MAX_DEVICES: Final = 3


def eviction_loops(simulation: Simulation) -> tuple[EvictionLoop, ...]:
    """Return the loops that the change causes, by namespace and owner."""
    groups: dict[tuple[str, str], list[DueAgain]] = {}
    for due in simulation.due_again.values():
        without_change = due.replaces is not None and due.replaces.without_change
        if (
            not without_change
            and _recreates(simulation, due.pod)
            and _would_be_evicted_again(simulation, due)
        ):
            key = due.pod.metadata.namespace, due.pod.workload_text
            groups.setdefault(key, []).append(due)
    return tuple(_loop(simulation, *key, groups[key]) for key in sorted(groups))


def _recreates(simulation: Simulation, pod: Pod) -> bool:
    """Report whether the owner of a pod recreates it as often as it is evicted.

    A Job does so only if it ignores evicted pods; otherwise it fails after some of them.
    """
    match simulation.owners.behavior(pod).recreation:
        case Recreation.NEVER | Recreation.UNKNOWN:
            return False
        case Recreation.AS_JOB:
            job = simulation.cluster.owner(JOBS, pod)
            return job is not None and action_for(job.spec.pod_failure_policy, pod) == "Ignore"
        case _:
            return True


def _would_be_evicted_again(simulation: Simulation, due: DueAgain) -> bool:
    """Report whether the next replacement would be evicted as well.

    One that is evicted as soon as it is scheduled is so every time. After a while the toleration
    has expired: that prevents scheduling there only where the scheduler honors it.
    """
    binding = simulation.scheduler.bindings.get(due.pod.metadata.uid)
    if binding is None or not due.reasons:
        return False
    compat = simulation.cluster.scheduling.compat
    return due.time - binding.time < _IMMEDIATELY or not compat.honors_toleration_seconds


def _loop(
    simulation: Simulation, namespace: str, owner: str, members: list[DueAgain]
) -> EvictionLoop:
    cluster, start = simulation.cluster, simulation.cluster.clock.start
    first, loop = members[0], evicted_again(members[0].pod, members[0].claims, members[0].reasons)
    reasons = [reason for due in members for reason in due.reasons]
    devices = tuple(dict.fromkeys(str(reason.device) for reason in reasons))
    taints = (f"{taint_text(x.taint.taint)} ({x.taint.origin})" for x in reasons)
    return EvictionLoop(
        namespace=namespace,
        owner=owner,
        pods=len(members),
        cause=loop.cause,
        message=why(loop),
        remedies=remedies(
            loop,
            namespace=namespace,
            owner=owner,
            devices=_rule_selectors(simulation, first.reasons[0]) or _some(devices),
        ),
        evictions_per_minute=evictions_per_minute(
            len(members),
            replaced_after=_replaced_after(simulation, first.pod),
            rates=(
                rate.per_second if (rate := reason.taint.rate) is not None else None
                for reason in first.reasons
            ),
            by_kubernetes=not cluster.exposures.policy.compat.limits_evictions,
            max_per_minute=cluster.options.max_per_minute,
        ),
        after_seconds=min((due.time - start).total_seconds() for due in members),
        claim=loop.claim,
        devices=devices[:_MAX_DEVICES],
        taints=tuple(dict.fromkeys(taints))[:_MAX_DEVICES],
    )


def _rule_selectors(simulation: Simulation, reason: EvictingTaint) -> str:
    """Return the devices of all rules with this taint: a class may be expanded to several rules."""
    if reason.rule is None:
        return ""
    taint = taint_text(reason.taint.taint)
    rules = [x for x in simulation.cluster.rules.values() if taint_text(x.spec.taint) == taint]
    patterns = [selector_pattern(rule.spec.device_selector) for rule in rules]
    flags = any(pattern.startswith("--") for pattern in patterns)
    # Devices of a class and of a pattern would be those that match both.
    usable = all(patterns) and not (flags and len(rules) > 1)
    return _some(sorted(set(patterns))) if usable else ""


def _some(devices: Sequence[str]) -> str:
    more = (" ...",) if len(devices) > _MAX_DEVICES else ()
    return "".join((" ".join(devices[:_MAX_DEVICES]), *more))


def _replaced_after(simulation: Simulation, pod: Pod) -> float:
    """Return how many seconds after its eviction a pod is replaced."""
    if not is_replaced_after_deletion(pod):
        return 0.0
    stop_seconds = simulation.cluster.options.stop_seconds
    return float(
        pod.grace_seconds if stop_seconds is None else min(stop_seconds, pod.grace_seconds)
    )
