"""Removes fields that a schema does not have, and nulls that it does not allow.

Texts about unknown fields name them as the strict decoding of other kinds does.
"""

from collections.abc import Mapping
from typing import Any

from sully.machinery.schema import ObjectType
from sully.machinery.serialization.codec import Trail, written
from sully.machinery.serialization.decode import MAX_UNKNOWN, DecodeError, decode
from sully.machinery.serialization.gotext import show

Obj = dict[str, Any]
Schema = Mapping[str, Any]

HEAD = frozenset(("apiVersion", "kind", "metadata"))
"""The fields that every object of the API has, at its root and where one is embedded."""
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
_LARGEST = 2.0**63


def prune(
    value: Any, schema: Schema, unknown: list[str], metadata: ObjectType, at: Trail = ()
) -> Any:
    """Return a copy without what the schema does not have; adds its paths to `unknown`.

    `metadata` is the table of the metadata of embedded objects; raises DecodeError.
    """
    if isinstance(value, dict):
        return _pruned_object(value, schema, unknown, metadata, at)
    if isinstance(value, list):
        items = schema.get("items") or (schema if schema.get(PRESERVE) else {})
        return [
            prune(item, items, unknown, metadata, (at, index)) for index, item in enumerate(value)
        ]
    if type(value) is float and value.is_integer() and -_LARGEST <= value < _LARGEST:
        # JSON does not distinguish them, and Kubernetes stores the shorter form.
        return int(value)
    return value


def _pruned_object(
    value: Obj, schema: Schema, unknown: list[str], metadata: ObjectType, at: Trail
) -> Obj:
    result: Obj = {}
    embedded = schema.get(EMBEDDED)
    for name, field_value in value.items():
        if embedded and name in HEAD:
            result[name] = field_value
            if name == "metadata":
                result[name] = _read_metadata(field_value, unknown, metadata, (at, name))
            continue
        inner = field_schema(schema, name)
        if inner is None:
            if len(unknown) < MAX_UNKNOWN:
                unknown.append(written((at, name)))
        elif field_value is not None or _keeps_null(inner):
            result[name] = prune(field_value, inner, unknown, metadata, (at, name))
    return result


def _read_metadata(value: Any, unknown: list[str], table: ObjectType, at: Trail) -> Any:
    """Read the metadata of an embedded object; what was not sent is not added."""
    inner: list[str] = []
    try:
        read = decode(value, table, inner)
    except DecodeError as error:
        raise DecodeError(f"{written(at)}: Invalid value: {show(value)}: {error}") from None
    unknown += [f"{written(at)}.{name}" for name in inner][: MAX_UNKNOWN - len(unknown)]
    return {name: field_value for name, field_value in read.items() if name in value}


_ANYTHING: Schema = {PRESERVE: True, "nullable": True}


def field_schema(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a field or map value; None if there is no such field."""
    inner: Schema | None = (schema.get("properties") or {}).get(name)
    if inner is not None:
        return inner
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return values
    return _ANYTHING if values is True or schema.get(PRESERVE) else None


def _keeps_null(schema: Schema) -> bool:
    # A null that stands for a default is replaced by defaulting.
    return bool(schema.get("nullable")) or "default" in schema
