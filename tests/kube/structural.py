"""The rules a Kubernetes API server holds CustomResourceDefinitions to, written down once more.

They are not those of the code that makes our definitions: a test asks this module whether a real
server would take what `sully install` brings, and the server that tests speak to (server.py)
refuses by it. What compiles and what it may cost is asked in rules.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Obj = Mapping[str, Any]

TYPES = frozenset(("array", "boolean", "integer", "number", "object", "string"))
SCALARS = frozenset(("boolean", "integer", "number", "string"))
FORMATS = frozenset(
    ("byte", "date", "date-time", "double", "duration", "float", "int32", "int64", "uuid")
)
"""Those of the formats a server knows that our tables can bring about; others are not checked."""
KNOWN = frozenset(
    (
        "additionalProperties",
        "allOf",
        "anyOf",
        "default",
        "description",
        "enum",
        "example",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "externalDocs",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "nullable",
        "oneOf",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    )
)
"""What may stand in a schema; `$ref`, `definitions`, `patternProperties` and more may not."""
NOT_IN_JUNCTORS = frozenset(
    ("additionalProperties", "default", "description", "nullable", "title", "type")
)
INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_COLUMN_TYPES = frozenset(("boolean", "date", "integer", "number", "string"))
_LOOKAROUND = re.compile(r"\(\?(?![imsU:P-])|\\[1-9]")
"""What Go's regular expressions do not have."""


def problems(definition: Obj) -> Iterator[str]:
    """Yield everything for which a server would refuse a definition, with its place."""
    spec = definition["spec"]
    yield from _names(definition, spec)
    if spec.get("preserveUnknownFields"):
        yield "spec.preserveUnknownFields: must be false"
    if (spec.get("conversion") or {}).get("strategy", "None") != "None":
        yield "spec.conversion: a webhook would be needed"
    versions = spec.get("versions") or ()
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield "spec.versions: exactly one must be stored"
    if len({version["name"] for version in versions}) != len(versions):
        yield "spec.versions: a name is there twice"
    for number, version in enumerate(versions):
        yield from _version(version, f"spec.versions[{number}]")


def _names(definition: Obj, spec: Obj) -> Iterator[str]:
    names, group = spec["names"], spec["group"]
    if definition["metadata"]["name"] != f"{names['plural']}.{group}":
        yield "metadata.name: must be the plural and the group"
    if not _SUBDOMAIN.fullmatch(group):
        yield "spec.group: must be a domain"
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        yield "spec.scope: must be Cluster or Namespaced"
    arguments = [names["plural"], names["singular"], *names.get("shortNames", ())]
    arguments += [*names.get("categories", ()), names["kind"].lower(), names["listKind"].lower()]
    for word in arguments:
        if not _LABEL.fullmatch(word):
            yield f"spec.names: {word} is not a label"
    if names["kind"] == names["listKind"]:
        yield "spec.names.listKind: must differ from kind"


def _version(version: Obj, at: str) -> Iterator[str]:
    if not _LABEL.fullmatch(version["name"]):
        yield f"{at}.name: is not a label"
    for name in ("served", "storage"):
        if not isinstance(version.get(name), bool):
            yield f"{at}.{name}: must be given"
    for number, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from _column(column, f"{at}.additionalPrinterColumns[{number}]")
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        yield f"{at}.schema: must be given"
        return
    yield from _root(schema, f"{at}.schema")


def _column(column: Obj, at: str) -> Iterator[str]:
    if not column.get("name"):
        yield f"{at}.name: must be given"
    if column.get("type") not in _COLUMN_TYPES:
        yield f"{at}.type: {column.get('type')} is none"
    if not re.fullmatch(r"(\.[A-Za-z_][\w-]*(\[\d+\])?)+", column.get("jsonPath", "")):
        yield f"{at}.jsonPath: must be a simple path that begins with a dot"


def _root(schema: Obj, at: str) -> Iterator[str]:
    if schema.get("type") != "object":
        yield f"{at}.type: must be object"
    own = schema.get("properties") or {}
    for name in ("apiVersion", "kind"):
        if own.get(name, {"type": "string"}).get("type") != "string":
            yield f"{at}.{name}: must be a string"
    metadata = own.get("metadata") or {"type": "object"}
    if metadata.get("type") != "object" or set(metadata) - {"type", "properties", "description"}:
        yield f"{at}.metadata: only name and generateName may be restricted"
    if set(metadata.get("properties") or ()) - {"name", "generateName"}:
        yield f"{at}.metadata: only name and generateName may be restricted"
    yield from _node(schema, at)


def _node(schema: Obj, at: str) -> Iterator[str]:
    for name in sorted(set(schema) - KNOWN):
        yield f"{at}: {name} is forbidden"
    yield from _type(schema, at)
    yield from _merging(schema, at)
    yield from _values(schema, at)
    yield from _junctors(schema, at)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _node(inner, f"{at}.{name}")
    if isinstance(schema.get("items"), Mapping):
        yield from _node(schema["items"], f"{at}[]")
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from _node(schema["additionalProperties"], f"{at}{{}}")


def _type(schema: Obj, at: str) -> Iterator[str]:
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        if kind is not None:
            yield f"{at}.type: must be absent where both are allowed"
    elif kind is None and not schema.get("x-kubernetes-preserve-unknown-fields"):
        yield f"{at}.type: must be given"
    elif kind is not None and kind not in TYPES:
        yield f"{at}.type: {kind} is none"
    if kind == "array" and not isinstance(schema.get("items"), Mapping):
        yield f"{at}.items: must be one schema"
    if kind != "array" and "items" in schema:
        yield f"{at}.items: only of an array"
    if kind != "object" and ("properties" in schema or "additionalProperties" in schema):
        yield f"{at}: only an object has properties"
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{at}: properties and additionalProperties exclude each other"
    if isinstance(schema.get("additionalProperties"), bool):
        yield f"{at}.additionalProperties: must be a schema"
    for name in schema.get("required") or ():
        if kind == "object" and name not in (schema.get("properties") or {}):
            yield f"{at}.required: {name} is not a property, so it would always be pruned"


def _merging(schema: Obj, at: str) -> Iterator[str]:
    kind, lists, keys = (
        schema.get("type"),
        schema.get("x-kubernetes-list-type"),
        schema.get("x-kubernetes-list-map-keys"),
    )
    if lists is not None and (kind != "array" or lists not in ("atomic", "map", "set")):
        yield f"{at}.x-kubernetes-list-type: {lists} of {kind}"
    if (lists == "map") != bool(keys):
        yield f"{at}.x-kubernetes-list-map-keys: with lists of type map, and only there"
    if lists == "map":
        yield from _map_keys(schema["items"], keys or (), at)
    if lists == "set" and schema["items"].get("type") not in SCALARS:
        yield f"{at}.items: a set is of scalars"
    maps = schema.get("x-kubernetes-map-type")
    if maps is not None and (kind != "object" or maps not in ("atomic", "granular")):
        yield f"{at}.x-kubernetes-map-type: {maps} of {kind}"
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield f"{at}.x-kubernetes-preserve-unknown-fields: true or absent"


def _map_keys(item: Obj, keys: Any, at: str) -> Iterator[str]:
    if item.get("type") != "object":
        yield f"{at}.items: must be objects to have keys"
    if len(set(keys)) != len(keys):
        yield f"{at}.x-kubernetes-list-map-keys: one is there twice"
    for key in keys:
        inner = (item.get("properties") or {}).get(key)
        if inner is None or inner.get("type") not in SCALARS:
            yield f"{at}[].{key}: a key must be a scalar property"
        elif inner.get("nullable"):
            yield f"{at}[].{key}: a key must not be null"
        elif key not in (item.get("required") or ()) and "default" not in inner:
            yield f"{at}[].{key}: a key must be required or have a default"


def _values(schema: Obj, at: str) -> Iterator[str]:
    if "format" in schema and schema["format"] not in FORMATS:
        yield f"{at}.format: {schema['format']} is none"
    if "default" in schema and schema["default"] is None and not schema.get("nullable"):
        yield f"{at}.default: null where null is not allowed"
    if "enum" in schema:
        items = [repr(item) for item in schema["enum"]]
        if len(set(items)) != len(items) or not items:
            yield f"{at}.enum: values must be given and differ"
        if schema.get("type") == "string" and not all(isinstance(x, str) for x in schema["enum"]):
            yield f"{at}.enum: values must be of the type"
    if "pattern" in schema:
        if _LOOKAROUND.search(schema["pattern"]):
            yield f"{at}.pattern: Go does not have such expressions"
        re.compile(schema["pattern"])


def _junctors(schema: Obj, at: str) -> Iterator[str]:
    if schema.get("x-kubernetes-int-or-string") and schema.get("anyOf") == INT_OR_STRING:
        return
    inner = [item for name in ("allOf", "anyOf", "oneOf") for item in schema.get(name) or ()]
    inner += [schema["not"]] if "not" in schema else []
    for item in inner:
        for name in item:
            if name in NOT_IN_JUNCTORS or name.startswith("x-kubernetes-"):
                yield f"{at}: {name} is forbidden within anyOf, allOf, oneOf and not"
