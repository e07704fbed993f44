"""Objects as the API shows them, derived from store records and cached there.

A record's value is the object in its storage version, as JSON without kind, apiVersion and
resourceVersion. From it come the live object (a dict in that version), views in other versions and
their encodings; each is kept in the memo of its record for a while, so a hundred readers cost one
encoding (`recent_forms.py`). Never modify what these functions return.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from sully.machinery.scheme import Scheme
from sully.machinery.serialization.codec import from_json, to_json
from sully.machinery.serialization.decode import empty_object
from sully.machinery.strategy import Obj, ResourceType
from sully.server.requests import Target
from sully.server.storage.recent_forms import RecentForms
from sully.store.base import Record, StoreKey

_MANY = 2000
"""A list of more objects than these does not fit into the cache of recent forms."""
_BEGINNING = b'{"metadata":{"'
"""How nearly all stored objects begin."""


class Objects:
    """Reads records as objects of the scheme's kinds."""

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self.recent = RecentForms()

    def key(self, target: Target, name: str = "") -> StoreKey:
        """Return the store key of an object of the target's resource."""
        return StoreKey(target.resource.storage_key, target.namespace, name or target.name)

    def bare(self, record: Record) -> Obj:
        """Return the object as stored."""
        bare: Obj | None = record.derived.get("bare")
        if bare is None:
            bare = record.derived["bare"] = from_json(record.value)
            self.recent.add_decoded(record.derived, len(record.value))
        return bare

    def live(self, record: Record) -> Obj:
        """Return the stored object with its resourceVersion."""
        live = record.derived.get("live")
        if live is None:
            live = record.derived["live"] = self.stamped(self.bare(record), record.revision)
        return live

    @staticmethod
    def stamped(obj: Obj, revision: int) -> Obj:
        """Return an object that carries a resourceVersion."""
        # In front, where `_encoded` has it too: all forms of an object have one order.
        metadata = {"resourceVersion": "", **obj["metadata"]}
        metadata["resourceVersion"] = str(revision)
        return {**obj, "metadata": metadata}

    def view(self, record: Record, resource: ResourceType, version: str) -> Obj:
        """Return the object in a version, without kind and apiVersion."""
        return self.convert(self.live(record), resource, version)

    def convert(self, obj: Obj, resource: ResourceType, version: str) -> Obj:
        """Convert a stored object to a version."""
        served = resource.version(version)
        if served is None or served.from_stored is None:
            return obj
        return served.from_stored(obj)

    def to_stored(self, obj: Obj, resource: ResourceType, version: str) -> Obj:
        """Convert an object to the storage version."""
        served = resource.version(version)
        if served is None or served.to_stored is None:
            return obj
        return served.to_stored(obj)

    def body(self, record: Record, resource: ResourceType, version: str) -> bytes:
        """Return the encoding of a view, cached."""
        memo = ("body", resource.group, version)
        encoded = record.derived.get(memo)
        if encoded is None:
            encoded = record.derived[memo] = self._encoded(record, resource, version)
            self.recent.add(record.derived, len(encoded))
        return encoded

    def bodies(
        self, records: Sequence[Record], resource: ResourceType, version: str
    ) -> Iterator[bytes]:
        """Yield the encodings of the views of a list, each on demand."""
        if len(records) <= _MANY:
            return (self.body(record, resource, version) for record in records)
        # Not cached: each would only displace another form before it is read again.
        memo = ("body", resource.group, version)
        return (
            record.derived.get(memo) or self._encoded(record, resource, version)
            for record in records
        )

    def _encoded(self, record: Record, resource: ResourceType, version: str) -> bytes:
        stored = _with_revision(record, resource, version)
        return to_json(self.view(record, resource, version)) if stored is None else stored

    def undecoded(self, record: Record, target: Target) -> bytes | None:
        """Return the encoding of one object with kind and apiVersion, if it is not decoded yet.

        For readers of typed objects: decoding those directly is faster than through a dict.
        """
        if "bare" in record.derived:
            return None
        stored = _with_revision(record, target.resource, target.version)
        if stored is None:
            return None
        # What the reader keeps in the memo of the record is a form like others.
        self.recent.add_decoded(record.derived, len(stored))
        return with_kind(stored, target)

    def empty(self, target: Target) -> Obj:
        """Return an object of the target's kind with nothing in it."""
        schema = self.scheme.schema(target.resource, target.version)
        return typed(empty_object(schema), target)

    def document(self, record: Record, target: Target) -> bytes:
        """Return the encoding of one object with kind and apiVersion."""
        return with_kind(self.body(record, target.resource, target.version), target)


def _with_revision(record: Record, resource: ResourceType, version: str) -> bytes | None:
    """Return the encoding of a view that lacks only its version in the store, otherwise None."""
    shape, stored = resource.version(version), record.value
    if not stored.startswith(_BEGINNING) or (shape is not None and shape.from_stored is not None):
        return None
    rest = stored[len(_BEGINNING) :]
    return b'%bresourceVersion":"%d","%b' % (_BEGINNING, record.revision, rest)


def with_kind(body: bytes, target: Target) -> bytes:
    """Put kind and apiVersion in front of an encoded object."""
    return kind_prefix(target.resource.kind, target.group_version) + body[1:]


@lru_cache(maxsize=1024)
def kind_prefix(kind: str, group_version: str) -> bytes:
    """Return the opening of an encoded object of a kind."""
    return f'{{"kind":"{kind}","apiVersion":"{group_version}",'.encode()


def typed(obj: Obj, target: Target) -> dict[str, Any]:
    """Return an object with kind and apiVersion in front."""
    return {"kind": target.resource.kind, "apiVersion": target.group_version, **obj}
