"""The typed kinds and the field tables describe the same wire format.

Whole types are generated from the tables. Projections, which name only what a reader needs, are
written by hand, and are compared with the tables here.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest

import sully
from architecture.project import SOURCE, short
from generate_types import files, stale_modules
from sully.api import build_scheme
from sully.client.transport import Kind
from sully.controllers.resourcequota.usage import QuotaObject
from sully.domain.workloads.ownership import Owned
from sully.explain.facts.pods.workloads import WorkloadState
from sully.machinery.meta import Wire
from sully.machinery.schema import Field, ListOf, MapOf, ObjectType, Scalar, Type
from sully.views.snapshot.kinds import WORKLOADS

SCHEME = build_scheme()
PYTHON: dict[str, tuple[set[type], ...]] = {
    "string": ({str},),
    "int32": ({int},),
    "int64": ({int},),
    "number": ({float},),
    "bool": ({bool},),
    "bytes": ({str},),
    "Time": ({datetime},),
    "MicroTime": ({datetime},),
    "Quantity": ({str}, {str, int}),
    "IntOrString": ({int, str},),
}
"""The types that a scalar may be read as."""


def test_generated_types_are_fresh() -> None:
    assert list(stale_modules()) == [], "run `make generate`"


def test_nothing_else_is_in_the_generated_folders() -> None:
    there = {short(path) for path in SOURCE.rglob("_generated/*.py")}

    assert there == {path.as_posix() for path in files()}


def all_modules() -> Iterator[Any]:
    for module in pkgutil.walk_packages(sully.__path__, "sully."):
        if not module.name.endswith("__main__") and ".etcd" not in module.name:
            yield importlib.import_module(module.name)


def known_kinds() -> dict[str, Kind[Any]]:
    """Return every resource of the program that is read as a type."""
    return {
        f"{kind.kind} as {kind.type.__module__}.{kind.type.__qualname__}": kind
        for module in all_modules()
        for kind in vars(module).values()
        if isinstance(kind, Kind) and not kind.untyped
    }


KINDS = known_kinds()


class Comparison:
    """One walk over a type and its table; what differs is in `problems`."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.seen: set[type] = set()

    def compare(self, type_: type[msgspec.Struct], table: ObjectType) -> None:
        self.seen.add(type_)
        for member in msgspec.structs.fields(type_):
            at = f"{type_.__qualname__}.{member.name}"
            field = table.fields.get(member.encode_name)
            if field is None:
                self.problems.append(f"{at}: {table.name} has no {member.encode_name}")
                continue
            if member.required and not (field.required or field.emit):
                self.problems.append(f"{at}: may be absent")
            self._member(member.type, field, at)

    def _member(self, annotation: Any, field: Field, at: str) -> None:
        parts = members_of(annotation)
        if field.null and not field.required and not parts & {NoneType, Any}:
            self.problems.append(f"{at}: may be null")
        self._type(parts, field.type, at)

    def _type(self, parts: set[Any], table: Type, at: str) -> None:
        parts = parts - {NoneType}
        if Any in parts:
            return
        one = next(iter(parts))
        if isinstance(table, Scalar):
            if table.name != "object" and parts not in PYTHON[table.name]:
                self.problems.append(f"{at}: {parts} is not how {table.name} is read")
        elif isinstance(table, ListOf) and get_origin(one) is tuple:
            self._type(members_of(get_args(one)[0]), table.item, at)
        elif isinstance(table, MapOf) and get_origin(one) is dict:
            self._type(members_of(get_args(one)[1]), table.value, at)
        elif isinstance(table, ObjectType) and isinstance(one, type) and issubclass(one, Wire):
            self.compare(one, table)
        elif not (isinstance(table, ObjectType) and one == dict[str, Any]):
            self.problems.append(f"{at}: {one} is not how {table} is read")


def members_of(type_: Any) -> set[Any]:
    return set(get_args(type_)) if get_origin(type_) in (Union, UnionType) else {type_}


def table_of(kind: Kind[Any]) -> ObjectType:
    resource = SCHEME.find(kind.group, kind.version, kind.plural)
    assert resource is not None, kind
    return SCHEME.schema(resource, kind.version)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_type_states_what_its_table_states(name: str) -> None:
    kind = KINDS[name]
    comparison = Comparison()

    comparison.compare(kind.type, table_of(kind))

    assert comparison.problems == []


SEVERAL: dict[type[Wire], tuple[str, ...]] = {
    Owned: tuple(f"{kind.storage_version.package}.{kind.kind}" for kind in SCHEME.resources()),
    QuotaObject: ("io.k8s.api.core.v1.Pod", "io.k8s.api.resource.v1.ResourceClaim"),
    WorkloadState: tuple(
        f"{kind.storage_version.package}.{kind.kind}"
        for kind in SCHEME.resources()
        if kind.kind in {workload.kind for workload in WORKLOADS}
    ),
}
"""Types that objects of several kinds are read as."""


@pytest.mark.parametrize("type_", SEVERAL)
def test_a_type_of_several_kinds_states_what_their_tables_state(type_: type[Wire]) -> None:
    comparison = Comparison()
    for name in SEVERAL[type_]:
        comparison.compare(type_, SCHEME.tables.get(*name.rsplit(".", 1)))

    assert comparison.problems == []


BASES = {"HasController", "ObjectIdentity", "SharedContent", "Workload"}
WITHOUT_TABLE = (
    "sully.domain.scheduling.diagnosis",
    "sully.domain.devices.rules",
)
"""Modules with types of annotations."""
UNREAD = {"ClusterClaim", "ClusterClaimSpec"}
"""Of clusters that are not a hub."""


def test_no_type_is_left_out() -> None:
    comparison = Comparison()
    for kind in KINDS.values():
        comparison.compare(kind.type, table_of(kind))
    for type_, names in SEVERAL.items():
        comparison.compare(type_, SCHEME.tables.get(*names[0].rsplit(".", 1)))

    unseen = {
        subclass
        for subclass in subclasses(Wire)
        if subclass not in comparison.seen
        and subclass.__module__.startswith("sully.")
        and subclass.__module__ not in WITHOUT_TABLE
    }

    assert {item.__qualname__ for item in unseen} == BASES | UNREAD


def subclasses(type_: type) -> Iterator[type]:
    below: type
    for below in type_.__subclasses__():
        yield below
        yield from subclasses(below)


class Odd(Wire, frozen=True, kw_only=True):
    key: int
    value: str
    nowhere: str = ""
    effect: str | None = None


def test_differences_are_found() -> None:
    comparison = Comparison()
    comparison.compare(Odd, SCHEME.tables.get("io.k8s.api.resource.v1", "DeviceTaint"))

    assert comparison.problems == [
        "Odd.key: {<class 'int'>} is not how string is read",
        "Odd.value: may be absent",
        "Odd.nowhere: DeviceTaint has no nowhere",
    ]
