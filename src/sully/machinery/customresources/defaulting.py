"""Sets the defaults of a schema where an object has no value."""

from collections.abc import Mapping
from typing import Any

from sully.machinery.serialization.codec import copy

Schema = Mapping[str, Any]


def has_defaults(schema: Any) -> bool:
    """Report whether a schema sets any default."""
    if not isinstance(schema, Mapping):
        return False
    inner = (
        *(schema.get("properties") or {}).values(),
        schema.get("items"),
        schema.get("additionalProperties"),
    )
    return "default" in schema or any(map(has_defaults, inner))


def default(value: Any, schema: Schema) -> None:
    """Set defaults in place, at every depth."""
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        for name, inner in properties.items():
            if "default" in inner and (name not in value or _replaces(value[name], inner)):
                value[name] = copy(inner["default"])
        values = schema.get("additionalProperties")
        for name, field_value in value.items():
            inner = properties.get(name, values)
            if isinstance(inner, Mapping):
                if _replaces(field_value, inner):
                    value[name] = field_value = copy(inner["default"])
                default(field_value, inner)
    elif isinstance(value, list) and isinstance(items := schema.get("items"), Mapping):
        for index, item in enumerate(value):
            if _replaces(item, items):
                value[index] = copy(items["default"])
            default(value[index], items)


def _replaces(value: Any, schema: Schema) -> bool:
    """Report whether a value is a null that stands for the default."""
    return value is None and "default" in schema and not schema.get("nullable")
