"""From a request body to an object in the hub version: kind check, field check, conversion."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sully.machinery.codec import has_more_values
from sully.machinery.decode import MAX_UNKNOWN, DecodeError, decode
from sully.machinery.errors import ApiError, BadRequest, RequestEntityTooLarge, invalid
from sully.machinery.fields import Path
from sully.machinery.gotext import quote
from sully.machinery.schema import ObjectType
from sully.machinery.strategy import Obj, ResourceType
from sully.machinery.structural import read as read_structural
from sully.server.requests import Request, Target
from sully.server.storage.objects import Objects

MANAGED_FIELDS_FACTOR = 2
"""How many times as much as the object itself its managedFields may hold."""
_STEPS = re.compile(r"[.\[]")
NO_KIND = "couldn't get version/kind; json parse error"
_MAX_QUOTED = 30  # bytes of an undecodable body in an error text
# Every group and version knows these.
_COMMON_KINDS = frozenset(
    (
        *("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status", "WatchEvent"),
        *("CreateOptions", "DeleteOptions", "GetOptions", "ListOptions"),
        *("PatchOptions", "UpdateOptions"),
    )
)
_LEGACY_SCHEME = "pkg/api/legacyscheme/scheme.go:30"


@dataclass(slots=True)
class Body:
    """A parsed body: a JSON value, the paths of repeated keys, and the bytes for error texts."""

    value: Any
    repeated: list[str] = field(default_factory=list)
    raw: bytes = b""

    @property
    def name(self) -> str:
        """Return metadata.name, or an empty string."""
        metadata = self.value.get("metadata") if isinstance(self.value, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) else ""


@dataclass(slots=True)
class Decoded:
    """An object in the hub version with warnings about its fields."""

    obj: Obj
    warnings: list[str]


def check_size(resource: ResourceType, body: Body) -> None:
    """Reject a body with too many values for an object of this kind."""
    check_values(resource, body.value, len(body.raw))


def check_values(resource: ResourceType, value: Any, size: int | None = None) -> None:
    """Reject an object with too many values for its kind; `size` are its bytes if known.

    managedFields count separately: the server sets them, and they are long if many fields change.
    """
    limit = resource.most_values
    # A value takes two bytes at least: most objects need no count.
    if size is not None and size <= 2 * limit:
        return
    managed_fields: Any = ()
    if isinstance(value, dict) and isinstance(metadata := value.get("metadata"), dict):
        managed_fields = metadata.get("managedFields") or ()
        value = {**value, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}
    if has_more_values(value, limit):
        raise RequestEntityTooLarge(
            f"Request entity too large: limit is {limit} fields and list items in one"
            f" {resource.kind}; split it into several objects"
        )
    if isinstance(managed_fields, list) and has_more_values(
        managed_fields, MANAGED_FIELDS_FACTOR * limit
    ):
        raise RequestEntityTooLarge(
            f"Request entity too large: limit is {MANAGED_FIELDS_FACTOR * limit} entries in"
            " metadata.managedFields; use fewer field managers, or split the object"
        )


def field_validation(request: Request) -> str:
    """Return how unknown fields are treated: Ignore, Warn or Strict."""
    return request.option("fieldValidation") or "Warn"


def decode_body(
    objects: Objects, request: Request, body: Body, managed_fields: Sequence[Obj] = ()
) -> Decoded:
    """Check and convert an object that a client sent."""
    value = {} if body.value is None else body.value
    if not isinstance(value, dict):
        raise _no_object(request.target, value, body.raw)
    check_kind(objects, request.target, value)
    return decode_object(objects, request, value, body.repeated, managed_fields=managed_fields)


def decode_object(
    objects: Objects,
    request: Request,
    value: Obj,
    repeated: list[str],
    patch: Callable[[], str] | None = None,
    managed_fields: Sequence[Obj] = (),
) -> Decoded:
    """Check the fields of an object and convert it to the hub version.

    `patch` returns the result of a patch, for error texts. `managed_fields` are the stored ones:
    most objects contain them unchanged, and then they are not checked again.
    """
    target = request.target
    schema = objects.scheme.schema(target.resource, target.version)
    unknown: list[str] = []
    version = target.resource.version(target.version)
    reader = read_structural if version is not None and version.structural else decode
    rest = _without(managed_fields, value) if managed_fields else None
    kind = (target.resource.kind, target.version)
    try:
        decoded = reader(value if rest is None else rest, schema, unknown)
    except DecodeError as error:
        raise _undecodable(kind, str(error), patch) from None
    if rest is not None:
        decoded["metadata"]["managedFields"] = managed_fields
    elif _clears_managed_fields(value):
        decoded["metadata"]["managedFields"] = [{}]
    warnings = _validate_strict(request, kind, repeated, unknown, patch)
    decoded.pop("kind", None)
    decoded.pop("apiVersion", None)
    hub = objects.to_hub(decoded, target.resource, target.version)
    return Decoded(hub, warnings)


def decode_part(
    request: Request, schema: ObjectType, body: Body, patch: Callable[[], str] | None = None
) -> Decoded:
    """Check a body of a kind that is only sent to a subresource, such as Scale."""
    unknown: list[str] = []
    kind = (schema.name, "v1")
    try:
        decoded = decode({} if body.value is None else body.value, schema, unknown)
    except DecodeError as error:
        raise _undecodable(kind, str(error), patch) from None
    return Decoded(decoded, _validate_strict(request, kind, body.repeated, unknown, patch))


def _validate_strict(
    request: Request,
    kind: tuple[str, str],
    repeated: list[str],
    unknown: list[str],
    patch: Callable[[], str] | None,
) -> list[str]:
    """Return warnings, or raise, depending on fieldValidation."""
    known = set(unknown)
    problems = [f"duplicate field {quote(name)}" for name in repeated if not _within(name, known)]
    problems += [f"unknown field {quote(name)}" for name in unknown[: MAX_UNKNOWN - len(problems)]]
    mode = field_validation(request)
    if problems and mode == "Strict":
        raise _undecodable(kind, f"strict decoding error: {', '.join(problems)}", patch)
    return problems if mode == "Warn" else []


def _within(path: str, unknown: set[str]) -> bool:
    """Report whether a field is inside of an unknown one, which is not checked."""
    return bool(unknown) and any(path[: end.start()] in unknown for end in _STEPS.finditer(path))


def _without(managed_fields: Sequence[Obj], value: Obj) -> Obj | None:
    """Return an object without its managedFields if they are these; else None."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("managedFields") != managed_fields:
        return None
    return {**value, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def _clears_managed_fields(value: Obj) -> bool:
    """Report whether an object has an empty list, which clears managed fields."""
    metadata = value.get("metadata")
    return isinstance(metadata, dict) and metadata.get("managedFields") == []


def _undecodable(kind: tuple[str, str], problem: str, patch: Callable[[], str] | None) -> ApiError:
    if patch is not None:
        return invalid("", "", "", [Path("patch").invalid(patch(), problem)])
    name, version = kind
    return BadRequest(
        f"{name} in version {quote(version)} cannot be handled as a {name}: {problem}"
    )


def unrecognized(target: Target, problem: str, raw: bytes) -> BadRequest:
    """Reject a body of which not even the kind could be read."""
    return BadRequest(
        f"the object provided is unrecognized (must be of type {target.resource.kind}):"
        f" {problem} ({_summary(raw)})"
    )


def _summary(raw: bytes) -> str:
    """Return the start of a body: as text if it looks like JSON, else in hexadecimal."""
    if not raw:
        return "<empty>"
    start = raw[:_MAX_QUOTED]
    rendered = start.decode(errors="replace") if raw.startswith(b"{") else start.hex()
    return f"{rendered} ..." if len(raw) > _MAX_QUOTED else rendered


def _no_object(target: Target, value: Any, raw: bytes) -> BadRequest:
    shape = "array" if isinstance(value, list) else "string" if isinstance(value, str) else "number"
    shape = "bool" if isinstance(value, bool) else shape
    go_type = (
        'struct { APIVersion string "json:\\"apiVersion,omitempty\\"";'
        ' Kind string "json:\\"kind,omitempty\\"" }'
    )
    problem = f"json: cannot unmarshal {shape} into Go value of type {go_type}"
    return unrecognized(target, f"{NO_KIND}: {problem}", raw)


def check_kind(objects: Objects, target: Target, value: Obj) -> None:
    """Reject a body of another kind than the path."""
    kind = value.get("kind") or target.resource.kind
    api_version = value.get("apiVersion") or target.group_version
    if kind == target.resource.kind and api_version == target.group_version:
        return
    group, _, version = str(api_version).rpartition("/")
    other = objects.scheme.by_kind(group, version, str(kind))
    common = str(kind) in _COMMON_KINDS and objects.scheme.serves(group, version)
    if other is None and not common:
        raise BadRequest(
            f"no kind {quote(str(kind))} is registered for version {quote(str(api_version))}"
            f' in scheme "{_LEGACY_SCHEME}"'
            if objects.scheme.serves(group, version)
            else f"{kind} in version {quote(version)} cannot be handled as a"
            f" {target.resource.kind}: no kind {quote(str(kind))} is registered for version"
            f' {quote(str(api_version))} in scheme "{_LEGACY_SCHEME}"'
        )
    if kind == target.resource.kind:
        raise BadRequest(
            f"the API version in the data ({api_version}) does not match the expected API version"
            f" ({target.group_version})"
        )
    raise BadRequest(
        f"{kind} in version {quote(version)} cannot be handled as a {target.resource.kind}:"
        f" converting ({version}.{kind}) to ({internal_name(target)}): unknown conversion"
    )


def internal_name(target: Target) -> str:
    """Return the internal name of a kind in Kubernetes, which some of its texts show."""
    version = target.resource.version(target.version)
    if version is not None and version.structural:
        return "unstructured.Unstructured"
    # By the stored kind: events.k8s.io events are core events in another version.
    package = target.resource.storage_key.rpartition("/")[0].split(".")[0] or "core"
    return f"{package}.{target.resource.kind}"
