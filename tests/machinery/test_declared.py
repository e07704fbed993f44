"""The order in which errors are reported."""

import pytest

from api.resource.writing import TABLES
from sully.machinery.declared import Declared, in_order
from sully.machinery.fields import FieldError, Path

CLAIM = TABLES.get("io.k8s.api.resource.v1", "ResourceClaim")
STATUS = Path("status")
RESULTS = STATUS.child("allocation", "devices", "results")
REPORTS = STATUS.child("devices")


def declared(error: FieldError) -> FieldError:
    return Declared(error.reason, error.field, error.body)


BY_HAND = STATUS.child("reservedFor").forbidden("not now")
CASES = {
    "what the schema declares is last": (
        declared(RESULTS.too_many(33, 32)),
        BY_HAND,
    ),
    "in the order of the fields": (
        declared(REPORTS.index(0).child("networkData", "hardwareAddress").too_long(128)),
        declared(REPORTS.index(0).child("networkData", "ips").too_many(17, 16)),
        declared(STATUS.child("reservedFor").too_many(257, 256)),
        declared(RESULTS.index(0).child("driver").required()),
    ),
    "in the order of a list, duplicates first": (
        declared(REPORTS.index(10).child("shareID").invalid("x", "")),
        declared(REPORTS.index(2).child("shareID").invalid("x", "")),
        declared(REPORTS.index(2).duplicate("x")),
        declared(REPORTS.index(1).duplicate("x")),
    ),
}


@pytest.mark.parametrize("errors", CASES.values(), ids=CASES.keys())
def test_order(errors: tuple[FieldError, ...]) -> None:
    got = in_order(errors, CLAIM)

    assert [str(error) for error in got] == [str(error) for error in reversed(errors)]


def test_errors_of_a_field_that_the_schema_lacks_stay_as_they_were_found() -> None:
    errors = [declared(Path("spec").child(name).required()) for name in ("b", "a", "devices")]

    got = in_order(errors, CLAIM)

    assert [error.field for error in got] == ["spec.devices", "spec.b", "spec.a"]


def test_errors_that_are_declared_by_their_field() -> None:
    at = Path("subjects")
    errors = [at.index(0).child("name").required(), at.index(0).child("kind").invalid("x", "")]

    got = in_order(errors, CLAIM, ("subjects.name",))

    assert [error.field for error in got] == ["subjects[0].kind", "subjects[0].name"]
