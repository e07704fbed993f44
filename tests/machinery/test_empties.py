"""Lists that are always written are null when they are empty."""

from copy import deepcopy

import pytest

from api.core.writing import TABLES as CORE
from api.resource.writing import TABLES
from sully.machinery.serialization.decode import decode
from sully.machinery.serialization.empties import write_nulls

RESOURCE = "io.k8s.api.resource.v1"
CASES = {
    "in an object": (
        "DeviceClaim",
        {"requests": [], "constraints": [{"requests": []}]},
        {"requests": None, "constraints": [{}]},
    ),
    "in a list": (
        "ResourceClaimStatus",
        {"devices": [{"driver": "d", "pool": "p", "device": "x", "conditions": []}]},
        {"devices": [{"driver": "d", "pool": "p", "device": "x", "conditions": None}]},
    ),
    "an amount that is always written": (
        "CapacityRequestPolicy",
        {"validValues": []},
        {"default": None},
    ),
}


@pytest.mark.parametrize(("kind", "value", "want"), CASES.values(), ids=CASES.keys())
def test_nulls(kind: str, value: dict[str, object], want: dict[str, object]) -> None:
    table = TABLES.get(RESOURCE, kind)

    got = decode(value, table, [])
    write_nulls(got, table)

    assert got == want


def test_what_an_object_shares_with_the_stored_one_is_not_written() -> None:
    table = TABLES.get(RESOURCE, "ResourceClaim")
    spec: dict[str, object] = {"devices": {"requests": []}}
    own, shared = {"spec": deepcopy(spec)}, {"spec": spec}

    write_nulls(own, table, {"spec": spec})
    write_nulls(shared, table, {"spec": spec})

    assert own == {"spec": {"devices": {"requests": None}}}
    assert shared == {"spec": {"devices": {"requests": []}}}


def test_definitions_are_stored_as_they_are() -> None:
    table = CORE.get(
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1", "CustomResourceDefinitionStatus"
    )

    got = decode({"conditions": [], "storedVersions": []}, table, [])
    write_nulls(got, table)

    assert (got["conditions"], got["storedVersions"]) == ([], [])
