"""The nodes that a pod may be scheduled to, where the scheduler is free to select one of several.

kube-scheduler scores the nodes that fit, and selects at random among those with the best score.
Scores are not simulated: all nodes that fit are candidates.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

MOST_CANDIDATES: Final = 10
"""Names that are kept for each pod; a plan may have thousands of pods and nodes."""


class CandidateNodes(msgspec.Struct, frozen=True):
    """Some of the nodes that fit, the one of the simulation first, and how many there are."""

    names: tuple[str, ...] = ()
    count: int = 0
    evicting: tuple[str, ...] = ()
    """Those where taints would evict the pod again."""


def candidate_nodes(
    node: str, fitting: Sequence[str], evicting: Sequence[str] = ()
) -> CandidateNodes:
    """Return the candidates of a pod that is scheduled to a node; `fitting` may be empty."""
    if len(fitting) <= 1:
        return CandidateNodes((node,), 1)
    others = [name for name in fitting[: MOST_CANDIDATES + 1] if name != node]
    names = (node, *others[: MOST_CANDIDATES - 1])
    return CandidateNodes(names, len(fitting), tuple(evicting[:MOST_CANDIDATES]))


def with_nodes_of_equal_pods(known: CandidateNodes, nodes: Collection[str]) -> CandidateNodes:
    """Add nodes that fit as well if an equal pod before it is scheduled elsewhere.

    In the simulation that pod takes one of its candidates; in the cluster it may take another.
    """
    if not nodes:
        return known
    more = [name for name in nodes if name not in known.names]
    names = (*known.names, *more)[:MOST_CANDIDATES]
    return CandidateNodes(names, known.count + len(more), known.evicting)
