"""Nodes that do not fit a pod, as notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
