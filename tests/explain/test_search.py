"""What would help is found by trying, works, and nothing of it can be left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from sully.domain.scheduling.diagnosis import BlockingTaint, Diagnosis, Holder, RequestAccount
from sully.explain.trials.changes import Change, Excess, LargestNode, NodeObstacles, Solution
from sully.explain.trials.search import fewest, solutions, too_large

TAINTS = tuple(
    BlockingTaint(
        key=f"k{at}", effect="NoSchedule", origin=f"DeviceTaintRule/r{at}", devices=at + 1
    )
    for at in range(4)
)
CLAIMS = tuple(f"ns/c{at}" for at in range(5))
WHERE = ("ns/c", "gpu")
Nodes = Mapping[str, tuple[frozenset[str], frozenset[str]]]


@dataclass
class Cluster:
    """Nodes, each with the taints and the holders that prevent scheduling of the pod on it."""

    nodes_: Nodes
    asked: list[tuple[Change, str]] = field(default_factory=list)

    def node_for(self, change: Change, only: str = "") -> str:
        self.asked.append((change, only))
        there = change.requests is None or WHERE in change.requests
        keys, free = (
            {toleration.key for toleration in change.tolerate if there},
            set(change.deallocate),
        )
        for name in sorted(self.nodes_):
            taints, holders = self.nodes_[name]
            if only in ("", name) and taints <= keys and holders <= free:
                return name
        return ""

    def diagnosis_after(self, change: Change, only: str = "") -> Diagnosis | None:
        self.asked.append((change, only))
        return account({name: self.nodes_[name] for name in ([only] if only else self.nodes_)})

    def nodes(self) -> list[str]:
        return sorted(self.nodes_)

    def obstacles(self) -> list[NodeObstacles]:
        return []

    def exceeding(self) -> list[Excess]:
        return []

    def reveals(self, taint: BlockingTaint, node: str) -> bool:
        return False

    def pods_on(self, node: str) -> list[str]:
        raise AssertionError(f"no pod has to be removed from {node}")

    def claims_near(self, node: str) -> list[str]:
        return sorted(self.nodes_[node][1])

    def largest(self) -> Mapping[tuple[str, str], LargestNode]:
        return {("ns/c", "a/big"): LargestNode(8, "n1"), ("ns/c", "a/any"): LargestNode(9, "n2")}


def account(nodes: Nodes) -> Diagnosis:
    keys = {key for taints, _ in nodes.values() for key in taints}
    held = {claim for _, holders in nodes.values() for claim in holders}
    asked = RequestAccount(
        claim=WHERE[0],
        request=WHERE[1],
        wanted=1,
        refused={"taint": 1},
        taints=tuple(taint for taint in TAINTS if taint.key in keys),
        holders=tuple(Holder(claim=item, devices=1) for item in sorted(held)),
    )
    return Diagnosis(nodes=len(nodes), reached=len(nodes), requests=(asked,))


def smaller(change: Change) -> list[Change]:
    """Return the changes with one thing less."""
    return [
        *(
            replace(change, tolerate=tuple(one for one in change.tolerate if one is not toleration))
            for toleration in change.tolerate
        ),
        *(
            replace(change, deallocate=tuple(one for one in change.deallocate if one != item))
            for item in change.deallocate
        ),
    ]


OBSTACLES = st.tuples(
    st.frozensets(st.sampled_from([taint.key for taint in TAINTS])),
    st.frozensets(st.sampled_from(CLAIMS)),
).filter(any)
WORLDS = st.dictionaries(st.sampled_from(("n1", "n2", "n3")), OBSTACLES, min_size=1)


@given(WORLDS)
def test_what_is_advised_works_and_is_needed(
    nodes: Nodes,
) -> None:
    world = Cluster(nodes)
    result = solutions(account(world.nodes_), world)

    assert result, "everything together always helps"
    for item in result:
        assert world.node_for(item.change, item.node) == item.node
        assert not any(world.node_for(less, item.node) for less in smaller(item.change))


@given(WORLDS)
def test_all_nodes_are_asked_only_a_few_times(
    nodes: Nodes,
) -> None:
    world = Cluster(nodes)
    solutions(account(world.nodes_), world)

    assert sum(not only for _, only in world.asked) <= 8


def test_one_that_helps_alone_is_preferred_to_two_that_help_together() -> None:
    both, one = frozenset(("k0", "k1")), frozenset(("k1",))
    world = Cluster({"n1": (both, frozenset()), "n2": (one, frozenset())})

    assert solutions(account(world.nodes_), world) == (
        Solution(Change(tolerate=(TAINTS[1],), requests=(WHERE,)), "n2"),
    )


def test_tolerating_and_waiting_are_both_reported() -> None:
    world = Cluster(
        {"n1": (frozenset(("k0",)), frozenset()), "n2": (frozenset(), frozenset(("ns/c1",)))}
    )

    assert solutions(account(world.nodes_), world) == (
        Solution(Change(tolerate=(TAINTS[0],), requests=(WHERE,)), "n1"),
        Solution(Change(deallocate=("ns/c1",)), "n2"),
    )


def test_nothing_solutions() -> None:
    world = Cluster({"n1": (frozenset(("nobody knows it",)), frozenset())})

    assert solutions(account(world.nodes_), world) == ()


@given(st.sets(st.frozensets(st.integers(0, 9), min_size=1), min_size=1, max_size=4))
def test_the_fewest_are_enough_and_all_needed(ways: set[frozenset[int]]) -> None:
    def enough(remaining: Sequence[int]) -> bool:
        return any(way <= set(remaining) for way in ways)

    result = fewest(range(10), enough)

    assert enough(result)
    assert result == sorted(result)
    assert not any(enough([one for one in result if one != item]) for item in result)


def test_of_many_few_are_asked_about() -> None:
    asked: list[Sequence[int]] = []

    def enough(remaining: Sequence[int]) -> bool:
        asked.append(remaining)
        return {3, 700} <= set(remaining)

    assert fewest(range(1000), enough) == [3, 700]
    assert len(asked) <= 25


def test_a_request_is_too_large_only_if_all_its_alternatives_are() -> None:
    big = RequestAccount(claim="ns/c", request="a/big", wanted=9)
    fits = RequestAccount(claim="ns/c", request="a/any", wanted=9)
    large = RequestAccount(claim="ns/c", request="a/any", wanted=10)

    def shortages(*asked: RequestAccount) -> tuple[tuple[RequestAccount, LargestNode], ...]:
        return too_large(Diagnosis(nodes=1, requests=asked), Cluster({}))

    assert shortages(big, fits) == ()
    assert shortages(big, large) == ((big, LargestNode(8, "n1")), (large, LargestNode(9, "n2")))
