"""What keeps a node from taking a pod, all of it: the scheduler says only what it meets first.

`domain/scheduling/filters.py` has the rules; nearest.py tries what is found here.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from sully.domain.explaining.trials import Opening, TooMuch
from sully.domain.scheduling.filters import (
    CORDONED,
    NodeInfo,
    chooses,
    is_cordoned,
    rejects,
    untolerated,
)
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import Amounts, shortages
from sully.machinery.quantity import BINARY_SI, DECIMAL_SI, Quantity


def opening_of(
    state: NodeInfo, pod: Pod, requests: Amounts, backed: Container[str] = ()
) -> Opening | None:
    """Return what must change; None where nothing must, and where nothing of this kind can."""
    lacking = list(shortages(requests, state.resources, backed))
    if rejects(state, pod, requests, backed) is None or not all(x.could_fit for x in lacking):
        return None
    cordoned = is_cordoned(state.node, pod)
    taints = tuple(
        each
        for each in untolerated(state.node, pod)
        # The mark of a cordon goes with it.
        if not (cordoned and each.key == CORDONED.key)
    )
    return Opening(
        node=state.node.metadata.name,
        cordoned=cordoned,
        taints=taints,
        unchosen=not chooses(pod, state.target),
        full=bool(lacking),
    )


def too_much(
    states: Iterable[NodeInfo], requests: Amounts, backed: Container[str] = ()
) -> Iterator[TooMuch]:
    """Yield what a pod asks for that no node has so much of, were it empty."""
    nodes = list(states)
    for name, amount in sorted(requests.items()):
        most = max((each.resources.allocatable.get(name, 0) for each in nodes), default=0)
        if amount > most and name not in backed:
            yield TooMuch(name, _written(name, amount), _written(name, most) if most else "")


def _written(resource: str, amount: int) -> str:
    in_bytes = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    return str(Quantity(amount, BINARY_SI if in_bytes else DECIMAL_SI))
