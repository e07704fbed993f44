"""From a request body to an object in the storage version: kind check, field check, conversion."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from sully.machinery.customresources.structural import read as read_structural
from sully.machinery.errors import ApiError
from sully.machinery.fields import value_at
from sully.machinery.patch.ownership.entries import entries_of
from sully.machinery.patch.quoting import in_struct_order
from sully.machinery.schema import ObjectType
from sully.machinery.serialization.codec import merge_repeated, parse_json
from sully.machinery.serialization.decode import DecodeError, decode
from sully.machinery.strategy import Obj
from sully.server.registry.bodies.body import Body, PatchText
from sully.server.registry.bodies.kinds import (
    NO_KIND,
    SentKind,
    check_custom_kind,
    check_kind,
    check_patched_kind,
    json_shape,
    nameless,
    no_kind_problem,
    unrecognized,
)
from sully.server.registry.bodies.strict_fields import undecodable, validate_strict
from sully.server.registry.metadata import merge_owners
from sully.server.requests import Request
from sully.server.storage.objects import Objects

Reader = Callable[[Any, ObjectType, list[str]], Obj]


class Decoded(msgspec.Struct):
    """An object in the storage version with warnings about its fields."""

    obj: Obj
    warnings: list[str]


def decode_body(
    objects: Objects, request: Request, body: Body, before: Obj | None = None
) -> Decoded:
    """Check and convert an object that a client sent; `before` is what it updates."""
    value = {} if body.value is None else body.value
    if not isinstance(value, dict):
        raise unrecognized(request.target, no_kind_problem(value), body.raw)
    if request.target.resource.storage_version.custom is not None and body.raw:
        check_custom_kind(request.target, value, body.raw)
    else:
        warnings = _warnings_as_sent(objects, request, value, body.repeated)
        try:
            check_kind(objects, request.target, body)
        except ApiError as error:
            error.warnings[:0] = warnings
            raise
        if body.repeated and body.is_json:
            value = merge_repeated(body.raw)
    return decode_object(objects, request, value, body.repeated, before=before)


def _warnings_as_sent(
    objects: Objects, request: Request, value: Obj, repeated: list[str]
) -> list[str]:
    """Decode a body of another version of its kind: what is wrong with it is reported first."""
    target = request.target
    if value.get("apiVersion") in (None, "", target.group_version):
        return []
    sent = SentKind.of(target, value)
    same = (sent.kind, sent.group) == (target.resource.kind, target.resource.group)
    if not same or sent.version == target.version or target.resource.version(sent.version) is None:
        return []
    as_sent = replace(request, target=replace(target, version=sent.version))
    return decode_object(objects, as_sent, value, repeated).warnings


def with_empty_lists(request: Request, body: Body) -> Request:
    """Return a request that knows which empty lists of its body count as present."""
    paths = request.target.resource.strategy.empties()
    sent = tuple(path for path in paths if value_at(body.value, path) == [])
    return replace(request, sent_empty=sent) if sent else request


def decode_object(
    objects: Objects,
    request: Request,
    value: Obj,
    repeated: list[str],
    patch: PatchText | None = None,
    before: Obj | None = None,
) -> Decoded:
    """Check the fields of an object and convert it to the storage version.

    `patch` is for the errors of a patched object. `before` is the stored object that changes:
    what it has in common with the new one is not checked again.
    """
    target = request.target
    request.sent.value, request.sent.version = value, target.version
    managed_fields = entries_of(before)
    schema = objects.scheme.schema(target.resource, target.version)
    unknown: list[str] = []
    version = target.resource.version(target.version)
    reader: Reader = decode
    if before is not None and not target.resource.has_shapes:
        # A conversion may not result in the normal form of a version.
        reader = partial(decode, known=before)
    if version is not None and version.custom is not None:
        custom = version.custom
        reader = lambda value, _, unknown: custom.read(value, unknown)  # noqa: E731 - a short reader
    elif version is not None and version.structural:
        reader = read_structural
    rest = _without(managed_fields, value) if managed_fields else None
    kind = (target.resource.kind, target.version)
    try:
        decoded = reader(value if rest is None else rest, schema, unknown)
    except DecodeError as first:
        error = first if patch is None else _as_read(value, schema, patch, reader) or first
        if patch is not None and patch.applied:
            gvk = f"{target.group_version}, Kind={target.resource.kind}"
            gvk = gvk if target.resource.group else f"/{gvk}"
            raise ApiError(
                f"failed to convert new object ({patch.applied}) to proper version: unable to"
                f" convert unstructured object to {gvk}: {error.converting}"
            ) from None
        problem = error.converting if patch is not None and patch.is_strategic else str(error)
        raise undecodable(kind, problem, patch) from None
    if rest is not None:
        decoded["metadata"]["managedFields"] = managed_fields
    elif _clears_managed_fields(value):
        decoded["metadata"]["managedFields"] = [{}]
    if patch is not None and patch.is_strategic:
        unknown = sorted(getattr(name, "converting", name) for name in unknown)
    warnings = validate_strict(request, kind, repeated, unknown, patch)
    decoded.pop("kind", None)
    decoded.pop("apiVersion", None)
    stored = objects.to_stored(decoded, target.resource, target.version)
    return Decoded(stored, warnings + merge_owners(stored))


def _as_read(
    value: Obj, schema: ObjectType, patch: PatchText, reader: Reader
) -> DecodeError | None:
    """Return the first error in a patched object with its keys as Kubernetes reads them.

    It converts maps to structs, field by field, or parses the text that it shows.
    """
    if patch.is_strategic or patch.applied:
        ordered = in_struct_order(value, schema)
    else:
        ordered = parse_json(patch.shown().encode())[0]
    try:
        reader(ordered, schema, [])
    except DecodeError as error:
        return error
    return None


def decode_part(
    request: Request, schema: ObjectType, body: Body, patch: PatchText | None = None
) -> Decoded:
    """Check a body of a kind that is only sent to a subresource, such as Scale."""
    unknown: list[str] = []
    kind = (schema.name, "v1")
    try:
        decoded = decode({} if body.value is None else body.value, schema, unknown)
    except DecodeError as error:
        raise undecodable(kind, str(error), patch) from None
    return Decoded(decoded, validate_strict(request, kind, body.repeated, unknown, patch))


def _without(managed_fields: list[Obj], value: Obj) -> Obj | None:
    """Return an object without its managedFields if they are these; else None."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("managedFields") != managed_fields:
        return None
    return {**value, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def _clears_managed_fields(value: Obj) -> bool:
    """Report whether an object has an empty list, which clears managed fields."""
    metadata = value.get("metadata")
    return isinstance(metadata, dict) and metadata.get("managedFields") == []


def patched_request(
    objects: Objects, request: Request, patched: Obj, patch: PatchText, warnings: list[str]
) -> Request:
    """Return the request for the version that a patch gave its object; raises for other kinds."""
    target = request.target
    for name in ("apiVersion", "kind"):
        if not isinstance(patched.get(name), str | None):
            shape = json_shape(patched[name])
            text = f"json: cannot unmarshal {shape} into Go struct field .{name} of type string"
            raise undecodable((target.resource.kind, target.version), f"{NO_KIND}: {text}", patch)
    if not patched.get("apiVersion") and target.resource.storage_version.custom is None:
        # Without a version nothing of the object is known, not even its name.
        unknown = sorted(patched.keys() - {"apiVersion", "kind"})
        kind = (target.resource.kind, target.version)
        warnings += validate_strict(request, kind, [], unknown, patch)
        raise nameless(target)
    if target.resource.storage_version.custom is not None:
        if not patched.get("kind"):
            kind, text = (target.resource.kind, target.version), patch.shown()
            raise undecodable(kind, f"Object 'Kind' is missing in '{text}'", patch)
        check_patched_kind(target, patched)
        return request
    sent = SentKind.of(target, patched)
    problem = sent.problem(objects, target)
    if not problem:
        return request
    same = (sent.kind, sent.group) == (target.resource.kind, target.resource.group)
    if not same or target.resource.version(sent.version) is None:
        raise undecodable((sent.kind, sent.version), problem, patch)
    return replace(request, target=replace(target, version=sent.version))
