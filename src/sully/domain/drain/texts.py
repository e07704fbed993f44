"""How a drain ended, and how far it is, as text."""

from __future__ import annotations

from collections.abc import Sequence

from sully.domain.drain.messages import DrainOutcome, DrainPod, DrainProgress, Stop

_MOST = 3
"""How many pods are named."""


def outcome_text(stop: Stop, names: str = "") -> str:
    """Return why a drain ended before all pods were evicted; `names` are those of its pods."""
    pods = names or pod_names(stop.pods)
    match stop.outcome:
        case DrainOutcome.REPLACEMENT_PENDING:
            return f"Replacements stay Pending: {pods}."
        case DrainOutcome.REPLACEMENT_NOT_READY:
            return f"Replacements are not Ready in time: {pods}."
        case DrainOutcome.NOT_RECREATED:
            namespace, _, owner = stop.workload.partition("/")
            kind, _, name = owner.partition("/")
            return f"{kind} {namespace}/{name} did not recreate an evicted pod in time."
        case DrainOutcome.EVICTION_LOOP:
            why = (
                "their claims tolerate the taint of the devices"
                if any(pod.tolerates for pod in stop.pods)
                else "their claims stay allocated, because other pods use them too"
            )
            return f"Evicted pods use the same devices again: {pods}; {why}."
        case DrainOutcome.TIMED_OUT:
            return f"Timed out; pods remain on the devices: {pods}."
        case DrainOutcome.UNCORDONED:
            return "The devices were uncordoned by another command; no more pods are evicted."
        case DrainOutcome.DONE:
            return ""


def progress_text(progress: DrainProgress, *, evicts: bool) -> str:
    """Return how far a drain is; the text changes only if the drain does."""
    left = progress.remaining + progress.terminating
    verb = "to be evicted" if evicts else "to finish"
    parts = [f"{left} pods {verb}" if left != 1 else f"1 pod {verb}"]
    if progress.waiting:
        parts.append(f"{len(progress.waiting)} replacements not Ready yet")
    parts += sorted(set(progress.refused.values()))[:_MOST]
    return "; ".join(parts)


def pod_names(pods: Sequence[DrainPod]) -> str:
    """Return the names of some pods, and how many more there are."""
    names = list(dict.fromkeys(map(str, pods)))
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")
