"""Leases."""

from typing import Any

import pytest

from api.core.writing import RESOURCES, cells, create

GROUP = "coordination.k8s.io"
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "free": ({}, []),
    "held": ({"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0}, []),
    "no duration": (
        {"leaseDurationSeconds": 0},
        ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
    ),
    "transitions": (
        {"leaseTransitions": -1},
        ["spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"],
    ),
    "coordinated election, which is off": ({"strategy": "Dice", "preferredHolder": "you"}, []),
}


@pytest.mark.parametrize(("spec", "want"), CASES.values(), ids=CASES.keys())
def test_create(spec: dict[str, Any], want: list[str]) -> None:
    assert create("leases", {"spec": spec}, group=GROUP).texts() == want


def test_row_names_the_holder() -> None:
    held = create("leases", {"spec": {"holderIdentity": "me"}}, group=GROUP).obj

    assert cells("leases", held, group=GROUP)["Holder"] == "me"


def test_put_creates_a_lease() -> None:
    lease = RESOURCES[GROUP, "leases"]

    assert lease.create_on_update
    assert not lease.storage_version.unconditional_update
