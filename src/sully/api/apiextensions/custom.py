"""The resource that a definition becomes: its versions, strategies and columns."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from sully.api.apiextensions import PACKAGE
from sully.api.core import generations
from sully.api.core.columns import NAME, age_cell
from sully.api.tables import META
from sully.machinery.customresources import jsonpath
from sully.machinery.customresources.schema import BLOCKING, CustomSchema
from sully.machinery.customresources.validation import is_misshapen
from sully.machinery.errors import invalid
from sully.machinery.fields import FieldError, Path, value_at
from sully.machinery.formats.names import finalizer_problems, label_key_problems
from sully.machinery.formats.timestamps import TimeError, age, parse_time
from sully.machinery.schema import Field, ObjectType, Scalar, Tables
from sully.machinery.scheme import version_priority
from sully.machinery.serialization.codec import to_json
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import (
    Column,
    ResourceType,
    ScalePaths,
    Strategy,
    Version,
    WriteContext,
    keep_all_but_status,
)

Obj = dict[str, Any]

VERBS = (*("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"),)
_MAX_REPLICAS = 2**31 - 1


class CustomResourceStrategy(Strategy, frozen=True):
    """Writes to the main endpoint: everything, or everything but the status if that has its own.

    schemas, with_status and scales are by version.
    """

    kind: str = ""
    group: str = ""
    schemas: Mapping[str, CustomSchema] = msgspec.field(default_factory=dict)
    with_status: frozenset[str] = frozenset()
    scales: Mapping[str, ScalePaths] = msgspec.field(default_factory=dict)

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Set defaults, and refuse an object that later steps could not read."""
        if ctx.version in self.with_status:
            obj.pop("status", None)
        schema = self.schemas[ctx.version]
        schema.default(obj)
        self._refuse_misshapen(obj, list(self._schema_problems(obj, None, ctx)), schema)

    def _refuse_misshapen(self, obj: Obj, errors: list[FieldError], schema: CustomSchema) -> None:
        if any(map(is_misshapen, errors)):
            if schema.rules is not None and any(error.reason in BLOCKING for error in errors):
                errors += schema.rule_problems(obj, None, errors)
            raise invalid(self.kind, self.group, obj["metadata"].get("name", ""), errors)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start the generation."""
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status if it has its own endpoint, count changes of everything else."""
        if ctx.version in self.with_status and "status" in old:
            obj["status"] = old["status"]
        generations.follow(obj, old, bump=_content(obj) != _content(old))

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check a new object."""
        return self._problems(obj, None, ctx)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check a changed object; what did not change is not checked."""
        return self._problems(obj, old, ctx)

    def _problems(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterator[FieldError]:
        errors = list(self._schema_problems(obj, old, ctx))
        return iter([*errors, *self.schemas[ctx.version].rule_problems(obj, old, errors)])

    def _schema_problems(
        self, obj: Obj, old: Obj | None, ctx: WriteContext
    ) -> Iterator[FieldError]:
        schema = self.schemas[ctx.version]
        yield from schema.problems(obj, old)
        if ctx.version in self.scales:
            yield from _scale_problems(obj, self.scales[ctx.version])

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterator[str]:
        """Warn about finalizers without a domain."""
        known = (old or {"metadata": {}})["metadata"].get("finalizers") or ()
        for name in sorted({*(obj["metadata"].get("finalizers") or ())} - {*known}):
            if "/" not in name and finalizer_problems(name):
                path = " including a path (/)" if "." in name else ""
                yield (
                    f"metadata.finalizers: {quote(name)}: prefer a domain-qualified finalizer name"
                    f"{path} to avoid accidental conflicts with other finalizer writers"
                )

    def validate_finalizer(self, name: str) -> Sequence[str]:
        """Allow names without a domain: that of a custom resource is its controller's own."""
        return label_key_problems(name)


class CustomResourceStatusStrategy(CustomResourceStrategy, frozen=True):
    """Writes to the status endpoint: nothing but the status."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Set defaults, and refuse a status that later steps could not read."""
        schema = self.schemas[ctx.version]
        schema.default(obj)
        for name in [name for name in obj if name not in ("metadata", "status")]:
            del obj[name]
        self._refuse_misshapen(obj, list(self._schema_problems(obj, None, ctx)), schema)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Take everything but the status, and who manages it, from the stored object."""
        keep_all_but_status(obj, old)
        managed = obj["metadata"].get("managedFields")
        # Other kinds refuse to change what identifies them; here it is ignored.
        obj["metadata"] = {**old["metadata"], "managedFields": managed}
        if not managed:
            del obj["metadata"]["managedFields"]

    def _schema_problems(
        self, obj: Obj, old: Obj | None, ctx: WriteContext
    ) -> Iterator[FieldError]:
        schema = self.schemas[ctx.version]
        yield from schema.status_problems(obj, old or {})
        if ctx.version in self.scales:
            yield from _scale_problems(obj, self.scales[ctx.version])


def _content(obj: Obj) -> Obj:
    return {name: value for name, value in obj.items() if name != "metadata"}


def _go_type(value: Any) -> str:
    names = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}
    return names.get(type(value), "map[string]interface {}")


def _scale_problems(obj: Obj, paths: ScalePaths) -> Iterator[FieldError]:
    for path in (paths.replicas, paths.status_replicas):
        value = value_at(obj, path)
        at = Path("." + ".".join(path))
        if value is None:
            continue
        if type(value) is not int:
            kind = _go_type(value)
            text = f"accessor error: {_printed(value)} is of the type {kind}, expected int64"
            yield at.invalid(0, f".{'.'.join(path)} {text}")
        elif value < 0:
            yield at.invalid(value, "should be a non-negative integer")
        elif value > _MAX_REPLICAS:
            yield at.invalid(value, f"should be less than or equal to {_MAX_REPLICAS}")
    selector = value_at(obj, paths.selector) if paths.selector else None
    if selector is not None and not isinstance(selector, str):
        at = Path("." + ".".join(paths.selector))
        text = f"accessor error: {_printed(selector)} is of the type {_go_type(selector)}"
        yield at.invalid("", f"{at} {text}, expected string")


# -- from a definition ----------------------------------------------------------------------------


def head_table(tables: Tables) -> ObjectType:
    """Return the table of what every custom resource has."""
    string = Scalar("string")
    head = ObjectType(PACKAGE, "CustomResource", "What every custom resource has.")
    fields = (
        Field("apiVersion", string, "Group and version of the object's schema."),
        Field("kind", string, "Kind of the object, in CamelCase; it never changes."),
        Field(
            "metadata",
            tables.get(META, "ObjectMeta"),
            "Name, labels and the other metadata of the object.",
            emit=True,
        ),
    )
    head.fields.update((field.name, field) for field in fields)
    head.order = tuple(head.fields)
    return head


def resource_of(definition: Obj, head: ObjectType) -> ResourceType:
    """Return the resource of an accepted definition; `head` is the table that all kinds share."""
    spec = definition["spec"]
    names, group = definition["status"]["acceptedNames"], spec["group"]
    kind = names["kind"]
    versions = sorted(spec["versions"], key=lambda version: not version["storage"])
    schemas = {
        version["name"]: CustomSchema.of(
            version["schema"]["openAPIV3Schema"],
            group=group,
            version=version["name"],
            kind=kind,
            head=head,
        )
        for version in versions
    }
    parts = {version["name"]: version.get("subresources") or {} for version in versions}
    with_status = frozenset(name for name, part in parts.items() if "status" in part)
    scales = {name: _scale_paths(part["scale"]) for name, part in parts.items() if "scale" in part}
    common: dict[str, Any] = {
        "kind": kind,
        "group": group,
        "schemas": schemas,
        "with_status": with_status,
        "scales": scales,
    }
    return ResourceType(
        group,
        kind,
        names["plural"],
        names.get("singular", kind.lower()),
        namespaced=spec["scope"] == "Namespaced",
        versions=tuple(
            _version(version, deprecation_warning(version, spec), schemas, scales)
            for version in versions
        ),
        strategy=CustomResourceStrategy(reset=(("status",),) if with_status else (), **common),
        status=CustomResourceStatusStrategy(reset=(("metadata",), ("spec",)), **common)
        if with_status
        else None,
        scale=bool(scales),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        unknown_label=_unknown_label,
        verbs=VERBS,
        list_kind=names.get("listKind", ""),
    )


def _version(
    version: Obj,
    deprecation: str,
    schemas: Mapping[str, CustomSchema],
    scales: Mapping[str, ScalePaths],
) -> Version:
    name = version["name"]
    schema = schemas[name]
    columns = version.get("additionalPrinterColumns")
    return Version(
        name,
        schema.table.package,
        from_stored=schema.view,
        deprecation=deprecation,
        unconditional_update=False,
        enabled=version["served"],
        structural=True,
        custom=schema,
        columns=(NAME, *map(_column, columns)) if columns else (NAME, _AGE),
        subresources=frozenset(version.get("subresources") or ()),
        selectable=_selectable(version.get("selectableFields") or ()),
        scale_paths=scales.get(name),
    )


def deprecation_warning(version: Obj, spec: Obj) -> str:
    """Return what clients of a version are warned of; nothing if it is not deprecated.

    The usual text names the best of the versions that are better, served and not deprecated.
    """
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    group, kind = spec["group"], spec["names"]["kind"]
    served = (one for one in spec["versions"] if one["served"] and not one.get("deprecated"))
    best = min((one["name"] for one in served), key=version_priority, default=version["name"])
    text = f"{group}/{version['name']} {kind} is deprecated"
    if version_priority(best) < version_priority(version["name"]):
        text += f"; use {group}/{best} {kind}"
    return text


def _scale_paths(scale: Obj) -> ScalePaths:
    return ScalePaths(
        tuple(scale["specReplicasPath"][1:].split(".")),
        tuple(scale["statusReplicasPath"][1:].split(".")),
        tuple((scale.get("labelSelectorPath") or "")[1:].split("."))
        if scale.get("labelSelectorPath")
        else (),
    )


def _selectable(fields: Sequence[Obj]) -> dict[str, Any]:
    def value(path: Sequence[str], obj: Obj) -> str:
        content = value_at(obj, path)
        if isinstance(content, bool):
            return "true" if content else "false"
        return "" if content is None else str(content)

    paths = [field_["jsonPath"].removeprefix(".") for field_ in fields]
    return {path: lambda obj, path=path: value(path.split("."), obj) for path in paths}


def _unknown_label(_group: str, _version: str, _kind: str, label: str) -> str:
    return f"field label not supported: {label}"


_AGE = Column(
    "Age",
    age_cell,
    type="date",
    description="When the object was created, as the time since then.",
)


def _column(column: Obj) -> Column:
    path, kind = column["jsonPath"], column["type"]
    usual = f"Custom resource definition column (in JSONPath format): {path}"

    def cell(obj: Obj, now: datetime) -> Any:
        values = jsonpath.find(path, obj)
        return _cell(values[0], kind, now) if values else None

    return Column(
        column["name"],
        cell,
        type=kind,
        format=column.get("format", ""),
        priority=column.get("priority", 0),
        description=column.get("description") or usual,
    )


def _cell(value: Any, kind: str, now: datetime) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "string":
            return _printed(value)
        case "integer":
            return int(value) if number else None
        case "number":
            return value if number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case _:
            return _date(value, now) if isinstance(value, str) else None


def _printed(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    return to_json(value).decode()


def _date(value: str, now: datetime) -> str:
    try:
        return age(parse_time(value), now)
    except TimeError:
        return "<invalid>"
