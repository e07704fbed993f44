"""Bodies in Kubernetes' protobuf form, which Go clients and `kubectl create` send.

Only request bodies: responses are JSON, which all of these clients accept too.
machinery/protobuf.py decodes messages; here is which type of the tables a body has, and the errors.
"""

from sully.api.tables import META
from sully.machinery.errors import BadRequest, UnsupportedMediaType
from sully.machinery.gotext import quote
from sully.machinery.protobuf import Envelope, read_envelope, read_message, slots_of
from sully.machinery.protobuf_wire import ProtobufError
from sully.machinery.schema import ObjectType, TableError
from sully.machinery.scheme import Scheme
from sully.machinery.strategy import Obj
from sully.server.negotiation import JSON, YAML
from sully.server.registry.bodies import unrecognized
from sully.server.requests import Target

PROTOBUF = "application/vnd.kubernetes.protobuf"


def unknown_format(*accepted: str) -> UnsupportedMediaType:
    """Reject a body in a form that its kind does not have."""
    return UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include:"
        f" {', '.join(accepted)}"
    )


class ProtobufBodies:
    """Reads bodies of the kinds of a scheme."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme

    def read(self, raw: bytes, target: Target) -> Obj:
        """Return the value that the same object has as JSON."""
        try:
            envelope = read_envelope(raw)
        except ProtobufError as error:
            raise unrecognized(target, str(error), raw) from None
        api_version = envelope.api_version or target.group_version
        named = Envelope(api_version, envelope.kind or target.resource.kind, envelope.raw)
        schema = self._schema(named, target)
        try:
            obj = read_message(envelope.raw, schema)
        except ProtobufError as error:
            raise _undecodable(named, target, str(error)) from None
        return {"kind": named.kind, "apiVersion": api_version, **obj}

    def _schema(self, named: Envelope, target: Target) -> ObjectType:
        group, _, version = named.api_version.rpartition("/")
        try:
            schema = self._scheme.tables.get(self._package(group, version, named.kind), named.kind)
        except TableError:
            registered = f"no kind {quote(named.kind)} is registered for version"
            where = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'
            raise _undecodable(
                named, target, f"{registered} {quote(named.api_version)} {where}"
            ) from None
        if not slots_of(schema):
            raise unknown_format(JSON, YAML)
        return schema

    def _package(self, group: str, version: str, kind: str) -> str:
        if kind == "DeleteOptions":
            return META  # every group has it under its own name
        resource = self._scheme.by_kind(group, version, kind)
        served = resource.version(version) if resource is not None else None
        if served is not None:
            return served.package
        # Kinds that are only sent, like Binding and Eviction, belong to no resource.
        return f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}"


def _undecodable(named: Envelope, target: Target, problem: str) -> BadRequest:
    version = named.api_version.rpartition("/")[2]
    return BadRequest(
        f"{named.kind} in version {quote(version)} cannot be handled as a"
        f" {target.resource.kind}: {problem}"
    )
