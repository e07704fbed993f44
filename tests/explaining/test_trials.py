"""What is advised comes true: whoever does it finds the pod on the node that was named."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from explaining.worlds import (
    NAMESPACE,
    Obj,
    claim,
    class_,
    device,
    node,
    pod,
    request,
    rule,
    slice_,
    snapshot,
)
from sully.client.transport import Key
from sully.domain.explaining.nearest import Help, helps
from sully.explaining.attempts import Attempts
from sully.explaining.world import World
from sully.views.kinds import CLAIMS
from sully.views.snapshotkinds import SCHEDULABLE_PODS

DEVICES = tuple(f"n{at}/gpu-{each}" for at in (1, 2) for each in (0, 1, 2))
PLAIN = (
    class_(),
    *(node(name) for name in ("n1", "n2")),
    *(slice_(*(device(f"gpu-{each}") for each in range(3)), on=name) for name in ("n1", "n2")),
    pod("p", "c"),
)
KEYS = ("example.com/a", "example.com/b")


def rules(marks: dict[str, str]) -> list[Obj]:
    return [
        rule(
            f"r{at}",
            key=key,
            select={"pool": each.partition("/")[0], "device": each.partition("/")[2]},
        )
        for at, (each, key) in enumerate(sorted(marks.items()))
    ]


def holders(held: set[str]) -> list[Obj]:
    return [claim(each.replace("/", "-"), holds=(each,)) for each in sorted(held)]


def judge(objects: list[Obj]) -> tuple[str, tuple[Help, ...]]:
    """Return where the pod goes, or what would help."""
    world = World(snapshot(objects))
    attempts = Attempts(world.snapshot)
    waiting = world.snapshot.get(SCHEDULABLE_PODS, Key(NAMESPACE, "p"))
    asked = world.snapshot.get(CLAIMS, Key(NAMESPACE, "c"))
    assert waiting is not None
    assert asked is not None
    found = attempts.attempt(waiting, [asked])
    if found.account is None:
        return found.node, ()
    return found.node, helps(found.account, attempts.tries(waiting, [asked]))


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 3),
    marks=st.dictionaries(st.sampled_from(DEVICES), st.sampled_from(KEYS)),
    held=st.sets(st.sampled_from(DEVICES)),
)
def test_whoever_follows_the_advice_gets_the_pod_placed(
    count: int, marks: dict[str, str], held: set[str]
) -> None:
    around = [*PLAIN, *rules(marks)]
    node_now, found = judge([*around, *holders(held), claim("c", request(count=count))])
    assert node_now or found, "three devices of a node are enough, tolerated and free"

    for each in found:
        tolerations = [
            {"key": one.key, "operator": "Equal", "value": one.value, "effect": one.effect}
            for one in each.trial.tolerate
        ]
        freed = {one.partition("/")[2].replace("-", "/", 1) for one in each.trial.free}
        asks = request(count=count, tolerations=tolerations)
        node_then, _ = judge([*around, *holders(held - freed), claim("c", asks)])
        assert node_then == each.node
