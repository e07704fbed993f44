"""Rejects bodies of another kind than the path, with the texts of Kubernetes."""

from typing import Any

import msgspec

from sully.machinery.errors import BadRequest, invalid
from sully.machinery.fields import Path
from sully.machinery.serialization.decode import DecodeError, decode
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import Obj
from sully.server.registry.bodies.body import Body
from sully.server.requests import Target
from sully.server.storage.objects import Objects

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
_PARTS = {
    "binding": "Binding",
    "eviction": "Eviction",
    "scale": "Scale",
    "token": "TokenRequest",
}


def nameless(target: Target) -> BadRequest:
    """Reject an object without a name."""
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
    """Return why a body that is not an object has no kind."""
    go_type = (
        'struct { APIVersion string "json:\\"apiVersion,omitempty\\"";'
        ' Kind string "json:\\"kind,omitempty\\"" }'
    )
    text = f"json: cannot unmarshal {json_shape(value)} into Go value of type {go_type}"
    return f"{NO_KIND}: {text}"


def json_shape(value: Any) -> str:
    shapes = {bool: "bool", str: "string", list: "array", dict: "object"}
    return shapes.get(type(value), "number")


def check_kind(objects: Objects, target: Target, body: Body) -> None:
    """Reject a body of another kind than the path."""
    value = body.value or {}
    sent_kind, sent_version = value.get("kind"), value.get("apiVersion")
    if sent_kind == target.resource.kind and sent_version == target.group_version:
        return
    for name, text in value.items():
        if name in ("apiVersion", "kind") and not isinstance(text, str | None):
            shape = json_shape(text)
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


def check_custom_kind(target: Target, value: Obj, raw: bytes) -> None:
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


def check_patched_kind(target: Target, value: Obj) -> None:
    """Reject a patch that makes a custom resource one of another kind.

    A write of the status takes both from the stored object.
    """
    expected = {"kind": target.resource.kind, "apiVersion": target.group_version}
    problems = [
        Path(field).invalid(value[field], f"must be {text}")
        for field, text in expected.items()
        if value.get(field) and value[field] != text
    ]
    if problems and target.subresource != "status":
        group = str(value.get("apiVersion") or "").rpartition("/")[0]
        raise invalid(str(value.get("kind") or ""), group, target.name, problems)


def check_part_kind(objects: Objects, body: Body, expected: tuple[str, tuple[str, ...]]) -> None:
    """Reject a body of another kind than that of a subresource, which has these versions."""
    name, versions = expected
    value, kind = body.value if isinstance(body.value, dict) else {}, name.rpartition(".")[2]
    sent = SentKind.of_part(value, kind, versions[0])
    if sent.kind == kind and sent.api_version in versions:
        return
    raise BadRequest(
        f"{sent.kind} in version {quote(sent.version)} cannot be handled as a {kind}:"
        f" {sent.mismatch(objects, name)}"
    )


class SentKind(msgspec.Struct, frozen=True):
    """The kind and version of a body, which may leave them out."""

    kind: str
    api_version: str

    @classmethod
    def of(cls, target: Target, value: Obj) -> "SentKind":
        """Return those of a body, or of the path."""
        kind = value.get("kind") or target.resource.kind
        return cls(str(kind), str(value.get("apiVersion") or target.group_version))

    @classmethod
    def of_part(cls, value: Obj, kind: str, api_version: str) -> "SentKind":
        """Return those of the body of a subresource, or what it is if it leaves them out."""
        return cls(str(value.get("kind") or kind), str(value.get("apiVersion") or api_version))

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
            return self.unregistered(_LEGACY_SCHEME)
        return f"converting ({self.version}.{self.kind}) to ({expected}): unknown conversion"

    def unregistered(self, scheme: str) -> str:
        """Return why this cannot be read: Kubernetes names where it looked for the kind."""
        return (
            f"no kind {quote(self.kind)} is registered for version {quote(self.api_version)}"
            f' in scheme "{scheme}"'
        )


def internal_name(target: Target) -> str:
    """Return the internal name of a kind in Kubernetes, which some of its texts show."""
    version = target.resource.version(target.version)
    if version is not None and version.structural:
        return "unstructured.Unstructured"
    # By the stored kind: events.k8s.io events are core events in another version.
    package = target.resource.storage_key.rpartition("/")[0].split(".")[0] or "core"
    return f"{package}.{target.resource.kind}"
