"""Whether a schema is structural: each field has one type, and nothing else defines fields.

The rules and texts are those of Kubernetes. Rules in CEL are rules.py's, the rest of a definition
is validation.py's.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from sully.machinery.customresources import validation
from sully.machinery.customresources.pruning import EMBEDDED, HEAD, PRESERVE, prune
from sully.machinery.fields import FieldError, Path
from sully.machinery.patch.json_patch import same_json
from sully.machinery.schema import ObjectType

Schema = Mapping[str, Any]
Errors = Iterator[FieldError]

_NO_METADATA: Final = ObjectType("", "ObjectMeta", "Defaults do not set it.")
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = (
    *("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"),
)
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_EMPTY_TYPE: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_NOT_NESTED: Final = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    PRESERVE: "must be false to be structural",
    EMBEDDED: "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_IN_ROOT_WITH_STATUS: Final = frozenset(
    (
        *("description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum"),
        *("exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems"),
        *("uniqueItems", "multipleOf", "required", "items", "properties", "externalDocs"),
        *("example", PRESERVE, "x-kubernetes-validations"),
    )
)
_ROOT_FIELDS: Final = (
    "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength"
    " MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties"
    " ExternalDocs Example XPreserveUnknownFields XValidations]"
)


def schema_problems(schema: Schema, at: Path, *, has_status: bool) -> Errors:
    """Yield everything for which a schema is refused, except its rules in CEL."""
    if has_status:
        yield from _root_with_status(schema, at)
    if schema.get("nullable"):
        yield at.child("nullable").forbidden("nullable cannot be true at the root")
    structural = sorted(
        (*_invariants(schema, "root", at), *_complete(schema, schema, at, at)), key=str
    )
    yield from structural
    if not structural:
        yield from _default_problems(schema, at, in_head=True)
    yield from _keyword_problems(schema, at, is_root=True, in_meta=False, forbidden="")


def _root_with_status(schema: Schema, at: Path) -> Errors:
    if schema.get("type") and schema["type"] != "object":
        text = (
            'only "object" is allowed as the type at the root of the schema if the status'
            " subresource is enabled"
        )
        yield at.child("type").invalid(schema["type"], text)
    elif any(name not in _IN_ROOT_WITH_STATUS and schema[name] for name in schema):
        text = (
            f"only {_ROOT_FIELDS} fields are allowed at the root of the schema if the status"
            " subresource is enabled"
        )
        yield at.invalid(dict(schema), text)


# -- structure ----------------------------------------------------------------------------


def _invariants(schema: Schema, level: str, at: Path) -> Errors:
    kind = schema.get("type", "")
    if kind == "array" and not isinstance(schema.get("items"), Mapping | list):
        yield at.child("items").required("must be specified")
    if isinstance(items := schema.get("items"), Mapping):
        yield from _invariants(items, "item", at.child("items"))
    properties = schema.get("properties") or {}
    for name, inner in properties.items():
        yield from _invariants(inner, "field", at.child("properties").key(name))
    values = schema.get("additionalProperties")
    if values is not None:
        if level == "root":
            yield at.child("additionalProperties").forbidden("must not be used at the root")
        if isinstance(values, Mapping):
            yield from _invariants(values, "field", at.child("additionalProperties"))
    yield from _extension_problems(schema, at)
    yield from _value_validations(schema, at)
    yield from _types(schema, level, at)
    yield from _head(properties, schema, level, at)
    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not properties:
        yield at.child("properties").required(
            "must not be empty if x-kubernetes-embedded-resource is true without"
            " x-kubernetes-preserve-unknown-fields"
        )


def _extension_problems(schema: Schema, at: Path) -> Errors:
    if schema.get("x-kubernetes-int-or-string"):
        for name in (PRESERVE, EMBEDDED):
            if schema.get(name):
                text = "must be false if x-kubernetes-int-or-string is true"
                yield at.child(name).invalid(True, text)


def _types(schema: Schema, level: str, at: Path) -> Errors:
    kind = schema.get("type", "")
    if schema.get(EMBEDDED) and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        yield at.child("type").invalid(kind, text) if kind else at.child("type").required(text)
    elif not kind and not schema.get("x-kubernetes-int-or-string") and not schema.get(PRESERVE):
        yield at.child("type").required(_EMPTY_TYPE[level])
    if schema.get(EMBEDDED) and schema.get("additionalProperties") is not None:
        text = "must not be used if x-kubernetes-embedded-resource is set"
        yield at.child("additionalProperties").forbidden(text)
    if level == "root" and kind and kind != "object":
        yield at.child("type").invalid(kind, "must be object at the root")


def _head(properties: Schema, schema: Schema, level: str, at: Path) -> Errors:
    checked = level == "root" or schema.get(EMBEDDED)
    here = at.child("properties")
    for name in ("kind", "apiVersion"):
        if checked and name in properties and properties[name].get("type") != "string":
            yield (
                here.key(name)
                .child("type")
                .invalid(properties[name].get("type", ""), "must be string")
            )
    metadata = properties.get("metadata")
    if metadata is None or not checked:
        return
    if metadata.get("type") != "object":
        yield here.key("metadata").child("type").invalid(metadata.get("type", ""), "must be object")
    only_names = {*(metadata.get("properties") or {})} <= {"name", "generateName"}
    rest = {*metadata} - {"type", "properties", "default", "description", "title"}
    if level == "root" and (rest or not only_names):
        yield here.key("metadata").forbidden(
            "must not specify anything other than name and generateName, but metadata is"
            " implicitly specified"
        )


def _value_validations(schema: Schema, at: Path, *, skip_any: bool = False) -> Errors:
    any_of, all_of = schema.get("anyOf") or (), schema.get("allOf") or ()
    if not skip_any and any_of != _INT_OR_STRING:
        for index, inner in enumerate(any_of):
            yield from _nested(inner, at.child("anyOf").index(index))
    for index, inner in enumerate(all_of):
        first = index == 0 and inner.get("anyOf") == _INT_OR_STRING
        yield from _nested(inner, at.child("allOf").index(index), skip_any=first)
    for index, inner in enumerate(schema.get("oneOf") or ()):
        yield from _nested(inner, at.child("oneOf").index(index))
    if "not" in schema:
        yield from _nested(schema["not"], at.child("not"))
    if pattern := schema.get("pattern"):
        try:
            validation.compiled(pattern)
        except re.error as error:
            text = f"must be a valid regular expression, but isn't: error parsing regexp: {error}"
            yield at.child("pattern").invalid(pattern, text)


def _nested(schema: Schema, at: Path, *, skip_any: bool = False) -> Errors:
    yield from _value_validations(schema, at, skip_any=skip_any)
    if isinstance(items := schema.get("items"), Mapping):
        yield from _nested(items, at.child("items"))
    properties = schema.get("properties") or {}
    for name, inner in properties.items():
        yield from _nested(inner, at.child("properties").key(name))
    for name, text in _NOT_NESTED.items():
        if schema.get(name) not in (None, "", False, []):
            yield at.child(name).forbidden(text)
    if "metadata" in properties:
        yield (
            at.child("properties")
            .key("metadata")
            .forbidden("must not be specified in a nested context")
        )


def _complete(nested: Schema, schema: Schema, at: Path, nested_at: Path) -> Errors:
    """Yield the keywords of a nested schema for fields that are not defined outside of it."""
    junctors = [(nested["not"], nested_at.child("not"))] if "not" in nested else []
    for name in ("allOf", "anyOf", "oneOf"):
        here = nested_at.child(name)
        junctors += [(inner, here.index(i)) for i, inner in enumerate(nested.get(name) or ())]
    for inner, here in junctors:
        yield from _complete(inner, schema, at, here)
        if isinstance(items := inner.get("items"), Mapping):
            yield from _complete_in(
                items, schema.get("items"), at.child("items"), here.child("items")
            )
        for name, value in (inner.get("properties") or {}).items():
            outer = (schema.get("properties") or {}).get(name)
            inside = here.child("properties").key(name)
            yield from _complete_in(value, outer, at.child("properties").key(name), inside)


def _complete_in(nested: Schema, schema: Any, at: Path, nested_at: Path) -> Errors:
    if not isinstance(schema, Mapping):
        yield at.required(f"because it is defined in {nested_at}")
        return
    yield from _complete({"allOf": [nested]}, schema, at, nested_at)


# -- keywords ----------------------------------------------------------------------------


def _keyword_problems(
    schema: Schema, at: Path, *, is_root: bool, in_meta: bool, forbidden: str
) -> Errors:
    """Yield what is wrong with single keywords; `forbidden` is the reason against defaults."""
    kind = schema.get("type", "")
    if kind and kind not in _TYPES:
        yield at.child("type").not_supported(kind, _TYPES)
    if "default" in schema and forbidden:
        yield at.child("default").forbidden(f"must not be set {forbidden}")
    for name in _UNSUPPORTED:
        if schema.get(name) not in (None, "", {}):
            yield at.child(name).forbidden(f"{name} is not supported")
    if kind == "null":
        text = "type cannot be set to null, use nullable as an alternative"
        yield at.child("type").forbidden(text)
    if isinstance(schema.get("items"), list):
        yield at.child("items").forbidden("items must be a schema object and not an array")
    if in_meta and schema.get(EMBEDDED):
        yield at.child(EMBEDDED).forbidden("must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield at.child("uniqueItems").forbidden(text)
    yield from _inner_keywords(schema, at, is_root=is_root, in_meta=in_meta, forbidden=forbidden)
    if schema.get(PRESERVE) is False:
        yield at.child(PRESERVE).invalid(False, "must be true or undefined")
    yield from _merge_keywords(schema, at)


def _inner_keywords(
    schema: Schema, at: Path, *, is_root: bool, in_meta: bool, forbidden: str
) -> Errors:
    values, properties = schema.get("additionalProperties"), schema.get("properties") or {}
    if values is not None and properties and values is not True:
        text = "additionalProperties and properties are mutual exclusive"
        yield at.child("additionalProperties").forbidden(text)
    if isinstance(values, Mapping):
        why = "inside additionalProperties applying to object metadata" if in_meta else forbidden
        here = at.child("additionalProperties")
        yield from _keyword_problems(values, here, is_root=False, in_meta=in_meta, forbidden=why)
    is_resource = is_root or schema.get(EMBEDDED)
    for name in sorted(properties):
        head = bool(is_resource) and name in HEAD
        why = f"in top-level {name}" if is_root and head else forbidden
        here = at.child("properties").key(name)
        inner = properties[name]
        yield from _keyword_problems(
            inner, here, is_root=False, in_meta=in_meta or head, forbidden=why
        )
    nested = [(schema["not"], at.child("not"))] if "not" in schema else []
    for name in ("allOf", "oneOf", "anyOf"):
        here = at.child(name)
        nested += [(inner, here.index(i)) for i, inner in enumerate(schema.get(name) or ())]
    if isinstance(items := schema.get("items"), Mapping):
        nested.append((items, at.child("items")))
    for inner, here in nested:
        yield from _keyword_problems(
            inner, here, is_root=False, in_meta=in_meta, forbidden=forbidden
        )


def _merge_keywords(schema: Schema, at: Path) -> Errors:
    kind = schema.get("type", "")
    for name, expected, choices in (
        ("x-kubernetes-map-type", "object", ("atomic", "granular")),
        ("x-kubernetes-list-type", "array", ("atomic", "set", "map")),
    ):
        value = schema.get(name)
        if value is None:
            continue
        if kind != expected:
            text = f"must be {expected} if {name} is specified"
            yield at.child("type").invalid(kind, text) if kind else at.child("type").required(text)
        if value not in choices:
            yield at.child(name).not_supported(value, choices)
    way, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    items = schema.get("items")
    if way == "set" and isinstance(items, Mapping):
        yield from _set_items(items, at.child("items"))
    if keys and way != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        here = at.child("x-kubernetes-list-type")
        yield here.invalid(way, text) if way else here.required(text)
    if way == "map":
        yield from _map_items(schema, keys, at)
    if way in ("map", "set") and isinstance(items, Mapping) and items.get("nullable"):
        text = f"cannot be nullable when x-kubernetes-list-type is {way}"
        yield at.child("items").child("nullable").forbidden(text)


def _set_items(items: Schema, at: Path) -> Errors:
    text = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and items.get("x-kubernetes-list-type", "atomic") != "atomic":
        yield at.child("x-kubernetes-list-type").invalid(items["x-kubernetes-list-type"], text)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield at.child("x-kubernetes-map-type").invalid(items.get("x-kubernetes-map-type"), text)


def _map_items(schema: Schema, keys: Any, at: Path) -> Errors:
    here = at.child("x-kubernetes-list-map-keys")
    if not keys:
        yield here.required("must not be empty if x-kubernetes-list-type is map")
    items = schema.get("items")
    if not isinstance(items, Mapping):
        text = "must have a schema if x-kubernetes-list-type is map"
        yield at.child("items").required(text)
        return
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield at.child("items").child("type").invalid(items.get("type", ""), text)
        return
    properties, inside = items.get("properties") or {}, at.child("items").child("properties")
    for index, key in enumerate(keys):
        field = properties.get(key)
        if field is None:
            yield here.invalid(list(keys), "entries must all be names of item properties")
        elif field.get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield inside.key(key).child("type").invalid(items["type"], text)
        if key in keys[:index]:
            yield here.invalid(list(keys), "must not contain duplicate entries")
    yield from _required_keys(items, keys, inside)


def _required_keys(items: Schema, keys: Any, at: Path) -> Errors:
    intro = "this property is in x-kubernetes-list-map-keys, so it"
    for key in keys:
        field = (items.get("properties") or {}).get(key)
        if field is None:
            continue
        if key not in (items.get("required") or ()) and "default" not in field:
            text = f"{intro} must have a default or be a required property"
            yield at.key(key).child("default").required(text)
        if field.get("nullable"):
            yield at.key(key).child("nullable").forbidden(f"{intro} cannot be nullable")


# -- defaults ----------------------------------------------------------------------------


def _default_problems(schema: Schema, at: Path, *, in_head: bool = False) -> Errors:
    """Yield defaults that the schema itself would prune or refuse."""
    if "default" in schema:
        value, here = schema["default"], at.child("default")
        if not same_json(prune(value, schema, [], _NO_METADATA), value):
            yield here.invalid(value, "must not have unknown fields")
        yield from validation.problems_at(value, schema, here)
        yield from validation.list_problems(value, schema, here)
    if isinstance(items := schema.get("items"), Mapping):
        yield from _default_problems(items, at.child("items"))
    for name, inner in (schema.get("properties") or {}).items():
        if not (in_head and name in HEAD):
            yield from _default_problems(inner, at.child("properties").key(name))
