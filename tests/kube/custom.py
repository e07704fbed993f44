"""A custom resource of a Kubernetes API server, made from its definition.

The schema of a definition becomes a field table, and our server then treats the kind as it treats
those that are custom resources in the reference: unknown fields are pruned, with a warning, types
are checked, strategic merge patches are refused. Rules in CEL are rules.py's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kube.rules import broken
from sully.api.core import generations
from sully.api.core.columns import AGE, NAME, since
from sully.machinery.errors import invalid
from sully.machinery.fields import FieldError, Path
from sully.machinery.schema import ObjectType, Tables
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext
from sully.machinery.structural import fill, is_misshapen, problems

Obj = dict[str, Any]
_SCALARS = {
    ("string", "date-time"): "Time",
    ("string", "byte"): "bytes",
    ("integer", "int32"): "int32",
    ("integer", ""): "int64",
    ("integer", "int64"): "int64",
    ("boolean", ""): "bool",
    ("number", "double"): "number",
}
_HEAD = ("apiVersion", "kind", "metadata")


class Table:
    """Writes schemas in the notation of field tables."""

    def __init__(self, package: str) -> None:
        self._lines: list[str] = []
        self._package = package
        self._patterns = 0

    def kind(self, name: str, schema: Obj) -> str:
        """Return the table of a whole kind, and of a list of it."""
        head = "  apiVersion string: A.\n  kind string: K.\n"
        body = self._object(name, schema, head + "  metadata meta.ObjectMeta emit: M.\n")
        items = f"  items []{name} required null: I.\n  metadata meta.ListMeta emit: M.\n"
        return "\n".join([*self._lines, body, f"{name}List: L.\n{head}{items}"])

    def _object(self, name: str, schema: Obj, head: str = "") -> str:
        atomic = " atomic" if schema.get("x-kubernetes-map-type") == "atomic" else ""
        rows = [
            self._field(name, each, inner, each in (schema.get("required") or ()))
            for each, inner in (schema.get("properties") or {}).items()
            if not head or each not in _HEAD
        ]
        return f"{name}{atomic}: {_told(schema)}\n{head}" + "".join(rows)

    def _field(self, owner: str, name: str, schema: Obj, required: bool) -> str:
        flags = ["required"] if required else []
        flags += self._flags(schema)
        kind = self._type(owner + name[0].upper() + name[1:], schema)
        return f"  {' '.join((name, kind, *flags))}: {_told(schema)}\n"

    def _type(self, name: str, schema: Obj) -> str:
        if schema.get("x-kubernetes-int-or-string"):
            return "IntOrString"
        if schema["type"] == "array":
            return f"[]{self._type(name, schema['items'])}"
        if "additionalProperties" in schema:
            return f"{{}}{self._type(name, schema['additionalProperties'])}"
        if schema["type"] != "object":
            return _SCALARS.get((schema["type"], schema.get("format", "")), "string")
        if schema.get("x-kubernetes-preserve-unknown-fields") or "properties" not in schema:
            return "object"
        self._lines.append(self._object(name, schema))
        return name

    def _flags(self, schema: Obj) -> Iterator[str]:
        lists = schema.get("x-kubernetes-list-type")
        keys = ",".join(schema.get("x-kubernetes-list-map-keys") or ())
        if lists:
            yield f"map({keys})" if lists == "map" else lists
        if choices := schema.get("enum") or schema.get("items", {}).get("enum"):
            yield f"enum({','.join(choices)})"
        names = {"minimum": "min", "maximum": "max"}
        for name in ("minLength", "maxLength", "maxItems", "minimum", "maximum"):
            if name in schema:
                yield f"{names.get(name, name)}({schema[name]})"
        if "default" in schema:
            yield f"default={schema['default']}"
        if "pattern" in schema:
            self._patterns += 1
            pattern = f"{self._package}.{self._patterns}"
            self._lines.insert(0, f"pattern {pattern}: {schema['pattern']}")
            yield f"pattern({pattern})"


def _told(schema: Obj) -> str:
    return " ".join((schema.get("description") or "").split())


@dataclass(frozen=True, slots=True)
class Custom(Strategy):
    """Writes to the main endpoint."""

    table: ObjectType | None = None
    schema: Any = None
    group: str = ""
    has_status: bool = False

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in what the schema says, and refuse what nobody could look into."""
        if self.has_status:
            obj.pop("status", None)
        _default(obj, self)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start the generation."""
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status where it has an endpoint of its own; count other changes."""
        if self.has_status and "status" in old:
            obj["status"] = old["status"]
        changed = _content(obj, self.has_status) != _content(old, self.has_status)
        generations.follow(obj, old, bump=changed)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check a new object."""
        return _wrong(self, obj, None)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check a changed object."""
        return _wrong(self, obj, old)


@dataclass(frozen=True, slots=True)
class CustomStatus(Custom):
    """Writes to the status endpoint: they change nothing else."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Leave the rest unread."""
        for name in [name for name in obj if name not in (*_HEAD, "status")]:
            del obj[name]

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Take everything but the status from what is stored."""
        version = obj["metadata"].get("resourceVersion")
        managed = obj["metadata"].get("managedFields")
        obj["metadata"] = dict(old["metadata"])
        obj["metadata"] |= {"resourceVersion": version} if version else {}
        obj["metadata"] |= {"managedFields": managed} if managed else {}
        obj.update({name: old[name] for name in old if name not in ("metadata", "status")})


def _default(obj: Obj, kind: Custom) -> None:
    assert kind.table is not None
    fill(obj, kind.table)
    found = list(problems(obj, kind.table))
    if is_misshapen(found):
        raise invalid(kind.table.name, kind.group, obj["metadata"].get("name", ""), found)


def _wrong(kind: Custom, obj: Obj, old: Obj | None) -> Iterator[FieldError]:
    assert kind.table is not None
    yield from problems(obj, kind.table)
    yield from broken(kind.schema, obj, old, Path())


def _content(obj: Obj, has_status: bool) -> Obj:
    left = ("metadata", "status") if has_status else ("metadata",)
    return {name: value for name, value in obj.items() if name not in left}


def resource_of(tables: Tables, definition: Mapping[str, Any]) -> ResourceType:
    """Return the resource that a definition describes, in its one version."""
    spec = definition["spec"]
    names, (version,) = spec["names"], spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    # A changed definition gets a package of its own: what a table said is never forgotten.
    count = definition["metadata"].get("generation", 1)
    package = f"{spec['group']}.{names['plural']}.g{count}.{version['name']}"
    tables.load(package, package, Table(package).kind(names["kind"], schema))
    table = tables.get(package, names["kind"])
    has_status = "status" in (version.get("subresources") or {})
    usual: dict[str, Any] = {
        "table": table,
        "schema": schema,
        "group": spec["group"],
        "has_status": has_status,
    }
    return ResourceType(
        group=spec["group"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names["singular"],
        namespaced=spec["scope"] == "Namespaced",
        versions=(Version(version["name"], package, unconditional_update=False, structural=True),),
        strategy=Custom(reset=(("status",),) if has_status else (), **usual),
        status=CustomStatus(reset=(("spec",), ("metadata",)), **usual) if has_status else None,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        columns=(NAME, *map(_column, version.get("additionalPrinterColumns") or ()))
        if version.get("additionalPrinterColumns")
        else (NAME, AGE),
    )


def _column(column: Obj) -> Column:
    steps = re.findall(r"\.([\w-]+)|\[(\d+)\]", column["jsonPath"])

    def cell(obj: Obj, now: datetime) -> Any:
        found: Any = obj
        for name, index in steps:
            try:
                found = found[name] if name else found[int(index)]
            except (KeyError, IndexError, TypeError):
                return None
        return since(found, now) if column["type"] == "date" else found

    return Column(column["name"], cell, type=column["type"])
