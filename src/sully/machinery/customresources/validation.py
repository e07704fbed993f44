"""Checks an object against its schema, with the texts of Kubernetes.

`old` is the object before an update: what an update does not change is not checked again, so that
a stricter schema does not block writes to other fields.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from sully.machinery.customresources.formats import KNOWN, NUMERIC, is_formatted
from sully.machinery.customresources.pruning import EMBEDDED, HEAD
from sully.machinery.fields import FieldError, Path, errors_at
from sully.machinery.patch.json_patch import same_json
from sully.machinery.serialization.gotext import compact_json, quote

Schema = Mapping[str, Any]
Obj = dict[str, Any]
_MISSING: Final = object()
_RANGES: Final = {"int32": 2**31, "int64": 2**63}


def problems(value: Any, schema: Schema, at: Path, old: Any = _MISSING) -> Iterator[FieldError]:
    """Yield everything in which a value violates its schema."""
    if old is not _MISSING and same_json(value, old):
        return
    if value is None:
        yield from _type_problem(value, schema, at)
        yield from _enum_problem(value, schema, at)
        return
    yield from _type_problem(value, schema, at)
    yield from _junctor_problems(value, schema, at)
    if isinstance(value, str):
        yield from _string_problems(value, schema, at)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_problems(value, schema, at)
    elif isinstance(value, list):
        yield from _list_problems(value, schema, at, old)
    yield from _enum_problem(value, schema, at)
    if isinstance(value, dict):
        yield from _object_problems(value, schema, at, old)


def problems_at(value: Any, schema: Schema, at: Path, old: Any = _MISSING) -> Iterator[FieldError]:
    """Yield what is wrong with a part of an object; texts name fields inside of the part."""
    return errors_at(problems(value, schema, Path(), old), at)


def is_misshapen(error: FieldError) -> bool:
    """Report whether rules and managed fields cannot read an object with this error."""
    return error.reason == "FieldValueTypeInvalid" or error.field == "<nil>"


# -- types ----------------------------------------------------------------------------


def _types(schema: Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _type_problem(value: Any, schema: Schema, at: Path) -> Iterator[FieldError]:
    types, format_ = _types(schema), schema.get("format", "")
    format_ = format_ if format_ in KNOWN else ""
    if value is None:
        if types and not schema.get("nullable"):
            yield mistyped(at, ",".join(types), "null")
        return
    if not types and not format_:
        return
    actual, actual_format = _type_of(value)
    fits = (
        actual in types
        or (actual == "number" and _is_whole(value) and "integer" in types)
        or (actual == "integer" and "number" in types)
    )
    textual = isinstance(value, str | list)
    if format_ and not textual and not fits and actual_format != format_:
        yield mistyped(at, format_, actual_format)
    elif format_ and textual and not {"number", "integer"} & {*types}:
        return
    elif types and not fits:
        yield mistyped(at, ",".join(types), actual)


def _type_of(value: Any) -> tuple[str, str]:
    if isinstance(value, bool):
        return "boolean", ""
    names = {
        str: ("string", ""),
        int: ("integer", "int64"),
        float: ("number", "float64"),
        list: ("array", ""),
    }
    return names.get(type(value), ("object", ""))


def mistyped(at: Path, expected: str, actual: str) -> FieldError:
    """Return the error for a value of the wrong type."""
    return at.type_invalid(actual, f"{at.text} in body must be of type {expected}: {quote(actual)}")


# -- values ----------------------------------------------------------------------------


def _string_problems(value: str, schema: Schema, at: Path) -> Iterator[FieldError]:
    if (limit := schema.get("maxLength")) is not None and len(value) > limit:
        yield at.too_long(limit)
    elif (limit := schema.get("minLength")) is not None and len(value) < limit:
        yield at.invalid(value, f"{at.text} in body should be at least {limit} chars long")
    elif (pattern := schema.get("pattern")) and compiled(pattern).search(value) is None:
        yield at.invalid(value, f"{at.text} in body should match '{pattern}'")
    name = schema.get("format", "")
    if name not in NUMERIC and not is_formatted(value, name):
        text = f"{at.text} in body must be of type {name}: {quote(value)}"
        yield at.type_invalid(value, text)


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a regular expression of Go; raises re.error."""
    # Go's $ is the end of the text; Python's would let a line break pass before it.
    text = re.sub(r"(?<!\\)((?:\\\\)*)\$(?=$|[)|])", r"\1\\Z", pattern.replace(r"\z", r"\Z"))
    return re.compile(text, re.ASCII)


def _is_in_range(value: float, name: str) -> bool:
    if name in _RANGES:
        return type(value) is int and -_RANGES[name] <= value < _RANGES[name]
    return _is_whole(value)


def _is_whole(value: float) -> bool:
    return float(value).is_integer() and -_RANGES["int64"] <= value < _RANGES["int64"]


def _number_problems(value: float, schema: Schema, at: Path) -> Iterator[FieldError]:
    name = schema.get("format", "")
    if schema.get("type") == "integer" and not _is_in_range(value, name):
        # Kubernetes reports it without the path.
        which = f"with format {name}" if name in _RANGES else "(default format)"
        yield Path().invalid("", f"Checked value must be of type integer {which} in {at.text}")
    if (factor := schema.get("multipleOf")) is not None and factor > 0:
        quotient = value / factor
        if not float(quotient).is_integer():
            yield at.invalid(
                value, f"{at.text} in body should be a multiple of {go_number(factor)}"
            )
    if (limit := schema.get("maximum")) is not None:
        exclusive = bool(schema.get("exclusiveMaximum"))
        if value > limit or (exclusive and value == limit):
            relation = "less than" if exclusive else "less than or equal to"
            yield at.invalid(value, f"{at.text} in body should be {relation} {go_number(limit)}")
    if (limit := schema.get("minimum")) is not None:
        exclusive = bool(schema.get("exclusiveMinimum"))
        if value < limit or (exclusive and value == limit):
            relation = "greater than" if exclusive else "greater than or equal to"
            yield at.invalid(value, f"{at.text} in body should be {relation} {go_number(limit)}")


def go_number(value: float) -> str:
    """Print a number as Go's %v does."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e21):
        return str(int(value))
    return repr(value)


def _enum_problem(value: Any, schema: Schema, at: Path) -> Iterator[FieldError]:
    choices = schema.get("enum")
    if not choices or (value is None and schema.get("nullable") and None in choices):
        return
    if not any(_is_choice(value, choice) for choice in choices):
        texts = [choice if isinstance(choice, str) else compact_json(choice) for choice in choices]
        yield at.not_supported(value, texts)


def _is_choice(value: Any, choice: Any) -> bool:
    if isinstance(value, float) and type(choice) is int:
        # Go converts the value to the type of the choice, and loses a fraction.
        return int(value) == choice
    return same_json(value, choice)


# -- lists and objects ----------------------------------------------------------------------------


def _list_problems(value: list[Any], schema: Schema, at: Path, old: Any) -> Iterator[FieldError]:
    if isinstance(items := schema.get("items"), Mapping):
        before = old_items(old, schema) if old is not _MISSING else None
        for index, item in enumerate(value):
            previous = before(item) if before is not None else _MISSING
            yield from problems(item, items, at.index(index), previous)
    if (limit := schema.get("minItems")) is not None and len(value) < limit:
        yield at.invalid(len(value), f"{at.text} in body should have at least {limit} items")
    if (limit := schema.get("maxItems")) is not None and len(value) > limit:
        yield at.too_many(len(value), limit)


def old_items(old: Any, schema: Schema) -> Callable[[Any], Any] | None:
    """Return how to find the old item of a new one; None if items have no identity."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") != "map" or not keys or not isinstance(old, list):
        return None
    by_key = {map_key(item, keys): item for item in old}
    return lambda item: by_key.get(map_key(item, keys), _MISSING)


def map_key(item: Any, keys: Any) -> str:
    """Return the key of an item of a list of type map, as text."""
    named = {key: item[key] for key in keys if key in item} if isinstance(item, dict) else item
    return compact_json(named)


def is_missing(value: Any) -> bool:
    """Report whether there is no old value."""
    return value is _MISSING


def _object_problems(value: Obj, schema: Schema, at: Path, old: Any) -> Iterator[FieldError]:
    if (limit := schema.get("minProperties")) is not None and len(value) < limit:
        yield at.invalid(len(value), f"{at.text} in body should have at least {limit} properties")
    if (limit := schema.get("maxProperties")) is not None and len(value) > limit:
        yield at.too_many(len(value), limit)
    properties = schema.get("properties") or {}
    values = schema.get("additionalProperties")
    before = old if isinstance(old, dict) else {}
    if isinstance(values, Mapping):
        for name, item in value.items():
            if name not in properties:
                yield from problems(item, values, at.child(name), before.get(name, _MISSING))
    for name in sorted(properties):
        if name in value:
            previous = before.get(name, _MISSING)
            yield from problems(value[name], properties[name], at.child(name), previous)
    for name in schema.get("required") or ():
        if name not in value:
            yield at.child(name).required()


# -- allOf, anyOf, oneOf, not ----------------------------------------------------------------


def _junctor_problems(value: Any, schema: Schema, at: Path) -> Iterator[FieldError]:
    if schema.get("anyOf"):
        yield from _any_of(value, schema["anyOf"], at)
    if schema.get("oneOf"):
        yield from _one_of(value, schema["oneOf"], at)
    if schema.get("allOf"):
        yield from _all_of(value, schema["allOf"], at)
    if "not" in schema and not any(problems(value, schema["not"], at)):
        yield _unplaced(f"{quote(at.text)} must not validate the schema (not)")


def _any_of(value: Any, choices: Any, at: Path) -> Iterator[FieldError]:
    failures = []
    for choice in choices:
        errors = list(problems(value, choice, at))
        if not errors:
            return
        failures.append(errors)
    yield _unplaced(f"{quote(at.text)} must validate at least one schema (anyOf)")
    yield from min(failures, key=len)


def _one_of(value: Any, choices: Any, at: Path) -> Iterator[FieldError]:
    results = [list(problems(value, choice, at)) for choice in choices]
    valid = sum(not errors for errors in results)
    if valid == 1:
        return
    how = f"Found {valid} valid alternatives" if valid else "Found none valid"
    yield _unplaced(f"{quote(at.text)} must validate one and only one schema (oneOf). {how}")
    if not valid:
        yield from min(results, key=len)


def _all_of(value: Any, choices: Any, at: Path) -> Iterator[FieldError]:
    results = [list(problems(value, choice, at)) for choice in choices]
    for errors in results:
        yield from errors
    if any(results):
        more = ". None validated" if all(results) else ""
        yield _unplaced(f"{quote(at.text)} must validate all the schemas (allOf){more}")


def _unplaced(text: str) -> FieldError:
    return Path().invalid("", text)


# -- what a JSON schema cannot express --------------------------------------------------------


def list_problems(value: Any, schema: Schema, at: Path) -> Iterator[FieldError]:
    """Yield the duplicates in lists that are sets or maps."""
    if isinstance(value, list):
        yield from _duplicates(value, schema, at)
        if isinstance(items := schema.get("items"), Mapping):
            for index, item in enumerate(value):
                yield from list_problems(item, items, at.index(index))
    elif isinstance(value, dict):
        properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, item in value.items():
            inner = properties.get(name, values)
            if isinstance(inner, Mapping):
                here = at.child(name) if name in properties else at.key(name)
                yield from list_problems(item, inner, here)


def _duplicates(value: list[Any], schema: Schema, at: Path) -> Iterator[FieldError]:
    way, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    if way not in ("set", "map"):
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        if way == "map" and not isinstance(item, dict):
            continue
        name = map_key(item, keys or ()) if way == "map" else compact_json(item)
        if name in seen:
            shown = {key: item[key] for key in keys or () if key in item} if way == "map" else item
            yield at.index(index).duplicate(shown)
        seen.add(name)


def embedded_problems(value: Any, schema: Schema, at: Path) -> Iterator[FieldError]:
    """Yield what is wrong with the kind and metadata of embedded objects."""
    if isinstance(value, list) and isinstance(items := schema.get("items"), Mapping):
        for index, item in enumerate(value):
            yield from embedded_problems(item, items, at.index(index))
    if not isinstance(value, dict):
        return
    if schema.get(EMBEDDED):
        for name in ("apiVersion", "kind"):
            text = value.get(name)
            if not text:
                yield at.child(name).required()
            elif not isinstance(text, str):
                yield at.child(name).type_invalid(text, "must be a string")
        metadata = value.get("metadata")
        if metadata is not None and not isinstance(metadata, dict):
            yield at.child("metadata").type_invalid(metadata, "must be an object")
    properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in value.items():
        inner = properties.get(name, values)
        if isinstance(inner, Mapping) and not (schema.get(EMBEDDED) and name in HEAD):
            yield from embedded_problems(item, inner, at.child(name))
