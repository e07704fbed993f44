"""Which slices of a pool count, and whether they are all there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import permutations

import pytest
from msgspec.structs import replace

from sully.api.resource.types import ResourceSlice
from sully.domain.devices.pools import Standing, current, newest_generation, pool_owner, standing
from sully.testing.builders import slice_

OLD = slice_("old", generation=1)
A, B = slice_("a", generation=2, count=2), slice_("b", generation=2, count=2)
FAR = slice_("far", generation=3)


def test_the_newest_generation_counts_by_name() -> None:
    assert current((B, OLD, A)) == (A, B)
    assert newest_generation((B, OLD)) == 2


def test_a_pool_without_slices_has_no_generation() -> None:
    assert current(()) == ()
    assert newest_generation(()) is None


@dataclass(frozen=True)
class Case:
    visible: tuple[ResourceSlice, ...]
    everywhere: tuple[ResourceSlice, ...]
    want: Standing


CASES = {
    "all there": Case((A, B), (A, B), Standing.COMPLETE),
    "older ones beside them": Case((A, B, OLD), (A, B, OLD), Standing.COMPLETE),
    "one missing": Case((A,), (A,), Standing.INCOMPLETE),
    "the other one is for another node": Case((A,), (A, B), Standing.COMPLETE),
    "one too many": Case(
        (A, B, slice_("c", generation=2, count=2)),
        (A, B, slice_("c", generation=2, count=2)),
        Standing.INCOMPLETE,
    ),
    "a newer one elsewhere": Case((A,), (A, FAR), Standing.REPLACED),
    "complete here, whatever is elsewhere": Case((A, B), (A, B, FAR), Standing.COMPLETE),
    "nothing to see": Case((), (A, B), Standing.INCOMPLETE),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_standing(case: Case) -> None:
    assert standing(case.visible, case.everywhere) is case.want


def _made(name: str, node: str | None, second: int | None = 0, uid: str = "") -> ResourceSlice:
    created = None if second is None else datetime(2026, 3, 1, 12, 0, second, tzinfo=UTC)
    made = slice_(name, node=node)
    metadata = replace(made.metadata, creation_timestamp=created, uid=uid or name)
    spec = replace(made.spec, all_nodes=None if node else True)
    return replace(made, metadata=metadata, spec=spec)


OWNERS: dict[str, tuple[str, tuple[ResourceSlice, ...], str]] = {
    "nothing": ("p", (), ""),
    "one node": ("p", (_made("a", "n1"), _made("b", "n1", 9)), "n1"),
    "several nodes": ("p", (_made("a", None),), ""),
    "the oldest": ("p", (_made("a", "n2", 5), _made("b", "n1", 4)), "n1"),
    "the oldest, whatever its name": ("p", (_made("a", "n1", 4), _made("b", "n2", 5)), "n1"),
    "within a second": ("p", (_made("a", "n1", 4, "y"), _made("b", "n2", 4, "x")), "n2"),
    "the age is unknown": ("p", (_made("a", "n1", None), _made("b", "n2", 4)), "n2"),
    "named like a node": ("n2", (_made("a", "n1", 4), _made("b", "n2", 5)), "n2"),
    "named like a node that is not here": ("n3", (_made("a", "n1", 4), _made("b", "n2", 5)), "n1"),
    "beside slices for several nodes": ("p", (_made("a", "n1", 4), _made("b", None, 5)), ""),
    "its own, beside slices for several nodes": (
        "n1",
        (_made("a", "n1", 4), _made("b", None, 5)),
        "n1",
    ),
}


@pytest.mark.parametrize(("pool", "slices", "want"), OWNERS.values(), ids=OWNERS.keys())
def test_owner(pool: str, slices: tuple[ResourceSlice, ...], want: str) -> None:
    nodes = {slice_.spec.node_name or "" for slice_ in slices}

    assert {pool_owner(pool, nodes, order) for order in permutations(slices)} == {want}
