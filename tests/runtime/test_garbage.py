"""What lives long is set aside, and garbage among it is found all the same."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from sully.runtime.garbage import GROWTH, LITTLE, UNSEEN, Keeper


class Knot:
    """Refers to itself, so that only the collector can free it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
async def keeper() -> Iterator[Keeper]:
    made = Keeper()
    before = gc.get_threshold()
    made.start()
    yield made
    made.stop()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


async def test_survivors_are_set_aside(keeper: Keeper) -> None:
    kept = [Knot() for _ in range(10)]
    before = gc.get_freeze_count()

    gc.collect(1)

    assert gc.get_freeze_count() >= before + len(kept)


async def test_young_garbage_goes_as_ever(keeper: Keeper) -> None:
    ref = weakref.ref(Knot())

    gc.collect(0)

    assert ref() is None


async def test_garbage_among_what_was_set_aside_goes_once_there_is_much(keeper: Keeper) -> None:
    knot = Knot()
    ref = weakref.ref(knot)
    gc.collect(1)
    del knot

    keeper.look()
    assert ref() is not None, "too little for a sweep"
    more = [[] for _ in range(int(gc.get_freeze_count() * GROWTH))]
    gc.collect(1)
    keeper.look()

    assert ref() is None
    assert more


LOTS = {
    "a clean lot lets the next ones pass": (0, UNSEEN),
    "one with garbage is followed by a look": (LITTLE, 0),
}


@pytest.mark.parametrize(("garbage", "unseen"), LOTS.values(), ids=LOTS.keys())
async def test_how_often_the_young_are_looked_at(keeper: Keeper, garbage: int, unseen: int) -> None:
    gc.collect(0)
    gc.collect(2)  # looks in any case
    knots = [Knot() for _ in range(garbage)]
    del knots
    gc.collect(1)
    refs = []
    for _ in range(unseen + 1):
        refs.append(weakref.ref(Knot()))
        gc.collect(0)

    assert [ref() is None for ref in refs] == [False] * unseen + [True]
