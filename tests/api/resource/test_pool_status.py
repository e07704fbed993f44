"""ResourcePoolStatusRequests: what may be asked, and a status that is written once."""

from typing import Any

import pytest

from api.resource.bodies import CASELESS_TEXT, SUBDOMAIN_TEXT, body
from api.resource.test_registration import NOW
from api.resource.writing import BY_KIND, Writer, gates

ALPHA = Writer(version="v1alpha3")
TYPES = Writer(version="v1alpha3", gates=gates(DRAPartitionableDevicesType=True))
Obj = dict[str, Any]
COMPLETE = {
    "type": "Complete",
    "status": "True",
    "reason": "CalculationComplete",
    "message": "",
    "lastTransitionTime": "2026-03-01T11:55:00Z",
}
POOL = {"driver": "d.com", "poolName": "p", "generation": 1}


def request(status: Obj | None = None, **spec: Any) -> Obj:
    usual = body("ResourcePoolStatusRequest", {"driver": "d.com", **spec})
    return usual if status is None else usual | {"status": status}


SPECS: dict[str, tuple[Obj, list[str]]] = {
    "driver": ({}, []),
    "everything": ({"poolName": "a/b", "limit": 1000}, []),
    "a long driver": ({"driver": "a" * 70}, []),
    "no driver": ({"driver": ""}, ["driver: Required value"]),
    "bad driver": ({"driver": "d_d"}, [f'driver: Invalid value: "d_d": {CASELESS_TEXT}']),
    "bad pool": (
        {"poolName": "a/B"},
        [f'poolName: Invalid value: "B": segment 1: {SUBDOMAIN_TEXT}'],
    ),
    "no limit": ({"limit": 0}, ["limit: Invalid value: 0: must be greater than or equal to 1"]),
    "a large limit": (
        {"limit": 1001},
        ["limit: Invalid value: 1001: must be less than or equal to 1000"],
    ),
}


@pytest.mark.parametrize(("spec", "want"), SPECS.values(), ids=SPECS.keys())
def test_what_is_asked(spec: Obj, want: list[str]) -> None:
    assert ALPHA.create(request(**spec)).texts == [f"spec.{text}" for text in want]


def test_the_limit_has_a_default_and_a_status_is_not_accepted() -> None:
    made = ALPHA.create(request({"poolCount": 1}))

    assert made.spec == {"driver": "d.com", "limit": 100}
    assert "status" not in made.obj


def test_the_attribute_is_dropped_and_kept_with_its_gate() -> None:
    asked = request(defaultPartitionTypeAttribute="d.com/kind")
    assert ALPHA.create(asked).spec == {"driver": "d.com", "limit": 100}
    made = TYPES.create(asked)
    assert made.spec["defaultPartitionTypeAttribute"] == "d.com/kind"
    assert ALPHA.update(asked, made.obj).spec == made.spec
    (text,) = TYPES.create(request(defaultPartitionTypeAttribute="kind")).texts
    assert text.startswith('spec.defaultPartitionTypeAttribute: Invalid value: "kind": a fully')


def test_what_was_asked_does_not_change() -> None:
    made = ALPHA.create(request()).obj

    assert ALPHA.update(request(limit=100), made).texts == []
    assert ALPHA.update(request(limit=5), made).texts == [
        "spec: Invalid value: null: field is immutable"
    ]


STATUSES: dict[str, tuple[Obj, list[str]]] = {
    "nothing found": ({"poolCount": 0, "conditions": [COMPLETE]}, []),
    "a pool": ({"poolCount": 1, "pools": [POOL]}, []),
    "no count": ({}, ["poolCount: Required value"]),
    "a negative count": (
        {"poolCount": -1},
        ["poolCount: Invalid value: -1: must be greater than or equal to 0"],
    ),
    "a pool without names": (
        {"poolCount": 1, "pools": [{"generation": 1}]},
        ["pools[0].driver: Required value", "pools[0].poolName: Required value"],
    ),
    "bad counts": (
        {"poolCount": 1, "pools": [POOL | {"resourceSliceCount": 0, "totalDevices": -1}]},
        [
            "pools[0].resourceSliceCount: Invalid value: 0: must be greater than or equal to 1",
            "pools[0].totalDevices: Invalid value: -1: must be greater than or equal to 0",
        ],
    ),
    "a long error": (
        {"poolCount": 1, "pools": [POOL | {"validationError": "x" * 257}]},
        ["pools[0].validationError: Too long: may not be more than 256 bytes"],
    ),
    "empty summaries": (
        {
            "poolCount": 1,
            "pools": [POOL | {"partitionSummary": [{}], "shareableSummary": {"capacity": [{}]}}],
        },
        [
            "pools[0].partitionSummary[0].attribute: Required value",
            "pools[0].partitionSummary[0].type: Required value",
            "pools[0].partitionSummary[0].total: Required value",
            "pools[0].partitionSummary[0].allocatable: Required value",
            "pools[0].shareableSummary.fullyAvailableDevices: Required value",
            "pools[0].shareableSummary.partiallyAvailableDevices: Required value",
            "pools[0].shareableSummary.capacity[0].name: Required value",
            "pools[0].shareableSummary.capacity[0].total: Required value",
            "pools[0].shareableSummary.capacity[0].consumed: Required value",
            "pools[0].shareableSummary.capacity[0].available: Required value",
        ],
    ),
    "a condition without a reason": (
        {"poolCount": 0, "conditions": [COMPLETE | {"reason": ""}]},
        ["conditions[0].reason: Required value"],
    ),
    "11 conditions": (
        {"poolCount": 0, "conditions": [COMPLETE | {"type": f"c{i}"} for i in range(11)]},
        ["conditions: Too many: 11: must have at most 10 items"],
    ),
}


@pytest.mark.parametrize(("status", "want"), STATUSES.values(), ids=STATUSES.keys())
def test_a_status(status: Obj, want: list[str]) -> None:
    made = ALPHA.create(request()).obj

    written = ALPHA.update(request(status), made, status=True)

    assert written.texts == [f"status.{text}" for text in want]


def test_a_status_is_written_once() -> None:
    made = ALPHA.create(request()).obj
    done = ALPHA.update(request({"poolCount": 0}), made, status=True).obj

    assert ALPHA.update(request({"poolCount": 0}), done, status=True).texts == []
    (text,) = ALPHA.update(request({"poolCount": 1}), done, status=True).texts
    assert text.startswith("status: Invalid value: ")
    assert text.endswith("field is immutable")
    assert ALPHA.update(request(), done).obj["status"] == {"poolCount": 0}


def test_the_schema_is_asked_about_a_change_that_is_refused() -> None:
    made = ALPHA.create(request()).obj
    done = ALPHA.update(request({"poolCount": 0}), made, status=True).obj
    conditions = [COMPLETE | {"type": f"c{number}", "reason": ""} for number in range(11)]
    status = {"poolCount": -1, "pools": [{}], "conditions": conditions}

    got = ALPHA.update(request(status), done, status=True)

    assert [error.field for error in got.errors] == [
        "status",
        "status.poolCount",
        "status.pools[0].driver",
        "status.pools[0].poolName",
        "status.conditions",
    ]


DEVICES = {"totalDevices": 4, "availableDevices": 2, "allocatedDevices": 1, "unavailableDevices": 1}
ROWS: dict[str, tuple[Obj | None, list[Any]]] = {
    "pending": (None, ["-", "-", "-", "-", "-", 0, "Pending", "<none>"]),
    "complete": (
        {"poolCount": 2, "pools": [POOL | DEVICES, POOL | DEVICES], "conditions": [COMPLETE]},
        ["8", "4", "2", "2", "0", 2, "Complete", "5m"],
    ),
    "limited": (
        {
            "poolCount": 2,
            "pools": [POOL | {"validationError": "x"}],
            "conditions": [COMPLETE],
        },
        ["0", "0", "0", "0", "1", 2, "Complete (1/2 pools)", "5m"],
    ),
    "failed": (
        {"poolCount": 0, "conditions": [COMPLETE | {"type": "Failed"}]},
        ["-", "-", "-", "-", "-", 0, "Failed", "<none>"],
    ),
}


@pytest.mark.parametrize(("status", "want"), ROWS.values(), ids=ROWS.keys())
def test_columns(status: Obj | None, want: list[Any]) -> None:
    obj = request(status)
    columns = BY_KIND["ResourcePoolStatusRequest"].columns

    assert [column.cell(obj, NOW) for column in columns] == ["x", "d.com", *want]
