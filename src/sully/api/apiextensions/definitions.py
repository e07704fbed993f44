"""CustomResourceDefinition: what writes do to a definition.

Whether it is valid is validation.py, which names it gets names.py, what it becomes custom.py.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sully.api.apiextensions import GROUP, PACKAGE
from sully.api.apiextensions.format_warnings import format_warnings
from sully.api.apiextensions.names import (
    CLEANUP,
    ESTABLISHED,
    TERMINATING,
    is_true,
    with_condition,
)
from sully.api.apiextensions.validation import definition_problems, name_problems, names_problems
from sully.api.core import generations
from sully.api.core.columns import NAME, plain
from sully.machinery.errors import BadRequest
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.timestamps import format_time
from sully.machinery.schema import ObjectType, Tables
from sully.machinery.serialization.codec import to_json
from sully.machinery.serialization.decode import DecodeError, decode
from sully.machinery.strategy import (
    Column,
    DeferredWorkError,
    ResourceType,
    Strategy,
    Version,
    WriteContext,
)

Obj = dict[str, Any]

MOST_VALUES = 50_000
"""Fields and list items of one definition; the largest that operators bring have half of it."""
_MARKED = (
    "True",
    "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
)


class DefinitionStrategy(Strategy, frozen=True):
    """Writes to the main endpoint: everything but the status."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Set the names that follow from the kind, and read schemas inside of schemas."""
        spec = obj["spec"]
        names = spec["names"]
        if names.get("kind"):
            names.setdefault("singular", names["kind"].lower())
            names.setdefault("listKind", f"{names['kind']}List")
        spec.setdefault("conversion", {"strategy": "None"})
        for version in spec.get("versions") or ():
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if schema is not None:
                version["schema"]["openAPIV3Schema"] = _read_inner(schema)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start without a status but the stored version."""
        obj["status"] = _new_status()
        generations.start(obj)
        _add_stored_version(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status, count changes, record the stored version."""
        obj["status"] = dict(old.get("status") or _new_status())
        generations.follow(obj, old, bump=generations.spec_changed(obj, old))
        _add_stored_version(obj)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Refuse what cannot be served."""
        name = obj["metadata"]["name"]
        for problem in name_problems(obj, name):
            yield Path("metadata").child("name").invalid(name, problem)
        yield from _cached_errors(obj, None)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Refuse what cannot be served, and changes of what objects are stored by."""
        return iter(_cached_errors(obj, old))

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterator[str]:
        """Warn about formats that no value is checked against."""
        return format_warnings(obj, old)


_CHECKED_ON_LOOP = 8 * 1024
"""Bytes of a definition that is checked where it is written."""
_REMEMBERED = 16
_outcomes: dict[bytes, list[FieldError]] = {}


def _cached_errors(obj: Obj, old: Obj | None) -> list[FieldError]:
    """Return what is wrong with a definition; raises DeferredWorkError if that takes long."""
    before = None if old is None else (old["spec"], old["metadata"].get("annotations"))
    names = (obj["metadata"].get("annotations"), obj["status"], old and old.get("status"))
    key = to_json((obj["spec"], names, before))
    if len(key) <= _CHECKED_ON_LOOP and b'"x-kubernetes-validations"' not in key:
        return list(definition_problems(obj, old))
    known = _outcomes.get(key)
    if known is None:
        raise DeferredWorkError(lambda: _cache_result(key, obj, old))
    return known


def _cache_result(key: bytes, obj: Obj, old: Obj | None) -> None:
    errors = list(definition_problems(obj, old))
    while len(_outcomes) >= _REMEMBERED:
        _outcomes.pop(next(iter(_outcomes)), None)
    _outcomes[key] = errors


class DefinitionStatusStrategy(Strategy, frozen=True):
    """Writes to the status endpoint: the status, and finalizers."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec and the metadata of clients."""
        obj["spec"] = old["spec"]
        obj.setdefault("status", _new_status())
        for name in ("labels", "annotations", "ownerReferences"):
            obj["metadata"].pop(name, None)
            if name in old["metadata"]:
                obj["metadata"][name] = old["metadata"][name]
        generations.follow(obj, old, bump=False)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the names."""
        names = obj["status"].get("acceptedNames") or {}
        return names_problems(names, Path("status").child("acceptedNames"))


def terminating(definition: Obj, now: datetime) -> Obj | None:
    """Return a deleted definition while it still has objects; None once it can go.

    The server deletes the objects, then removes the finalizer (server/customresources).
    """
    metadata = dict(definition["metadata"])
    finalizers = list(metadata.get("finalizers") or ())
    if "deletionTimestamp" in metadata:
        return definition if finalizers else None
    time = format_time(now)
    metadata["deletionTimestamp"] = time
    metadata["finalizers"] = finalizers if CLEANUP in finalizers else [*finalizers, CLEANUP]
    status = with_condition(definition["status"], TERMINATING, _MARKED, time)
    return {**definition, "metadata": metadata, "status": status}


def _new_status() -> Obj:
    return {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []}


def _add_stored_version(obj: Obj) -> None:
    status = obj["status"]
    stored = list(status.get("storedVersions") or ())
    for version in obj["spec"].get("versions") or ():
        if version.get("storage"):
            if version["name"] not in stored:
                stored.append(version["name"])
            break
    status["storedVersions"] = stored


_LATE = ("items", "additionalProperties")
"""Where a schema may have something else than a schema, so the table does not read it."""


def _read_inner(schema: Obj) -> Obj:
    """Read the schemas that the field table leaves as they were sent, at every depth."""
    for name in _LATE:
        if isinstance(inner := schema.get(name), dict):
            schema[name] = _read_inner(_read(inner))
    for inner in (schema.get("properties") or {}).values():
        _read_inner(inner)
    for name in ("allOf", "anyOf", "oneOf"):
        for inner in schema.get(name) or ():
            _read_inner(inner)
    if isinstance(inner := schema.get("not"), dict):
        _read_inner(inner)
    return schema


def _read(schema: Obj) -> Obj:
    try:
        return decode(schema, _schema_table(), [])
    except DecodeError as error:
        kind = "CustomResourceDefinition"
        raise BadRequest(f'{kind} in version "v1" cannot be handled as a {kind}: {error}') from None


_tables: list[ObjectType] = []


def _schema_table() -> ObjectType:
    if not _tables:
        from sully.api import apiextensions, meta  # late: this package loads this module

        tables = Tables()
        meta.load_tables(tables)
        apiextensions.load_tables(tables)
        _tables.append(tables.get(PACKAGE, "JSONSchemaProps"))
    return _tables[0]


def _versions(obj: Obj) -> str:
    names = [
        f"{version['name']}(storage)" if version.get("storage") else version["name"]
        for version in obj["spec"]["versions"] or ()
        if version.get("served")
    ]
    return ",".join(names)


_COLUMNS = (
    NAME,
    Column("Scope", plain(lambda obj: obj["spec"]["scope"]), description="Scope of the objects."),
    Column("Versions", plain(_versions), description="Versions that are served."),
    Column(
        "Created At",
        plain(lambda obj: obj["metadata"].get("creationTimestamp")),
        type="date",
        description="When the object was created.",
    ),
    Column("Group", plain(lambda obj: obj["spec"]["group"]), priority=1, description="API group."),
    Column(
        "Kind",
        plain(lambda obj: obj["spec"]["names"]["kind"]),
        priority=1,
        description="Kind of the objects.",
    ),
    Column(
        "ShortNames",
        plain(lambda obj: ",".join(obj["spec"]["names"].get("shortNames") or ())),
        priority=1,
        description="Short names.",
    ),
    Column(
        "Established",
        plain(lambda obj: is_true(obj, ESTABLISHED)),
        type="boolean",
        priority=1,
        description="Whether the kind is served.",
    ),
)

DEFINITIONS = ResourceType(
    GROUP,
    "CustomResourceDefinition",
    "customresourcedefinitions",
    "customresourcedefinition",
    namespaced=False,
    versions=(Version("v1", PACKAGE, unconditional_update=False),),
    strategy=DefinitionStrategy(reset=(("status",),)),
    status=DefinitionStatusStrategy(reset=(("metadata",), ("spec",))),
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    columns=_COLUMNS,
    most_values=MOST_VALUES,
)
