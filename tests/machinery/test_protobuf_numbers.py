"""The protobuf numbers in the field tables are complete and unambiguous."""

from collections.abc import Iterator

import pytest

from sully.api import build_scheme
from sully.machinery.schema import ListOf, MapOf, ObjectType, TableError, Tables, Type
from sully.machinery.scheme import Scheme
from sully.machinery.serialization.protobuf import slots_of


def all_types(scheme: Scheme) -> Iterator[ObjectType]:
    packages = {version.package for resource in scheme.resources() for version in resource.versions}
    for package in packages:
        yield from scheme.tables.types(package)


def test_there_are_numbers() -> None:
    assert sum(1 for kind in all_types(build_scheme()) if slots_of(kind)) > 200


def test_every_number_stands_for_one_field() -> None:
    wrong: set[str] = set()
    for kind in all_types(build_scheme()):
        numbers = [one.number for one in kind.fields.values() if one.number]
        # A number is also taken if it is that of a message around other fields.
        outer = {number[:depth] for number in numbers for depth in range(1, len(number))}
        if len(set(numbers)) < len(numbers) or outer & set(numbers):
            wrong.add(kind.full_name)

    assert wrong == set()


def test_every_stored_kind_can_be_sent() -> None:
    scheme = build_scheme()

    unnumbered = {
        f"{version.package}.{resource.kind}"
        for resource in scheme.resources()
        for version in resource.versions
        # Custom resources travel as JSON only, whoever sends them.
        if not version.structural
        and not version.package.startswith("dev.sully.")
        and not scheme.tables.get(version.package, resource.kind).fields["metadata"].number
    }

    assert unnumbered == {
        # Our own kind: no Go client has it.
        "io.k8s.api.resource.v1alpha3.ResourceSlicePatch",
    }


def test_a_numbered_message_has_numbers_inside() -> None:
    # A message without them would be read as empty, which is not the same as ignored.
    without_numbers = {
        f"{kind.full_name}.{field.name}"
        for kind in all_types(build_scheme())
        for field in kind.fields.values()
        if field.number
        if (inner := _message(field.type)) is not None
        if inner.fields and not slots_of(inner)
    }

    assert without_numbers == set()


OURS = {
    "DeviceTaint.data",
    "DeviceTaint.description",
    "DeviceTaint.evictionsPerSecond",
    "ResourceSliceSpec.taints",
}
"""Fields that no Go client has."""


def test_no_field_of_a_numbered_message_is_without_a_number() -> None:
    # A client that sends it would lose it without a word.
    unnumbered = {
        f"{kind.name}.{name}"
        for kind in all_types(build_scheme())
        if slots_of(kind)
        for name, field in kind.fields.items()
        if not field.number and name not in ("apiVersion", "kind")
    }

    assert unnumbered == OURS


def _message(kind: Type) -> ObjectType | None:
    if isinstance(kind, ListOf):
        return _message(kind.item)
    if isinstance(kind, MapOf):
        return _message(kind.value)
    return kind if isinstance(kind, ObjectType) else None


def test_versions_may_number_a_type_differently() -> None:
    tables = build_scheme().tables
    newer, older = (
        tables.get(f"io.k8s.api.resource.{version}", "DeviceSubRequest").fields["tolerations"]
        for version in ("v1", "v1beta1")
    )

    assert (newer.number, older.number) == ((6,), (7,))


def test_fields_of_an_embedded_message_have_its_number_in_front() -> None:
    tables = Tables()
    tables.load("one", "one", "Volume: V.\n  name=1 string: N.\n  hostPath=2.1 string: P.\n")
    volume = tables.get("one", "Volume")

    slots = slots_of(volume)

    assert slots == {1: volume.fields["name"], 2: {1: volume.fields["hostPath"]}}
    assert volume.go_order == ["name", "hostPath"]


@pytest.mark.parametrize("name", ["name=", "name=x", "name=1="])
def test_what_is_not_a_number_is_refused(name: str) -> None:
    tables = Tables()
    tables.load("one", "one", f"Device: D.\n  {name} string: N.\n")

    with pytest.raises(TableError, match="neither a type nor a field"):
        tables.get("one", "Device")
