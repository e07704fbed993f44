"""Taints that advise against a device decide what is tried first, and never refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.allocation.fixtures import attempt, exactly, names, offer, pool_slice, unallocated
from sully.api.resource.types import Device, DeviceAttribute, DeviceConstraint, ResourceSlice
from sully.domain.allocation.verdicts import Allocated, UnallocatableReason
from sully.testing.builders import device, exists, taint

OLD = taint("PreferNoSchedule", key="example.com/old")
WORN = taint("PreferNoSchedule", key="example.com/worn")
BROKEN = taint("NoSchedule")


def pools(*entry: tuple[Device, ...]) -> list[ResourceSlice]:
    return [pool_slice(*devices, pool=f"pool-{place}") for place, devices in enumerate(entry)]


A, B, C = device("a", OLD), device("b"), device("c", OLD, WORN)
CASES: dict[str, tuple[list[ResourceSlice], dict[str, Any], list[list[str]] | str]] = {
    "the one without advice": (pools((A, B)), {}, [["b"]]),
    "the least advice": (pools((C, A)), {}, [["a"]]),
    "only advised against": (pools((C,)), {}, [["c"]]),
    "as many as there are": (pools((C, A, B)), {"count": 3}, [["b", "a", "c"]]),
    "another pool, if that one is better": (pools((A,), (B,)), {}, [["b"]]),
    "equally good, in order": (pools((A, device("d", WORN)), (C,)), {}, [["a"]]),
    "advice that is tolerated": (
        pools((A, B)),
        {"tolerations": [exists(key="example.com/old", effect="PreferNoSchedule")]},
        [["a"]],
    ),
    "a refusal stays one": (pools((device("x", BROKEN), A)), {}, [["a"]]),
    "All takes everything in order": (pools((A, B)), {"allocationMode": "All"}, [["a", "b"]]),
}


@pytest.mark.parametrize(("slices", "request_", "want"), CASES.values(), ids=CASES.keys())
def test_what_is_tried_first(
    slices: list[ResourceSlice], request_: dict[str, Any], want: list[list[str]] | str
) -> None:
    assert names(attempt(slices, unallocated(exactly(**request_)), advice=True)) == want


def test_with_the_gate_off_it_means_nothing() -> None:
    assert names(attempt(pools((A, B)), unallocated())) == [["a"]]


def test_a_constraint_matters_more() -> None:
    one, two = DeviceAttribute(string_value="1"), DeviceAttribute(string_value="2")
    devices = (device("a", OLD, model=one), device("b", model=two), device("c", OLD, model=one))
    same = DeviceConstraint(match_attribute="gpu.example.com/model")
    got = attempt(pools(devices), unallocated(exactly(count=2), constraints=[same]), advice=True)

    assert names(got) == [["a", "c"]]


MARKS = st.lists(st.sampled_from((OLD, WORN, BROKEN)), max_size=3, unique=True)


@given(st.lists(MARKS, min_size=1, max_size=6), st.integers(1, 4))
def test_advice_never_changes_whether_there_is_a_solution(
    marks: list[list[Any]], count: int
) -> None:
    devices = tuple(device(f"gpu-{place}", *entry) for place, entry in enumerate(marks))
    plain = attempt(offer(pools(devices)), unallocated(exactly(count=count)))
    advised = attempt(offer(pools(devices)), unallocated(exactly(count=count)), advice=True)

    assert isinstance(advised, Allocated) == isinstance(plain, Allocated)
    if isinstance(advised, Allocated):
        places = [int(name.removeprefix("gpu-")) for name in names(advised)[0]]
        levels = [len(marks[place]) for place in places]
        fit = sorted(len(mark) for mark in marks if BROKEN not in mark)
        assert levels == fit[:count]
    else:
        assert names(advised) == UnallocatableReason.CANNOT_ALLOCATE
