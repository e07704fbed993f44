"""Which slices of a pool count, and whether they are all there."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from devices import slice_
from sully.api.resource.types import ResourceSlice
from sully.domain.pools import Standing, current, newest_generation, standing

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
