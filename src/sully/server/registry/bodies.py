"""From a request body to an object in the hub version: kind check, field check, conversion."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from sully.machinery.errors import ApiError, BadRequest, RequestEntityTooLarge, invalid
from sully.machinery.fields import Path
from sully.machinery.schema import ObjectType
from sully.machinery.serialization.codec import RepeatedKey, has_more_values, merge_repeated
from sully.machinery.serialization.decode import MAX_UNKNOWN, DecodeError, decode
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import Obj, ResourceType
from sully.machinery.structural import read as read_structural
from sully.server.registry.metadata import merge_owners
from sully.server.requests import Request, Target
from sully.server.storage.objects import Objects

MANAGED_FIELDS_FACTOR = 2
"""How many times as much as the object itself its managedFields may hold."""
_STEPS = re.compile(r"[.\[]")
NO_KIND = "couldn't get version/kind; json parse error"
_MAX_QUOTED = 30  # bytes of an undecodable body in an error text
# Every group and version knows these.
COMMON_KINDS = frozenset(
    (
        *("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status", "WatchEvent"),
        *("CreateOptions", "DeleteOptions", "GetOptions", "ListOptions"),
        *("PatchOptions", "UpdateOptions"),
    )
)
# Older versions that Kubernetes still decodes although it no longer serves them.
_NOT_SERVED = {
    "PodDisruptionBudget": (("policy", "v1beta1"),),
    "Lease": (("coordination.k8s.io", "v1beta1"),),
    "Event": (("events.k8s.io", "v1beta1"),),
    "Deployment": (("apps", "v1beta1"), ("apps", "v1beta2")),
    "ReplicaSet": (("apps", "v1beta2"),),
}
_LEGACY_SCHEME = "pkg/api/legacyscheme/scheme.go:30"


class Body(msgspec.Struct):
    """A parsed body: a JSON value, the paths of repeated keys, and the bytes for error texts."""

    value: Any
    repeated: list[str] = msgspec.field(default_factory=list)
    raw: bytes = b""

    @property
    def name(self) -> str:
        """Return metadata.name, or an empty string."""
        metadata = self.value.get("metadata") if isinstance(self.value, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) else ""


class PatchText(msgspec.Struct, frozen=True):
    """How errors show what a patch made: the object, or of a strategic patch the patch."""

    shown: Callable[[], str]
    is_strategic: bool = False
    is_json_patch: bool = False
    unknown: tuple[str, ...] = ()
    """Fields that the operations of a JSON patch do not have."""
    applied: str = ""
    """How errors name the object of an apply; empty for other patches."""


class Decoded(msgspec.Struct):
    """An object in the hub version with warnings about its fields."""

    obj: Obj
    warnings: list[str]


_PARTS = {
    "binding": "Binding",
    "eviction": "Eviction",
    "scale": "Scale",
    "token": "TokenRequest",
}


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
        raise unrecognized(request.target, no_kind_problem(value), body.raw)
    if request.target.resource.hub.custom is not None and body.raw:
        _check_custom_kind(request.target, value, body.raw)
    else:
        check_kind(objects, request.target, body)
        if body.repeated and body.raw.lstrip().startswith(b"{"):
            value = merge_repeated(body.raw)
    return decode_object(objects, request, value, body.repeated, managed_fields=managed_fields)


def with_empty_lists(request: Request, body: Body) -> Request:
    """Return a request that knows which empty lists of its body count as present."""
    paths = request.target.resource.strategy.empties()
    sent = tuple(path for path in paths if _value_at(body.value, path) == [])
    return replace(request, sent_empty=sent) if sent else request


def _value_at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def decode_object(
    objects: Objects,
    request: Request,
    value: Obj,
    repeated: list[str],
    patch: PatchText | None = None,
    managed_fields: Sequence[Obj] = (),
) -> Decoded:
    """Check the fields of an object and convert it to the hub version.

    `patch` is for the errors of a patched object. `managed_fields` are the stored ones:
    most objects contain them unchanged, and then they are not checked again.
    """
    target = request.target
    schema = objects.scheme.schema(target.resource, target.version)
    unknown: list[str] = []
    version = target.resource.version(target.version)
    reader: Callable[[Any, ObjectType, list[str]], Obj] = decode
    if version is not None and version.custom is not None:
        custom = version.custom
        reader = lambda value, _, unknown: custom.read(value, unknown)  # noqa: E731 - a short reader
    elif version is not None and version.structural:
        reader = read_structural
    rest = _without(managed_fields, value) if managed_fields else None
    kind = (target.resource.kind, target.version)
    try:
        decoded = reader(value if rest is None else rest, schema, unknown)
    except DecodeError as error:
        if patch is not None and patch.applied:
            gvk = f"{target.group_version}, Kind={target.resource.kind}"
            gvk = gvk if target.resource.group else f"/{gvk}"
            raise ApiError(
                f"failed to convert new object ({patch.applied}) to proper version: unable to"
                f" convert unstructured object to {gvk}: {error.converting}"
            ) from None
        problem = error.converting if patch is not None and patch.is_strategic else str(error)
        raise _undecodable(kind, problem, patch) from None
    if rest is not None:
        decoded["metadata"]["managedFields"] = managed_fields
    elif _clears_managed_fields(value):
        decoded["metadata"]["managedFields"] = [{}]
    if patch is not None and patch.is_strategic:
        unknown = sorted(getattr(name, "converting", name) for name in unknown)
    warnings = _validate_strict(request, kind, repeated, unknown, patch)
    decoded.pop("kind", None)
    decoded.pop("apiVersion", None)
    hub = objects.to_hub(decoded, target.resource, target.version)
    return Decoded(hub, warnings + merge_owners(hub))


def decode_part(
    request: Request, schema: ObjectType, body: Body, patch: PatchText | None = None
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
    patch: PatchText | None,
) -> list[str]:
    """Return warnings, or raise, depending on fieldValidation."""
    known = set(unknown)
    prefix = "json patch " if patch is not None and patch.is_json_patch else ""
    lines = [name for name in repeated if name.startswith("line ")]
    found = [
        (name, f"{prefix}duplicate field {quote(name)}")
        for name in repeated
        if name not in lines and not _within(name, known)
    ]
    found += [(n, f"{prefix}unknown field {quote(n)}") for n in (patch.unknown if patch else ())]
    found += [
        (name, f"unknown field {quote(name)}") for name in unknown[: MAX_UNKNOWN - len(found)]
    ]
    if patch is None or patch.is_json_patch:
        found = _in_document_order(found)
    problems = [problem for _, problem in found]
    mode = field_validation(request)
    if mode == "Warn":
        return lines + problems
    if lines:
        # In YAML Kubernetes knows the lines of repeated keys instead of their fields.
        problems.insert(0, "\n  ".join(("yaml: unmarshal errors:", *lines)))
    if lines and mode == "Strict" and patch is not None and patch.applied:
        text = f"error converting YAML to JSON: {problems[0]}"
        raise BadRequest(f"error strict decoding patch: {text}")
    if problems and mode == "Strict":
        raise _undecodable(kind, f"strict decoding error: {', '.join(problems)}", patch)
    return []


def _in_document_order(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Sort problems with fields as a reader of the document meets them, if that is known."""
    positions = next((path.positions for path, _ in found if isinstance(path, RepeatedKey)), None)
    if positions is None:
        return found

    def position(problem: tuple[str, str]) -> int:
        path = problem[0]
        if isinstance(path, RepeatedKey):
            return path.position
        return positions.get(path, len(positions))

    return sorted(found, key=position)


def _within(path: str, unknown: set[str]) -> bool:
    """Report whether a field is unknown or inside of an unknown one, which is not checked."""
    return path in unknown or (
        bool(unknown) and any(path[: end.start()] in unknown for end in _STEPS.finditer(path))
    )


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


def _undecodable(kind: tuple[str, str], problem: str, patch: PatchText | None) -> ApiError:
    if patch is not None:
        return invalid("", "", "", [Path("patch").invalid(patch.shown(), problem)])
    name, version = kind
    return BadRequest(
        f"{name} in version {quote(version)} cannot be handled as a {name}: {problem}"
    )


def nameless(target: Target) -> BadRequest:
    """Reject an object that does not say its name."""
    return BadRequest(
        f"the name of the object ({target.name} based on URL) was undeterminable: name must be"
        " provided"
    )


def unrecognized(target: Target, problem: str, raw: bytes) -> BadRequest:
    """Reject a body of which not even the kind could be read."""
    return BadRequest(
        f"the object provided is unrecognized (must be of type {_sent_kind(target)}):"
        f" {problem} ({_summary(raw)})"
    )


def _sent_kind(target: Target) -> str:
    """Return the kind that is sent to a path: some subresources have their own."""
    return _PARTS.get(target.subresource, target.resource.kind)


def _summary(raw: bytes) -> str:
    """Return the start of a body: as text if it looks like JSON, else in hexadecimal."""
    if not raw:
        return "<empty>"
    start = raw[:_MAX_QUOTED]
    rendered = start.decode(errors="replace") if raw.startswith(b"{") else start.hex()
    return f"{rendered} ..." if len(raw) > _MAX_QUOTED else rendered


def no_kind_problem(value: Any) -> str:
    """Return why a body that is no object has no kind."""
    go_type = (
        'struct { APIVersion string "json:\\"apiVersion,omitempty\\"";'
        ' Kind string "json:\\"kind,omitempty\\"" }'
    )
    text = f"json: cannot unmarshal {_json_shape(value)} into Go value of type {go_type}"
    return f"{NO_KIND}: {text}"


def _json_shape(value: Any) -> str:
    shapes = {bool: "bool", str: "string", list: "array", dict: "object"}
    return shapes.get(type(value), "number")


def check_kind(objects: Objects, target: Target, body: Body) -> None:
    """Reject a body of another kind than the path."""
    value = body.value or {}
    for name, text in value.items():
        if name in ("apiVersion", "kind") and not isinstance(text, str | None):
            shape = _json_shape(text)
            problem = f"json: cannot unmarshal {shape} into Go struct field .{name} of type string"
            raise unrecognized(target, f"{NO_KIND}: {problem}", body.raw)
    if str(value.get("apiVersion") or "").count("/") > 1:
        problem = f"unexpected GroupVersion string: {value['apiVersion']}"
        raise unrecognized(target, problem, body.raw)
    sent = SentKind.of(target, value)
    problem = sent.problem(objects, target)
    if not problem:
        return
    if sent.kind == target.resource.kind and sent.is_known(objects):
        raise BadRequest(
            f"the API version in the data ({sent.api_version}) does not match the expected API"
            f" version ({target.group_version})"
        )
    problem = _decode_problem(objects, sent, value) or problem
    raise BadRequest(
        f"{sent.kind} in version {quote(sent.version)} cannot be handled as a"
        f" {target.resource.kind}: {problem}"
    )


def _decode_problem(objects: Objects, sent: "SentKind", value: Obj) -> str:
    """Return why an object of another kind cannot even be read as that kind."""
    resource = objects.scheme.by_kind(sent.group, sent.version, sent.kind)
    version = resource.version(sent.version) if resource is not None else None
    if resource is None or version is None or version.structural or version.custom is not None:
        return ""
    try:
        decode(value, objects.scheme.schema(resource, sent.version), [])
    except DecodeError as error:
        return str(error)
    return ""


def _check_custom_kind(target: Target, value: Obj, raw: bytes) -> None:
    """Reject a body of another kind; of custom resources Kubernetes reads any kind first."""
    kind, api_version = value.get("kind"), value.get("apiVersion")
    for name, sent in (("Kind", kind), ("apiVersion", api_version)):
        if not sent or not isinstance(sent, str):
            text = f"Object '{name}' is missing in '{raw.decode(errors='replace')}'"
            raise unrecognized(target, text, raw)
    if api_version != target.group_version:
        raise BadRequest(
            f"the API version in the data ({api_version}) does not match the expected API version"
            f" ({target.group_version})"
        )
    if kind != target.resource.kind:
        metadata = value.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, dict) else ""
        problem = Path("kind").invalid(kind, f"must be {target.resource.kind}")
        raise invalid(str(kind), target.resource.group, str(name), [problem])


def check_part_kind(objects: Objects, body: Body, expected: tuple[str, tuple[str, ...]]) -> None:
    """Reject a body of another kind than that of a subresource, which has these versions."""
    name, versions = expected
    value, kind = body.value if isinstance(body.value, dict) else {}, name.rpartition(".")[2]
    sent = SentKind(str(value.get("kind") or kind), str(value.get("apiVersion") or versions[0]))
    if sent.kind == kind and sent.api_version in versions:
        return
    raise BadRequest(
        f"{sent.kind} in version {quote(sent.version)} cannot be handled as a {kind}:"
        f" {sent.mismatch(objects, name)}"
    )


def patched_request(
    objects: Objects, request: Request, patched: Obj, patch: PatchText, warnings: list[str]
) -> Request:
    """Return the request for the version that a patch gave its object; raises for other kinds."""
    target = request.target
    for name in ("apiVersion", "kind"):
        if not isinstance(patched.get(name), str | None):
            shape = _json_shape(patched[name])
            text = f"json: cannot unmarshal {shape} into Go struct field .{name} of type string"
            raise _undecodable((target.resource.kind, target.version), f"{NO_KIND}: {text}", patch)
    if not patched.get("apiVersion") and target.resource.hub.custom is None:
        # Without a version nothing of the object is known, not even its name.
        unknown = sorted(patched.keys() - {"apiVersion", "kind"})
        kind = (target.resource.kind, target.version)
        warnings += _validate_strict(request, kind, [], unknown, patch)
        raise nameless(target)
    sent = SentKind.of(target, patched)
    problem = sent.problem(objects, target)
    if not problem:
        return request
    same = (sent.kind, sent.group) == (target.resource.kind, target.resource.group)
    if not same or target.resource.version(sent.version) is None:
        raise _undecodable((sent.kind, sent.version), problem, patch)
    return replace(request, target=replace(target, version=sent.version))


class SentKind(msgspec.Struct, frozen=True):
    """The kind and version of a body, which may leave them out."""

    kind: str
    api_version: str

    @classmethod
    def of(cls, target: Target, value: Obj) -> "SentKind":
        """Return those of a body, or of the path."""
        kind = value.get("kind") or target.resource.kind
        return cls(str(kind), str(value.get("apiVersion") or target.group_version))

    @property
    def group(self) -> str:
        """Return the group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """Return the version without its group."""
        return self.api_version.rpartition("/")[2]

    def is_known(self, objects: Objects) -> bool:
        """Report whether Kubernetes has the kind in this version, served or not."""
        scheme, where = objects.scheme, (self.group, self.version)
        if self.kind in COMMON_KINDS and scheme.serves(*where):
            return True
        if where in _NOT_SERVED.get(self.kind, ()):
            return True
        item = self.kind.removesuffix("List")
        return any(scheme.by_kind(*where, kind) is not None for kind in (self.kind, item))

    def problem(self, objects: Objects, target: Target) -> str:
        """Return why this is not the kind and version of a path; empty if it is."""
        if (self.kind, self.api_version) == (target.resource.kind, target.group_version):
            return ""
        return self.mismatch(objects, internal_name(target))

    def mismatch(self, objects: Objects, expected: str) -> str:
        """Return why an object of this kind is not of the expected internal type."""
        if not self.is_known(objects):
            return (
                f"no kind {quote(self.kind)} is registered for version {quote(self.api_version)}"
                f' in scheme "{_LEGACY_SCHEME}"'
            )
        return f"converting ({self.version}.{self.kind}) to ({expected}): unknown conversion"


def internal_name(target: Target) -> str:
    """Return the internal name of a kind in Kubernetes, which some of its texts show."""
    version = target.resource.version(target.version)
    if version is not None and version.structural:
        return "unstructured.Unstructured"
    # By the stored kind: events.k8s.io events are core events in another version.
    package = target.resource.storage_key.rpartition("/")[0].split(".")[0] or "core"
    return f"{package}.{target.resource.kind}"
