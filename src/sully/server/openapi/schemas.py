"""From field tables to JSON schemas, in the two dialects of OpenAPI.

`Definitions` collects the schema of a type together with every type it refers to. The dialects
differ in where definitions live, in whether a reference may have a description beside it, and in
that version 2 carries no defaults.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from sully.machinery.schema import JSON_TYPES, Field, ListOf, MapOf, ObjectType, Scalar, Type

Obj = dict[str, Any]

HEAD = ("apiVersion", "kind", "metadata")
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_NAMED = {
    "Time": f"{META}.Time",
    "MicroTime": f"{META}.MicroTime",
    "Quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "IntOrString": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "object": "io.k8s.apimachinery.pkg.runtime.RawExtension",
}
_FIELD_SET = f"{META}.FieldsV1"
_ZERO: dict[str, Any] = {"string": "", "int32": 0, "int64": 0, "number": 0, "bool": False}
_SHARED: dict[str, Obj] = {
    _NAMED["Time"]: {
        "description": "A moment in UTC, written as RFC 3339 prescribes, in whole seconds.",
        "type": "string",
        "format": "date-time",
    },
    _NAMED["MicroTime"]: {
        "description": "A moment in UTC, written as RFC 3339 prescribes, with microseconds.",
        "type": "string",
        "format": "date-time",
    },
    _NAMED["object"]: {"description": "Any JSON object; it is kept as given.", "type": "object"},
    _FIELD_SET: {
        "description": "A set of fields, as nested objects whose keys name fields and list items.",
        "type": "object",
    },
}
_QUANTITY = (
    "An amount: a decimal number with an optional suffix. `m` stands for a thousandth; `k`, `M`,"
    " `G`, `T`, `P` and `E` for powers of 1000; `Ki`, `Mi`, `Gi`, `Ti`, `Pi` and `Ei` for powers"
    " of 1024; `e3` for a power of ten."
)
_INT_OR_STRING = "Either a whole number or a text such as a percentage or the name of a port."


class Dialect(msgspec.Struct, frozen=True):
    """How one version of OpenAPI represents the tables."""

    prefix: str
    defaults: bool
    wrap_references: bool
    shared: Mapping[str, Obj]
    custom: Callable[[Obj], Obj] = dict
    describes_open_objects: bool = True


V3 = Dialect(
    "#/components/schemas/",
    defaults=True,
    wrap_references=True,
    shared=_SHARED
    | {
        _NAMED["Quantity"]: {
            "description": _QUANTITY,
            "oneOf": [{"type": "string"}, {"type": "number"}],
        },
        _NAMED["IntOrString"]: {
            "description": _INT_OR_STRING,
            "format": "int-or-string",
            "oneOf": [{"type": "integer"}, {"type": "string"}],
        },
    },
)
_ONLY_V3 = frozenset(("anyOf", "oneOf", "allOf", "not", "nullable", "default"))
"""What the documents of version 2 omit: their readers know it differently, or not at all."""
_SHAPE = frozenset(("type", "items", "properties"))


def _in_v2(schema: Obj) -> Obj:
    """Return the schema of a custom resource as far as OpenAPI 2 can express it."""
    # Clients would refuse null, and fields that are not among the properties.
    dropped = _ONLY_V3 | _SHAPE if schema.get("nullable") or is_open(schema) else _ONLY_V3
    result = {name: value for name, value in schema.items() if name not in dropped}
    for name in ("items", "additionalProperties"):
        if isinstance(result.get(name), dict):
            result[name] = _in_v2(result[name])
    inner = result.get("properties", {})
    if inner:
        result["properties"] = {name: _in_v2(value) for name, value in inner.items()}
    if "required" in result:
        names = result["required"]
        result["required"] = [name for name in names if not inner.get(name, {}).get("nullable")]
    return result


def is_open(schema: Obj) -> bool:
    """Report whether objects keep fields that their schema does not name."""
    return bool(schema.get("x-kubernetes-preserve-unknown-fields"))


V2 = Dialect(
    "#/definitions/",
    defaults=False,
    wrap_references=False,
    shared=_SHARED
    | {
        _NAMED["Quantity"]: {"description": _QUANTITY, "type": "string"},
        _NAMED["IntOrString"]: {
            "description": _INT_OR_STRING,
            "type": "string",
            "format": "int-or-string",
        },
    },
    custom=_in_v2,
    describes_open_objects=False,
)

GVK = tuple[str, str, str]


class Definitions(msgspec.Struct):
    """The schemas of one document by name; referring to a type adds it.

    kinds: which group, version and kind a type stands for, by its full name.
    """

    dialect: Dialect
    kinds: Mapping[str, Sequence[GVK]] = msgspec.field(default_factory=dict)
    schemas: dict[str, Obj] = msgspec.field(default_factory=dict)

    def reference(self, kind: ObjectType) -> Obj:
        """Refer to an object type."""
        name = kind.full_name
        if name not in self.schemas:
            # Entered before it is filled: types may contain themselves.
            self.schemas[name] = {}
            self.schemas[name] = self._object(kind)
        return {"$ref": self.dialect.prefix + name}

    def ordered(self) -> dict[str, Obj]:
        """Return all schemas by name."""
        return dict(sorted(self.schemas.items()))

    def _object(self, kind: ObjectType) -> Obj:
        if kind.document is not None:
            return self._custom(kind)
        schema: Obj = {"description": kind.doc, "type": "object"}
        if required := [one.name for one in kind.fields.values() if one.required]:
            schema["required"] = required
        if kind.fields:
            schema["properties"] = {
                name: self._property(kind.fields[name]) for name in sorted(kind.fields)
            }
        if kinds := self.kinds.get(kind.full_name):
            schema["x-kubernetes-group-version-kind"] = [
                {"group": group, "version": version, "kind": name} for group, version, name in kinds
            ]
        if kind.atomic:
            schema["x-kubernetes-map-type"] = "atomic"
        return schema

    def _custom(self, kind: ObjectType) -> Obj:
        """Return the schema of a custom resource as its definition has it."""
        properties = {name: self._property(kind.fields[name]) for name in HEAD}
        if is_open(kind.document) and not self.dialect.describes_open_objects:
            schema: Obj = {"type": "object"}
        else:
            schema = self.dialect.custom(kind.document)
            if not schema.get("required"):
                schema.pop("required", None)
            own = schema.get("properties") or {}
            schema["properties"] = dict(sorted({**own, **properties}.items()))
        schema["x-kubernetes-group-version-kind"] = [
            {"group": group, "version": version, "kind": name}
            for group, version, name in self.kinds.get(kind.full_name, ())
        ]
        return schema

    def _property(self, one: Field) -> Obj:
        schema: Obj = {"description": one.doc} if one.doc else {}
        if self.dialect.defaults:
            schema |= _default(one)
        typed_schema = self._type(one.type, one.name)
        if "$ref" in typed_schema and self.dialect.wrap_references:
            typed_schema = {"allOf": [typed_schema]}
        if one.choices:
            typed_schema = _among(typed_schema, list(one.choices))
        return schema | typed_schema | _merging(one)

    def _type(self, kind: Type, name: str = "") -> Obj:
        match kind:
            case Scalar():
                return self._scalar(kind, name)
            case ListOf():
                return {"type": "array", "items": self._type(kind.item)}
            case MapOf():
                return {"type": "object", "additionalProperties": self._type(kind.value)}
            case ObjectType():
                return self.reference(kind)

    def _scalar(self, kind: Scalar, name: str) -> Obj:
        if kind.name in JSON_TYPES:
            return dict(JSON_TYPES[kind.name])
        # Raw objects carry no name of their own; this one field has its own type upstream.
        shared = _FIELD_SET if name == "fieldsV1" else _NAMED[kind.name]
        self.schemas.setdefault(shared, self.dialect.shared[shared])
        return {"$ref": self.dialect.prefix + shared}


def _default(one: Field) -> Obj:
    """Return the value of an absent field: its default, or zero if it is always written."""
    if isinstance(one.type, ObjectType):
        return {"default": {}} if one.emit else {}
    if not isinstance(one.type, Scalar):
        return {}
    if one.default is not None:
        return {"default": _literal(one.default, one.type.name)}
    return {"default": _ZERO[one.type.name]} if one.emit and one.type.name in _ZERO else {}


def _literal(text: str, scalar: str) -> Any:
    if scalar == "bool":
        return text == "true"
    return int(text) if scalar in ("int32", "int64") else text


def _among(schema: Obj, choices: list[str]) -> Obj:
    """Limit a text, or the entries of a list or map of texts, to an enumeration."""
    for inside in ("items", "additionalProperties"):
        if inside in schema:
            return schema | {inside: schema[inside] | {"enum": choices}}
    return schema | {"enum": choices}


def _merging(one: Field) -> Obj:
    """Return how apply and strategic merge patches treat the field."""
    extensions: Obj = {}
    if one.map_keys:
        extensions["x-kubernetes-list-map-keys"] = list(one.map_keys)
    if one.list_type:
        subject = "list" if isinstance(one.type, ListOf) else "map"
        extensions[f"x-kubernetes-{subject}-type"] = one.list_type
    if one.merge_key:
        extensions["x-kubernetes-patch-merge-key"] = one.merge_key
    strategy = ["merge"] * one.merge + ["retainKeys"] * one.retain_keys
    strategy += ["replace"] * one.replace
    if strategy:
        extensions["x-kubernetes-patch-strategy"] = ",".join(strategy)
    return extensions
