"""Selectors found by device and by pool."""

from __future__ import annotations

import pytest

from sully.domain.devices.pools import PoolId
from sully.testing.builders import DRIVER, GPU
from sully.views.devices.name_index import ANY, NameIndex, Names

POOL = PoolId(DRIVER, "pool-1")
NAMES = {
    "everything": ANY,
    "driver": Names(DRIVER),
    "pool": Names(None, "pool-1"),
    "driver and pool": Names(DRIVER, "pool-1"),
    "device": Names(None, None, "gpu-0"),
    "driver and device": Names(DRIVER, None, "gpu-0"),
    "pool and device": Names(None, "pool-1", "gpu-0"),
    "all three": Names(DRIVER, "pool-1", "gpu-0"),
    "other driver": Names("other"),
    "other pool": Names(DRIVER, "pool-2"),
    "other device": Names(DRIVER, "pool-1", "gpu-1"),
    "device of another pool": Names(None, "pool-2", "gpu-0"),
}
WHOLE = {"everything", "driver", "pool", "driver and pool"}
NAMED = {"device", "driver and device", "pool and device", "all three"}


def filled() -> NameIndex[str]:
    index: NameIndex[str] = NameIndex()
    for name, names in NAMES.items():
        index.put(name, names, name)
    return index


def test_a_device_finds_what_names_it_or_leaves_it_open() -> None:
    assert set(filled().for_device(GPU)) == WHOLE | NAMED


@pytest.mark.parametrize(
    ("devices", "want"),
    [({"gpu-0", "gpu-2"}, {"gpu-0"}), ({"gpu-0", "gpu-1"}, {"gpu-0", "gpu-1"}), (set(), set())],
)
def test_a_pool_finds_what_is_for_all_and_who_has_more(devices: set[str], want: set[str]) -> None:
    everyone, named = filled().for_pool(POOL, lambda: devices)

    assert set(everyone) == WHOLE
    assert named == want


@pytest.mark.parametrize(("name", "names"), NAMES.items(), ids=NAMES.keys())
def test_what_was_removed_is_found_no_more(name: str, names: Names) -> None:
    index: NameIndex[str] = NameIndex()
    index.put(name, names, name)
    assert index.has_any_for(POOL) == (names.driver != "other" and names.pool != "pool-2")
    index.remove(name)
    index.remove(name)

    assert not index
    assert not index.has_any_for(POOL)
    assert index.for_device(GPU) == []


def test_what_moves_is_found_only_where_it_is_now() -> None:
    index: NameIndex[str] = NameIndex()
    index.put("a", Names(DRIVER, "pool-1"), "before")
    index.put("a", Names(None, "pool-1", "gpu-0"), "after")

    assert index.for_device(GPU) == ["after"]
    assert index.for_pool(POOL, lambda: {"gpu-0"}) == ([], {"gpu-0"})
