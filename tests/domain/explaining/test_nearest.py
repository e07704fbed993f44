"""What would help is found by trying, works, and nothing of it can be left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from sully.domain.explaining.nearest import Help, Largest, Trial, helps, too_large
from sully.domain.scheduling.account import Account, Asked, Holder, Taint

TAINTS = tuple(
    Taint(key=f"k{at}", effect="NoSchedule", origin=f"DeviceTaintRule/r{at}", devices=at + 1)
    for at in range(4)
)
CLAIMS = tuple(f"ns/c{at}" for at in range(5))
Nodes = Mapping[str, tuple[frozenset[str], frozenset[str]]]


@dataclass
class World:
    """Nodes, each with the taints and the holders that keep the pod off it."""

    nodes: Nodes
    asked: list[tuple[Trial, str]] = field(default_factory=list)

    def node_for(self, trial: Trial, only: str = "") -> str:
        self.asked.append((trial, only))
        keys, free = {each.key for each in trial.tolerate}, set(trial.free)
        for name in sorted(self.nodes):
            taints, holders = self.nodes[name]
            if only in ("", name) and taints <= keys and holders <= free:
                return name
        return ""

    def account_after(self, trial: Trial) -> Account | None:
        self.asked.append((trial, ""))
        return account(self)

    def holders_near(self, node: str) -> frozenset[str]:
        return self.nodes[node][1]

    def largest(self) -> Mapping[tuple[str, str], Largest]:
        return {("ns/c", "a/big"): Largest(8, "n1"), ("ns/c", "a/any"): Largest(9, "n2")}


def account(world: World) -> Account:
    keys = {key for taints, _ in world.nodes.values() for key in taints}
    held = {claim for _, holders in world.nodes.values() for claim in holders}
    asked = Asked(
        claim="ns/c",
        request="gpu",
        wanted=1,
        refused={"taint": 1},
        taints=tuple(each for each in TAINTS if each.key in keys),
        holders=tuple(Holder(claim=each, devices=1) for each in sorted(held)),
    )
    return Account(nodes=len(world.nodes), reached=len(world.nodes), requests=(asked,))


def smaller(trial: Trial) -> list[Trial]:
    """Return the trials with one thing less."""
    return [
        *(
            replace(trial, tolerate=tuple(one for one in trial.tolerate if one is not each))
            for each in trial.tolerate
        ),
        *(
            replace(trial, free=tuple(one for one in trial.free if one != each))
            for each in trial.free
        ),
    ]


OBSTACLES = st.tuples(
    st.frozensets(st.sampled_from([each.key for each in TAINTS])),
    st.frozensets(st.sampled_from(CLAIMS)),
).filter(any)
WORLDS = st.dictionaries(st.sampled_from(("n1", "n2", "n3")), OBSTACLES, min_size=1)


@given(WORLDS)
def test_what_is_advised_works_and_is_needed(
    nodes: Nodes,
) -> None:
    world = World(nodes)
    found = helps(account(world), world)

    assert found, "everything together always helps"
    for each in found:
        assert world.node_for(each.trial, each.node) == each.node
        assert not any(world.node_for(less, each.node) for less in smaller(each.trial))


@given(WORLDS)
def test_all_nodes_are_asked_only_a_few_times(
    nodes: Nodes,
) -> None:
    world = World(nodes)
    helps(account(world), world)

    assert sum(not only for _, only in world.asked) <= 8


def test_one_that_helps_alone_is_preferred_to_two_that_help_together() -> None:
    both, one = frozenset(("k0", "k1")), frozenset(("k1",))
    world = World({"n1": (both, frozenset()), "n2": (one, frozenset())})

    assert helps(account(world), world) == (Help(Trial(tolerate=(TAINTS[1],)), "n2"),)


def test_tolerating_and_waiting_are_both_told() -> None:
    world = World(
        {"n1": (frozenset(("k0",)), frozenset()), "n2": (frozenset(), frozenset(("ns/c1",)))}
    )

    assert helps(account(world), world) == (
        Help(Trial(tolerate=(TAINTS[0],)), "n1"),
        Help(Trial(free=("ns/c1",)), "n2"),
    )


def test_nothing_helps() -> None:
    world = World({"n1": (frozenset(("k0",)), frozenset())})

    assert helps(account(World({})), world) == ()


def test_a_request_is_too_large_only_if_all_its_alternatives_are() -> None:
    big = Asked(claim="ns/c", request="a/big", wanted=9)
    fits = Asked(claim="ns/c", request="a/any", wanted=9)
    large = Asked(claim="ns/c", request="a/any", wanted=10)

    def found(*asked: Asked) -> tuple[tuple[Asked, Largest], ...]:
        return too_large(Account(nodes=1, requests=asked), World({}))

    assert found(big, fits) == ()
    assert found(big, large) == ((big, Largest(8, "n1")), (large, Largest(9, "n2")))
