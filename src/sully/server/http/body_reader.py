"""Parses request bodies: small ones immediately, large ones in a thread.

Reading a large body takes up to some tenths of a second, in which all other requests would wait. A
thread reads it instead; the interpreter lets the loop in between every few milliseconds. One body
at a time is read so: with more threads the loop would wait for each of them. The limits
of bodies are in machinery/serialization/codec.py, those of objects in
server/registry/bodies/decoding.py.
"""

import asyncio
from collections.abc import Callable

from sully.machinery.errors import BadRequest, RequestEntityTooLarge
from sully.machinery.scheme import Scheme
from sully.machinery.serialization import codec
from sully.runtime.clock import Clock
from sully.server.http.protobuf.bodies import ProtobufBodies, unknown_format
from sully.server.negotiation import JSON, PROTOBUF, YAML
from sully.server.registry.bodies.body import Body, check_size
from sully.server.registry.bodies.kinds import NO_KIND, unrecognized
from sully.server.requests import Target

JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
_YAML = ("application/yaml", "text/yaml", "application/x-yaml")
_SMALL = 8 * 1024
"""Bytes of a body that is parsed as fast as it is passed to a thread."""
_YIELDS = 4
"""Iterations of the event loop for requests that waited for a body."""


class BodyReader:
    """Reads the bodies of requests on objects."""

    def __init__(self, scheme: Scheme, clock: Clock) -> None:
        self._clock = clock
        self._protobuf = ProtobufBodies(scheme)
        self._reading = asyncio.Lock()

    async def read(self, media: str, raw: bytes, target: Target) -> Body:
        """Read an object."""
        return await self._read(raw, lambda: self._object(media, raw, target))

    async def read_options(self, media: str, raw: bytes, target: Target) -> Body:
        """Read the options of a deletion, which are not of the target's kind."""
        return await self._read(raw, lambda: self._options(media, raw, target))

    async def read_patch(self, media: str, raw: bytes, target: Target) -> Body:
        """Read a patch."""
        return await self._read(raw, lambda: _patch(media, raw, target))

    async def _read(self, raw: bytes, read: Callable[[], Body]) -> Body:
        if len(raw) <= _SMALL:
            return read()
        async with self._reading:
            body = await asyncio.to_thread(read)
        for _ in range(_YIELDS):
            await self._clock.sleep(0)
        return body

    def _object(self, media: str, raw: bytes, target: Target) -> Body:
        try:
            if media == PROTOBUF:
                body = Body(self._protobuf.read(raw, target), raw=raw)
            else:
                body = parse_body(media, raw, target)
        except codec.TooManyValuesError as error:
            raise _too_large(error) from None
        check_size(target.resource, body)
        return body

    def _options(self, media: str, raw: bytes, target: Target) -> Body:
        if media == PROTOBUF:
            return self._object(media, raw, target)
        try:
            return _parse(media, raw)
        except codec.TooManyValuesError as error:
            raise _too_large(error) from None
        except _UnreadableError as error:
            raise BadRequest(str(error)) from None


def parse_body(media: str, raw: bytes, target: Target) -> Body:
    """Read an object body in JSON or YAML."""
    try:
        return _parse(media, raw)
    except _UnreadableError as error:
        raise unrecognized(target, str(error), raw) from None


def check_form(media: str) -> None:
    """Reject a body in a form that no kind has."""
    if media not in ("", JSON, PROTOBUF, *_YAML):
        raise unknown_format(JSON, YAML, PROTOBUF)


class _UnreadableError(Exception):
    """A body that is neither JSON nor YAML; the text has the reason."""


def _parse(media: str, raw: bytes) -> Body:
    check_form(media)
    try:
        if media in _YAML:
            value, repeated = codec.parse_yaml(raw)
            # Kubernetes makes JSON of it first.
            value = codec.in_key_order(value)
        else:
            value, repeated = codec.parse_json(raw)
    except codec.TooManyValuesError:
        raise
    except codec.BodyError as error:
        raise _UnreadableError(f"{error}" if media in _YAML else f"{NO_KIND}: {error}") from None
    return Body(value, repeated, raw, is_json=media not in _YAML)


def _patch(media: str, raw: bytes, target: Target) -> Body:
    body = parse_patch(media, raw)
    if media != JSON_PATCH:
        # The steps of a JSON patch are counted when they run.
        check_size(target.resource, body)
    return body


def parse_patch(media: str, raw: bytes) -> Body:
    """Read a patch body."""
    try:
        if media == APPLY:
            value, repeated = codec.parse_yaml(raw)
            return Body({} if value is None else value, repeated, raw)
        value, repeated = codec.parse_json(raw)
    except codec.TooManyValuesError as error:
        raise _too_large(error) from None
    except codec.BodyError as error:
        if media == APPLY:
            # Kubernetes reads what looks like JSON at another place.
            is_json = raw.lstrip().startswith(b"{")
            where = "decoding patch: error converting YAML to JSON" if is_json else "encoding patch"
            raise BadRequest(f"error {where}: {error}") from None
        raise BadRequest("invalid JSON patch") from None
    return Body(value, repeated, raw)


def _too_large(error: codec.TooManyValuesError) -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"Request entity too large: {error}")
