"""How a refusal reads in the condition of a pod and in its event: literally as in Kubernetes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from sully.domain.scheduling.filters import Rejection

NO_NODES: Final = "no nodes available to schedule pods"
DEALLOCATED: Final = "deallocation of ResourceClaim completed"
LEFTOVER: Final = "cannot schedule extended resource claim"
DELETED: Final = "deletion of ResourceClaim completed"
_NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
_NO_VICTIMS: Final = "No preemption victims found for incoming pod"
_NEVER: Final = "not eligible due to preemptionPolicy=Never."


def by_nodes(rejections: Sequence[Rejection], after: Iterable[str]) -> str:
    """Tell how many nodes refused for which reason, and what was tried then."""
    reasons = Counter(reason for each in rejections for reason in each.reasons)
    return _with(f"{_head(len(rejections))}{_histogram(reasons)}", after)


def by_pod(nodes: int, reason: str, after: Iterable[str]) -> str:
    """Tell of a reason for which no node was looked at."""
    return _with(f"{_head(nodes)}{reason}.", after)


def preemption(rejections: Iterable[Rejection], *, never: bool = False) -> str:
    """Tell that nobody is made to leave; we never do that, whatever would help."""
    found = Counter(_NO_VICTIMS if each.helped_by_leaving else _NOT_HELPFUL for each in rejections)
    return _preemption(found, never=never)


def preemption_nowhere(nodes: int, *, never: bool = False) -> str:
    """Tell the same where it would help on none of the nodes."""
    return _preemption(Counter({_NOT_HELPFUL: nodes}), never=never)


def _preemption(found: Counter[str], *, never: bool) -> str:
    if never:
        return f"preemption: {_NEVER}"
    return f"preemption: {_head(found.total())}{_histogram(found)}"


def in_filter(error: str) -> str:
    """Tell of something that is wrong with a request, a class or a pool."""
    return f'running "DynamicResources" filter plugin: {error}'


def before_binding(error: str) -> str:
    """Tell that the claims of a pod could not be written."""
    return f'running PreBind plugin "DynamicResources": {error}'


def _head(nodes: int) -> str:
    return f"0/{nodes} nodes are available: "


def _histogram(counts: Counter[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items())) + "."


def _with(text: str, after: Iterable[str]) -> str:
    more = ", ".join(after)
    return f"{text} {more}" if more else text
