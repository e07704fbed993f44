"""Nodes that do not fit a pod, as notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sully.explain.causes import Note, note
from sully.explain.trials.scheduler import Rejection


def rejection_note(rejection: Rejection) -> Note:
    name = f"Nodes/{rejection.kind}"
    names = rejection.names
    return note(name, names=names, first=names[0], resource=rejection.resource)


def rejected_nodes(rejections: Iterable[Rejection]) -> tuple[str, ...]:
    """Return the nodes that do not fit, each once: one may have several reasons."""
    return tuple(dict.fromkeys(name for nodes in rejections for name in nodes.names))


def other_rejections(rejections: Sequence[Rejection]) -> Iterator[Note]:
    if nodes := len(rejected_nodes(rejections)):
        yield note("OtherRejections", nodes=nodes, messages=[x.message for x in rejections])
