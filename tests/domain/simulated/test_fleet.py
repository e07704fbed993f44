"""Machines: their names, addresses and devices follow from their numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.domain.simulated.fleet import (
    MODELS,
    MOST_NODES,
    Fleet,
    address_of,
    model_of,
    name_of,
    number_of,
    pod_network,
)
from sully.domain.simulated.machines import (
    device_class,
    digest_of,
    node_digest,
    node_of,
    slices_of,
)
from sully.testing.clock import NOON

NUMBERS = st.integers(0, MOST_NODES - 1)


@given(NUMBERS)
def test_a_name_shows_its_machine(number: int) -> None:
    assert number_of(name_of(number)) == number


STRANGE = ["node-1", "worker-1", "worker-00001", "worker-10000", "worker-", "worker-0001x", ""]


@pytest.mark.parametrize("name", STRANGE)
def test_other_names_are_not_machines(name: str) -> None:
    assert number_of(name) is None


@pytest.mark.parametrize("of", [address_of, pod_network], ids=["machines", "pods"])
def test_addresses_are_all_different(of: Callable[[int], str]) -> None:
    numbers = [of(number) for number in range(MOST_NODES)]

    assert len(set(numbers)) == MOST_NODES
    assert all(int(part) < 256 for item in numbers for part in item.strip(".").split("."))


def test_any_few_machines_have_every_model() -> None:
    assert {model_of(number) for number in range(len(MODELS))} == set(MODELS)


@given(NUMBERS)
def test_a_digest_does_not_depend_on_the_time(number: int) -> None:
    fleet = Fleet(MOST_NODES, 0)
    made = node_of(fleet, number, NOON)

    digest = node_digest(fleet, number)
    assert made["metadata"]["annotations"] == {"sully.dev/simulated-digest": digest}


@given(NUMBERS)
def test_fleets_with_different_prefixes_have_different_machines(number: int) -> None:
    one, two = Fleet(1, 1, prefix="gpu"), Fleet(1, 1, prefix="gpu-b")

    assert one.number(one.name(number)) == two.number(two.name(number)) == number
    assert one.number(two.name(number)) is two.number(one.name(number)) is None


def test_driver_labels_and_taint_of_a_fleet_are_published() -> None:
    labels = {"rack": "r1", "sully.dev/simulated": "false"}
    fleet = Fleet(1, 1, driver="gpu.example.com", labels=labels, tainted=True)
    node, (published,) = node_of(fleet, 0, NOON), slices_of(fleet, 0)

    assert (
        node["metadata"]["labels"].items() >= {"rack": "r1", "sully.dev/simulated": "true"}.items()
    )
    assert node["spec"]["taints"] == [
        {"key": "sully.dev/simulated", "value": "true", "effect": "NoSchedule"}
    ]
    assert published["spec"]["driver"] == "gpu.example.com"
    assert device_class(fleet.driver)["spec"]["selectors"] == [
        {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    ]
    assert "taints" not in node_of(Fleet(1, 1), 0, NOON)["spec"]


@given(st.integers(0, 512), NUMBERS)
def test_every_device_is_in_one_slice(devices: int, number: int) -> None:
    made = slices_of(Fleet(MOST_NODES, devices), number)

    names = [device["name"] for item in made for device in item["spec"]["devices"]]
    assert names == [f"gpu-{index}" for index in range(devices)]
    assert {item["spec"]["pool"]["resourceSliceCount"] for item in made} <= {len(made)}
    assert all(len(item["spec"]["devices"]) <= 64 for item in made)


def test_a_fault_changes_the_digest_of_its_slice_only() -> None:
    taint = {"key": "example.com/hot", "effect": "NoSchedule"}
    well, sick = (slices_of(Fleet(2, 100, faults), 1) for faults in ({}, {(1, 70): taint}))

    same = [a["metadata"] == b["metadata"] for a, b in zip(well, sick, strict=True)]
    assert same == [True, False]


def test_digests_differ_where_the_content_does() -> None:
    values = [digest_of({"a": value}) for value in (1, 2, "1", [1])]

    assert all(a != b for a, b in pairwise(values))
