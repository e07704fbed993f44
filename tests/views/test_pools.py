"""A pool, slice by slice: whatever the order, the same devices in the end."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sully.api.resource.types import ResourceSlice
from sully.domain.devices.pools import PoolId, current
from sully.domain.devices.rules import sourced
from sully.testing.builders import device, rule, slice_, taint, text
from sully.views.devices.pools.pool import PoolSlices

ID = PoolId("gpu.example.com", "pool-1")
OLD = slice_("old", device("gpu-0"), device("gpu-1"))
NEW = slice_("new", device("gpu-0", taint()), generation=2)
HOT = (sourced(rule("hot")),)


def filled(*slices: ResourceSlice) -> PoolSlices:
    pool = PoolSlices(ID)
    for part in slices:
        pool.put(part)
    return pool


def names(pool: PoolSlices) -> list[str]:
    return [f"{device.slice.metadata.name}/{device.device.name}" for device in pool.devices()]


@pytest.mark.parametrize("slices", list(permutations((OLD, NEW))))
def test_only_the_newest_generation_counts(slices: tuple[ResourceSlice, ...]) -> None:
    assert names(filled(*slices)) == ["new/gpu-0"]


def test_older_slices_count_again_when_the_newest_is_deleted() -> None:
    pool = filled(OLD, NEW)

    changed = pool.remove("new")

    assert names(pool) == ["old/gpu-0", "old/gpu-1"]
    assert changed == {"gpu-0", "gpu-1"}


def test_a_slice_that_is_history_changes_nothing() -> None:
    pool = filled(NEW)

    assert pool.put(OLD) == frozenset()
    assert pool.remove("old") == frozenset()


def test_a_slice_can_move_to_the_next_generation() -> None:
    pool = filled(OLD)

    changed = pool.put(slice_("old", device("gpu-0"), generation=2))

    assert names(pool) == ["old/gpu-0"]
    # The first is what it was; only the generation is another.
    assert changed == frozenset({"gpu-1"})


def test_only_devices_that_are_different_are_named() -> None:
    pool = filled(slice_("s", device("a"), device("b"), device("c")))

    assert pool.put(slice_("s", device("a"), device("b", taint()), device("c"))) == frozenset({"b"})
    assert pool.put(slice_("s", device("a"), device("b", taint()))) == frozenset({"c"})
    assert pool.put(slice_("s", device("a"), device("b", taint()), version="9")) == frozenset()


def test_a_name_in_two_slices_is_one_device_the_first_by_slice() -> None:
    for slices in permutations((slice_("a", device("gpu-0")), slice_("b", device("gpu-0")))):
        pool = filled(*slices)

        assert names(pool) == ["a/gpu-0"]
        pool.remove("a")
        assert names(pool) == ["b/gpu-0"]


@pytest.mark.parametrize("is_first", [True, False], ids=["taints first", "names first"])
def test_a_device_is_the_same_object_by_name_and_with_taints(is_first: bool) -> None:
    pool = filled(slice_("s", device("gpu-0"), device("gpu-1")))
    by_name = {} if is_first else {name: pool.get(name) for name in sorted(pool.names())}

    tainted, again = pool.with_taints(HOT), pool.with_taints(())

    assert [each.taints for each in tainted.values()] == [HOT, HOT]
    assert [each.taints for each in again.values()] == [(), ()]
    by_name = by_name or {name: pool.get(name) for name in sorted(pool.names())}
    for name, published in by_name.items():
        assert tainted[name].published is again[name].published is published


def test_a_pool_that_was_read_with_taints_follows_its_slice() -> None:
    pool = filled(OLD)
    pool.with_taints(HOT)

    assert pool.put(slice_("old", device("gpu-0"))) == frozenset({"gpu-1"})
    assert list(pool.with_taints(HOT)) == ["gpu-0"]
    assert pool.remove("old") == {"gpu-0"}
    assert pool.with_taints(HOT) == {}


def test_verdicts_last_while_attributes_do() -> None:
    pool = filled(slice_("s", device("gpu-0", model=text("A"))))
    before = pool.get("gpu-0")
    pool.put(slice_("s", device("gpu-0", taint(), model=text("A"))))
    tainted = pool.get("gpu-0")
    pool.put(slice_("s", device("gpu-0", taint(), model=text("B"))))
    changed = pool.get("gpu-0")

    assert before is not None
    assert tainted is not None
    assert changed is not None
    assert tainted.content is before.content
    assert changed.content is not before.content


MARKS = slice_(
    "marks", device_taints=(("gpu-0", taint(key="a")), ("ghost", taint()), ("gpu-0", taint()))
)


@pytest.mark.parametrize("slices", list(permutations((OLD, MARKS))))
def test_slices_of_taints_mark_devices(slices: tuple[ResourceSlice, ...]) -> None:
    pool = filled(*slices)

    got = [(taint.taint.key, taint.origin.index) for taint in pool.slice_taints("gpu-0")]

    assert got == [("a", 0), (taint().key, 2)]
    assert "ghost" not in pool
    assert pool.put(slice_("marks", device_taints=())) == frozenset({"gpu-0", "ghost"})
    assert pool.slice_taints("gpu-0") == ()


def test_slices_of_taints_can_be_switched_off() -> None:
    pool = PoolSlices(ID, taint_slices=False)
    pool.put(OLD)

    assert pool.put(MARKS) == frozenset()
    assert pool.slice_taints("gpu-0") == ()


def test_what_the_driver_marked_is_known_by_name() -> None:
    hot = slice_("hot", device("gpu-0", taint()), device("gpu-1"))
    for slices in permutations((hot, slice_("a", device("gpu-0")), slice_("z", device("gpu-2")))):
        pool = filled(*slices, MARKS)

        # The one in `a` has none, but the other one may come to count.
        assert pool.tainted() == {"gpu-0"}
        pool.remove("marks")
        pool.remove("a")
        assert pool.tainted() == {"gpu-0"}
        pool.remove("hot")
        assert pool.tainted() == set()


SLICES = st.builds(
    lambda name, generation, devices: slice_(name, *map(device, devices), generation=generation),
    st.sampled_from("abc"),
    st.integers(1, 3),
    st.lists(st.sampled_from(("x", "y", "z")), unique=True),
)
EVENTS = st.lists(SLICES | st.sampled_from("abc"), max_size=12)


@given(EVENTS)
def test_after_any_events_a_pool_is_what_its_slices_report(
    events: list[str | ResourceSlice],
) -> None:
    pool = PoolSlices(ID)
    for event in events:
        if isinstance(event, str):
            pool.remove(event)
        else:
            pool.put(event)

    counting = current(pool.slices.values())
    assert pool.current() == list(counting)
    want: dict[str, str] = {}
    for item in counting:
        for result in item.spec.devices:
            want.setdefault(result.name, item.metadata.name)
    assert {device.device.name: device.slice.metadata.name for device in pool.devices()} == want
    assert len(pool) == len(want)


def _of(name: str, node: str, second: int, generation: int = 1) -> ResourceSlice:
    made = slice_(name, device("gpu-0"), device(f"only-{node}"), node=node, generation=generation)
    created = datetime(2026, 3, 1, 12, 0, second, tzinfo=UTC)
    return replace(made, metadata=replace(made.metadata, creation_timestamp=created))


VICTIM = _of("victim-1", "victim", 1)
LATER = _of("victim-2", "victim", 9)
EVIL = _of("evil", "evil", 5, generation=99)
SHARED = replace(
    slice_("shared", device("gpu-9"), node=None),
    metadata=replace(VICTIM.metadata, name="shared", uid="shared"),
)


@pytest.mark.parametrize("slices", list(permutations((VICTIM, LATER, EVIL))))
def test_a_pool_belongs_to_the_node_that_published_first(slices: tuple[ResourceSlice, ...]) -> None:
    pool = filled(*slices)

    assert (list(pool.ignored), pool.generation) == (["evil"], 1)
    assert {device.slice.spec.node_name for device in pool.devices()} == {"victim"}


def test_every_way_to_the_same_slices_leads_to_the_same_pool() -> None:
    """Also over slices that came and went, so a restart shows what was there before it."""
    events = [("put", VICTIM), ("put", EVIL), ("put", SHARED), ("remove", VICTIM)]
    for order in permutations(events):
        pool = PoolSlices(ID)
        for verb, entry in order:
            pool.put(entry) if verb == "put" else pool.remove(entry.metadata.name)
        left = {"evil": EVIL, "shared": SHARED}
        if order.index(("remove", VICTIM)) < order.index(("put", VICTIM)):
            left["victim-1"] = VICTIM
        fresh = filled(*left.values())

        assert names(pool) == names(fresh) == ["shared/gpu-9"]
        assert pool.ignored.keys() == fresh.ignored.keys() == left.keys() - {"shared"}


def test_the_next_node_has_the_pool_when_the_first_leaves_it() -> None:
    pool = filled(VICTIM, EVIL)

    changed = pool.remove("victim-1")

    assert (names(pool), pool.ignored) == (["evil/gpu-0", "evil/only-evil"], {})
    assert changed == {"gpu-0", "only-evil", "only-victim"}
    pool.remove("evil")
    assert pool.is_empty()


def test_a_pool_named_like_a_node_is_its_own_however_late_it_publishes() -> None:
    pool = PoolSlices(PoolId("gpu.example.com", "victim"))
    pool.put(EVIL)

    changed = pool.put(LATER)

    assert names(pool) == ["victim-2/gpu-0", "victim-2/only-victim"]
    assert changed == frozenset({"gpu-0", "only-evil", "only-victim"})


def test_without_owners_every_slice_counts() -> None:
    pool = PoolSlices(ID, has_owner=False)
    for item in (VICTIM, EVIL):
        pool.put(item)

    assert names(pool) == ["evil/gpu-0", "evil/only-evil"]


MIXED = (VICTIM, LATER, EVIL, SHARED, _of("late", "pool-1", 20), _of("third", "third", 3))
STEPS = st.lists(st.tuples(st.sampled_from(MIXED), st.booleans()), max_size=12)


@given(STEPS)
def test_only_what_is_left_decides_who_owns_a_pool(steps: list[tuple[ResourceSlice, bool]]) -> None:
    pool, left = PoolSlices(ID), dict[str, ResourceSlice]()
    for entry, stays in steps:
        before = {name: pool.get(name) for name in pool.names()}
        if stays:
            changed = pool.put(entry)
            left[entry.metadata.name] = entry
        else:
            changed = pool.remove(entry.metadata.name)
            left.pop(entry.metadata.name, None)
        after = {name: pool.get(name) for name in pool.names()}
        assert changed is None or before.keys() ^ after.keys() <= changed
    fresh = filled(*left.values())

    assert names(pool) == names(fresh)
    assert pool.ignored == fresh.ignored
    assert (pool.owner, pool.generation) == (fresh.owner, fresh.generation)
    assert pool.slices.keys() | pool.ignored.keys() == left.keys()
