"""Nodes that do not fit a pod, and what the scheduler fails on, as notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sully.domain.allocation.failures import (
    AllocationFailure,
    ConstraintUnmet,
    ExpressionFailed,
    PoolNotUsable,
    TooManyDevices,
)
from sully.explain.causes import Note, note
from sully.explain.trials.scheduler import RejectedNodes


def rejection_note(rejection: RejectedNodes) -> Note:
    name = f"Nodes/{rejection.kind}"
    names = rejection.names
    return note(name, names=names, first=names[0], resource=rejection.resource)


def rejected_nodes(rejections: Iterable[RejectedNodes]) -> tuple[str, ...]:
    """Return the nodes that do not fit, each once: one may have several reasons."""
    return tuple(dict.fromkeys(name for nodes in rejections for name in nodes.names))


def other_rejections(rejections: Sequence[RejectedNodes]) -> Iterator[Note]:
    if nodes := len(rejected_nodes(rejections)):
        yield note("OtherRejections", nodes=nodes, messages=[x.message for x in rejections])


def failure_advice(failure: AllocationFailure) -> Note | None:
    """Return what helps against a failure, where more is known than what its text names."""
    match failure:
        case PoolNotUsable():
            return note("POOL_INCOMPLETE" if failure.is_incomplete else "POOL_INVALID")
        case TooManyDevices():
            return note("TOO_MANY_DEVICES")
        case ConstraintUnmet():
            return note("CONSTRAINT")
        case ExpressionFailed():
            return note("CEL_COMPILE" if failure.failure.phase == "compile" else "CEL_RUNTIME")
        case _:
            return None
