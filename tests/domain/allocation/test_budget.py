"""Evaluating selectors and trying devices within a budget: it only refuses, and slices change
nothing.
"""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from domain.allocation.fixtures import demand, exactly, names, offer, pool_slice, unallocated
from sully.api.resource.types import DeviceConstraint
from sully.domain.allocation.allocator import allocate
from sully.domain.allocation.failures import TimedOut
from sully.domain.allocation.pools.node_pools import NodePools
from sully.domain.allocation.requests import Demand
from sully.domain.allocation.usage.ledger import Ledger
from sully.domain.allocation.verdicts import Allocated, Failed, Verdict
from sully.domain.devices.selectors import compile_all, content_of, mismatch
from sully.machinery.cel import CostBudget, UnfinishedError
from sully.machinery.compat import Compat
from sully.testing.builders import DRIVER, cel, device, text

_NUMBERS = count()
"""Verdicts are cached by expression, so every attempt brings its own."""
LIST = "[0,1,2,3,4,5,6,7,8,9]"
PLENTY = 10**12


def loop(model: str, number: int) -> str:
    """Return an expression that chooses a model and costs some three hundred units."""
    model_is = f'device.attributes["gpu.example.com"].model == "{model}"'
    return f"{LIST}.all(x, x >= 0) && {number} >= 0 && {model_is}"


def attempt(models: list[str], expected: list[str], budget: CostBudget) -> Verdict:
    """Allocate one device for each wanted model."""
    devices = [device(f"gpu-{at}", model=text(model)) for at, model in enumerate(models)]
    requests = [
        exactly(f"r{at}", expressions=[loop(model, next(_NUMBERS))])
        for at, model in enumerate(expected)
    ]
    asked = replace(demand(unallocated(*requests)), budget=budget)
    return finish(asked, offer([pool_slice(*devices)]), Ledger())[0]


def finish(asked: Demand, offered: NodePools, use: Ledger) -> tuple[Verdict, int]:
    """Allocate; return how often that was interrupted, too."""
    for interruptions in count():
        try:
            return allocate(asked, offered, use, explain=False), interruptions
        except UnfinishedError as unfinished:
            if unfinished.work is not None:
                unfinished.work()
            asked.budget.resume()
    raise AssertionError


MODELS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4)


@given(models=MODELS, expected=MODELS, units=st.integers(0, 6000))
def test_a_smaller_budget_only_refuses(models: list[str], expected: list[str], units: int) -> None:
    unlimited = attempt(models, expected, CostBudget(PLENTY))

    limited = attempt(models, expected, CostBudget(units))

    if isinstance(limited, Failed):
        assert limited.over_budget
    else:
        assert names(limited) == names(unlimited)


@given(models=MODELS, expected=MODELS, per_slice=st.integers(1, 6000))
def test_slices_change_nothing(models: list[str], expected: list[str], per_slice: int) -> None:
    unlimited = attempt(models, expected, CostBudget(PLENTY))

    sliced = attempt(models, expected, CostBudget(PLENTY, per_slice=per_slice))

    assert names(sliced) == names(unlimited)


def test_the_next_attempt_gets_further() -> None:
    known, expression = loop("b", next(_NUMBERS)), loop("b", next(_NUMBERS))
    compile_all(cel(known, expression), CostBudget())
    everything = CostBudget(PLENTY)
    for model in "ab":
        mismatch(cel(known), content_of(DRIVER, device(model=text(model))), everything)
    units = (PLENTY - everything.left) * 3 // 4
    offered = offer(
        [pool_slice(device("gpu-0", model=text("a")), device("gpu-1", model=text("b")))]
    )
    expected = demand(unallocated(exactly(expressions=[expression])))

    tried = [
        allocate(replace(expected, budget=CostBudget(units)), offered, Ledger()) for _ in range(3)
    ]

    assert isinstance(tried[0], Failed)
    assert names(tried[2]) == [["gpu-1"]]


@pytest.mark.parametrize(
    ("strict", "want"),
    [
        (True, "node node-1: timed out trying to allocate devices"),
        (
            False,
            "node node-1: timed out trying to allocate devices: evaluating the selectors exceeds"
            " the budget of 10 cost units",
        ),
    ],
)
def test_texts(strict: bool, want: str) -> None:
    expression = loop("a", next(_NUMBERS))
    expected = demand(unallocated(exactly(expressions=[expression])))

    got = allocate(
        replace(expected, budget=CostBudget(10)),
        offer([pool_slice(device("gpu-0", model=text("a")))]),
        Ledger(),
        compat=Compat.KUBERNETES if strict else Compat.SULLY,
    )

    assert isinstance(got, Failed)
    assert got.over_budget
    assert names(got) == want


# -- trying devices --------------------------------------------------------------------------------

DISTINCT = DeviceConstraint(requests=("many",), distinct_attribute="gpu.example.com/index")


def entangled(devices: int, expected: int, last: int = 0) -> tuple[Demand, NodePools]:
    """Return a claim for a number of devices, all different, and then for one of them."""
    offered = offer(
        [pool_slice(*(device(f"gpu-{at}", index=text(str(at))) for at in range(devices)))]
    )
    index = 'device.attributes["gpu.example.com"].index'
    claim = unallocated(
        exactly("many", count=expected),
        exactly("last", expressions=[f'{index} == "{last}"']),
        constraints=[DISTINCT],
    )
    return demand(claim), offered


SIZES = {"devices": st.integers(2, 9), "expected": st.integers(1, 8), "last": st.integers(0, 8)}


@given(**SIZES, per_slice=st.integers(1, 3000))
def test_slices_of_a_search_change_nothing(
    devices: int, expected: int, last: int, per_slice: int
) -> None:
    asked, offered = entangled(devices, expected, last)
    unlimited = allocate(asked, offered, Ledger(), explain=False)

    sliced, _ = finish(
        replace(asked, budget=CostBudget(PLENTY, per_slice=per_slice)), offered, Ledger()
    )

    assert names(sliced) == names(unlimited)


def test_a_slice_bounds_how_much_is_tried() -> None:
    asked, offered = entangled(devices=16, expected=8)
    # This evaluates the selectors.
    want = allocate(asked, offered, Ledger(), explain=False)
    whole, halves = CostBudget(PLENTY, per_slice=20_000), CostBudget(PLENTY, per_slice=10_000)

    got, interruptions = finish(replace(asked, budget=whole), offered, Ledger())
    again, more = finish(replace(asked, budget=halves), offered, Ledger())

    assert names(got) == names(again) == names(want)
    assert interruptions > 10
    assert more == pytest.approx(2 * interruptions, rel=0.1)
    assert halves.left == whole.left, "nothing is tried twice"


def test_a_search_starts_over_when_devices_were_taken() -> None:
    asked, offered = entangled(devices=9, expected=4)
    use = Ledger()
    budget = CostBudget(PLENTY, per_slice=1000)
    with pytest.raises(UnfinishedError):
        allocate(replace(asked, budget=budget), offered, use, explain=False)
    taken = allocate(demand(unallocated(exactly(count=2))), offered, use)
    assert isinstance(taken, Allocated)
    use.take(taken.allocations[0])
    budget.resume()

    got, _ = finish(replace(asked, budget=budget), offered, use)

    assert names(got) == names(allocate(asked, offered, use))


def test_what_was_found_on_other_nodes_is_not_searched_again() -> None:
    asked, offered = entangled(devices=12, expected=6)
    other, use, budget = (
        entangled(devices=11, expected=6)[1],
        Ledger(),
        CostBudget(per_slice=PLENTY),
    )
    asked = replace(asked, budget=budget)

    got = [allocate(asked, item, use, explain=False) for item in (offered, other)]
    left = budget.left
    again = [allocate(asked, item, use, explain=False) for item in (offered, other)]

    assert left < budget.units
    assert budget.left == left
    assert [names(item) for item in again] == [names(item) for item in got]


def test_a_search_that_exceeds_the_budget() -> None:
    asked, offered = entangled(devices=24, expected=12)

    got = allocate(replace(asked, budget=CostBudget(100_000)), offered, Ledger())

    assert got == Failed(TimedOut("node-1"))
    assert names(got) == "node node-1: timed out trying to allocate devices"
