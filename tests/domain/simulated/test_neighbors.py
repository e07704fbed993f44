"""Which nodes of a cluster are not simulated, and whether they are in the way."""

from __future__ import annotations

import pytest

from sully.domain.simulated.fleet import Fleet
from sully.domain.simulated.neighbors import Neighbors, neighbors

OURS = {"sully.dev/simulated": "true"}
CASES = {
    "an empty cluster": ((), Neighbors((), ())),
    "only simulated nodes": ((("gpu-0000", OURS), ("worker-0003", OURS)), Neighbors((), ())),
    "other nodes": ((("b", {}), ("a", {"x": "y"})), Neighbors(("a", "b"), ())),
    "another value of the label": (
        (("a", {"sully.dev/simulated": "false"}),),
        Neighbors(("a",), ()),
    ),
    "a name of ours": (
        (("gpu-0007", {}), ("gpu-7", {})),
        Neighbors(("gpu-0007", "gpu-7"), ("gpu-0007",)),
    ),
}


@pytest.mark.parametrize(("nodes", "result"), CASES.values(), ids=CASES)
def test_neighbors(nodes: tuple[tuple[str, dict[str, str]], ...], result: Neighbors) -> None:
    assert neighbors(Fleet(2, 1, prefix="gpu"), nodes) == result
