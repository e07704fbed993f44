"""Evaluating selectors within a budget: it only refuses, and slices change nothing."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from devices import DRIVER, cel, device, text
from domain.allocation.fixtures import demand, exactly, names, offer, pool_slice, wish
from sully.domain.allocation.allocator import allocate
from sully.domain.allocation.ledger import Ledger
from sully.domain.allocation.verdicts import Failed, Verdict
from sully.domain.devices.selectors import compile_all, content_of, mismatch
from sully.machinery.cel import CostBudget, UnfinishedError
from sully.machinery.compat import Compat

_NUMBERS = count()
"""Verdicts are remembered by expression, so every attempt brings its own."""
LIST = "[0,1,2,3,4,5,6,7,8,9]"
PLENTY = 10**12


def loop(model: str, number: int) -> str:
    """Return an expression that chooses a model and costs some three hundred units."""
    model_is = f'device.attributes["gpu.example.com"].model == "{model}"'
    return f"{LIST}.all(x, x >= 0) && {number} >= 0 && {model_is}"


def attempt(models: list[str], wanted: list[str], budget: CostBudget) -> Verdict:
    """Allocate one device for each wanted model."""
    devices = [device(f"gpu-{at}", model=text(model)) for at, model in enumerate(models)]
    requests = [
        exactly(f"r{at}", expressions=[loop(model, next(_NUMBERS))])
        for at, model in enumerate(wanted)
    ]
    asked = replace(demand(wish(*requests)), budget=budget)
    offered = offer([pool_slice(*devices)])
    while True:
        try:
            return allocate(asked, offered, Ledger(), explain=False)
        except UnfinishedError as unfinished:
            if unfinished.work is not None:
                unfinished.work()
            budget.resume()


MODELS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4)


@given(models=MODELS, wanted=MODELS, units=st.integers(0, 6000))
def test_a_smaller_budget_only_refuses(models: list[str], wanted: list[str], units: int) -> None:
    unlimited = attempt(models, wanted, CostBudget(PLENTY))

    limited = attempt(models, wanted, CostBudget(units))

    if isinstance(limited, Failed):
        assert limited.over_budget
    else:
        assert names(limited) == names(unlimited)


@given(models=MODELS, wanted=MODELS, per_slice=st.integers(1, 6000))
def test_slices_change_nothing(models: list[str], wanted: list[str], per_slice: int) -> None:
    unlimited = attempt(models, wanted, CostBudget(PLENTY))

    sliced = attempt(models, wanted, CostBudget(PLENTY, per_slice=per_slice))

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
    wanted = demand(wish(exactly(expressions=[expression])))

    tried = [
        allocate(replace(wanted, budget=CostBudget(units)), offered, Ledger()) for _ in range(3)
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
    wanted = demand(wish(exactly(expressions=[expression])))

    got = allocate(
        replace(wanted, budget=CostBudget(10)),
        offer([pool_slice(device("gpu-0", model=text("a")))]),
        Ledger(),
        compat=Compat.KUBERNETES if strict else Compat.SULLY,
    )

    assert got == Failed(want, over_budget=True)
