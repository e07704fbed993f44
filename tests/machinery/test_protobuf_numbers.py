"""The tables of field numbers fit the field tables beside them."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from architecture.project import SOURCE, short
from sully.api import build_scheme
from sully.api.numbers import numbers_text
from sully.machinery.protobuf_numbers import Numbers, Slot
from sully.machinery.schema import Field, ListOf, MapOf, ObjectType, TableError, Tables, Type

FILES = sorted(SOURCE.rglob("*.numbers"))
META = "io.k8s.apimachinery.pkg.apis.meta.v1"


def package_of(path: Path) -> str:
    return META if path.parent.name == "meta" else f"io.k8s.api.{path.parent.name}.{path.stem}"


def fields_beside(path: Path) -> dict[str, set[str]]:
    """Return the field names of every type of the folder; versions may differ in shape."""
    tables = Tables()
    texts = [each.read_text(encoding="utf-8") for each in path.parent.glob("*.fields")]
    found: dict[str, set[str]] = {}
    for text in texts:
        tables.load("one", "one", text)
        for name, (_, entries) in tables._raw["one"].items():
            found.setdefault(name, set()).update(entry.name for entry in entries)
    return found


def test_there_are_tables() -> None:
    assert len(FILES) > 10


@pytest.mark.parametrize("path", FILES, ids=short)
def test_every_number_stands_for_one_field_that_exists(path: Path) -> None:
    names = Numbers(numbers_text).names(package_of(path))
    known = fields_beside(path)
    embedded = {name[1:] for name, _ in chain.from_iterable(names.values()) if name[0] == "+"}

    wrong = [
        f"{message}.{name}={number}"
        for message, entries in names.items()
        for name, number in entries
        if (name[0] == "+" and name[1:] not in names)
        or (name[0] != "+" and message not in embedded and name not in known.get(message, ()))
        or max(Counter(number for _, number in entries).values()) > 1
        or max(Counter(name for name, _ in entries).values()) > 1
    ]

    assert wrong == []


@pytest.mark.parametrize("path", FILES, ids=short)
def test_lines_fit_the_screen(path: Path) -> None:
    assert [line for line in path.read_text().splitlines() if len(line) > 100] == []


def test_every_stored_kind_can_be_sent() -> None:
    scheme = build_scheme()
    numbers = Numbers(numbers_text)

    silent = {
        f"{version.package}.{resource.kind}"
        for resource in scheme.resources()
        for version in resource.versions
        # Custom resources travel as JSON only, whoever sends them.
        if not version.structural
        and not version.package.startswith("dev.sully.")
        and not {"metadata"} <= _names(scheme.tables, numbers, version.package, resource.kind)
    }

    # Our own kind: no Go client has it.
    assert silent == {"io.k8s.api.resource.v1alpha3.ResourceSlicePatch"}


def test_a_numbered_message_has_numbers_inside() -> None:
    scheme = build_scheme()
    numbers = Numbers(numbers_text)
    packages = {version.package for each in scheme.resources() for version in each.versions}

    # A message without them would be read as empty, which is not the same as passed over.
    hollow = {
        f"{kind.full_name}.{slot.name}"
        for package in packages
        for kind in scheme.tables.types(package)
        for slot in numbers.of(kind).values()
        if isinstance(slot, Field)
        if (inner := _message(slot.type)) is not None
        if inner.fields and not numbers.of(inner)
    }

    assert hollow == set()


OURS = {
    "DeviceTaint.data",
    "DeviceTaint.description",
    "DeviceTaint.evictionsPerSecond",
    "ResourceSliceSpec.taints",
}
"""Fields that no Go client has."""


def test_no_field_of_a_numbered_message_is_without_a_number() -> None:
    scheme = build_scheme()
    numbers = Numbers(numbers_text)
    packages = {version.package for each in scheme.resources() for version in each.versions}

    # A client that sends it would lose it without a word.
    unnumbered = {
        f"{kind.name}.{name}"
        for package in packages
        for kind in scheme.tables.types(package)
        if (slots := numbers.of(kind))
        for name in kind.fields.keys() - set(_fields(slots)) - {"apiVersion", "kind"}
    }

    assert unnumbered == OURS


def _fields(slots: dict[int, Slot]) -> Iterator[str]:
    for slot in slots.values():
        if isinstance(slot, Field):
            yield slot.name
        else:
            yield from _fields(slot)


def _message(kind: Type) -> ObjectType | None:
    if isinstance(kind, ListOf):
        return _message(kind.item)
    if isinstance(kind, MapOf):
        return _message(kind.value)
    return kind if isinstance(kind, ObjectType) else None


def _names(tables: Tables, numbers: Numbers, package: str, kind: str) -> set[str]:
    slots = numbers.of(tables.get(package, kind))
    return {slot.name for slot in slots.values() if isinstance(slot, Field)}


VERSIONS = {
    "group.v1": "Device name=1 taints=2\nClaim name=1\n",
    "group.v1beta1": "like v1\nDevice name=1 basic=2\n",
}


def test_a_version_takes_over_what_it_does_not_change() -> None:
    numbers = Numbers(lambda package: VERSIONS[package])

    assert numbers.names("group.v1beta1") == {
        "Device": [("name", 1), ("basic", 2)],
        "Claim": [("name", 1)],
    }


def test_a_table_is_read_once_and_only_when_asked_for() -> None:
    asked: list[str] = []

    def read(package: str) -> str:
        asked.append(package)
        return "Device name=1\n"

    numbers = Numbers(read)
    assert asked == []

    tables = Tables()
    tables.load("group.v1", "group", "Device: D.\n  name string: N.\n")
    for _ in range(2):
        numbers.of(tables.get("group.v1", "Device"))

    assert asked == ["group.v1"]


def test_an_entry_without_a_number_is_refused() -> None:
    with pytest.raises(TableError, match="'name' is not of the form name=number"):
        Numbers(lambda _: "Device name\n").names("group.v1")
