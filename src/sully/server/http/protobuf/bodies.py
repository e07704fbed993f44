"""Bodies in Kubernetes' protobuf form, which Go clients and `kubectl create` send.

machinery/serialization/protobuf.py decodes messages; here are the errors. responses.py
writes responses.
"""

from sully.machinery.errors import BadRequest, UnsupportedMediaType
from sully.machinery.schema import ObjectType, TableError
from sully.machinery.scheme import Scheme
from sully.machinery.serialization.gotext import quote
from sully.machinery.serialization.protobuf import Envelope, read_envelope, read_message, slots_of
from sully.machinery.serialization.protobuf_wire import ProtobufError
from sully.machinery.strategy import Obj
from sully.server.http.protobuf.types import type_of
from sully.server.negotiation import JSON, YAML
from sully.server.registry.bodies.kinds import unrecognized
from sully.server.requests import Target


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
        try:
            schema = type_of(self._scheme, named.api_version, named.kind)
        except TableError:
            registered = f"no kind {quote(named.kind)} is registered for version"
            where = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'
            raise _undecodable(
                named, target, f"{registered} {quote(named.api_version)} {where}"
            ) from None
        if not slots_of(schema):
            raise unknown_format(JSON, YAML)
        return schema


def _undecodable(named: Envelope, target: Target, problem: str) -> BadRequest:
    version = named.api_version.rpartition("/")[2]
    return BadRequest(
        f"{named.kind} in version {quote(version)} cannot be handled as a"
        f" {target.resource.kind}: {problem}"
    )
