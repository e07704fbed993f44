"""Conversion of objects, Structs or dicts, to and from the bodies of requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard, TypeVar, cast

import msgspec

from sully.client.transport import Key, Kind, UnreadableError
from sully.machinery.serialization.codec import copy, from_json, to_json
from sully.machinery.serialization.moments import rewriter

T = TypeVar("T")
_NEW = tuple.__new__


def _is_plain(obj: object) -> TypeGuard[Mapping[str, Any]]:
    # A quick check for Structs; isinstance(…, Mapping) takes much longer.
    return not isinstance(obj, msgspec.Struct) and isinstance(obj, Mapping)


def key_of(obj: object) -> Key:
    """Return the namespace and name of an object."""
    typed: Any = getattr(obj, "metadata", None)
    if typed is not None:
        # As Key(…) does, at half the cost: this is called most often.
        return _NEW(Key, (typed.namespace, typed.name))
    metadata = cast("Mapping[str, Any]", obj).get("metadata") or {}
    return Key(metadata.get("namespace") or "", metadata.get("name") or "")


def version_of(obj: object) -> str:
    """Return the resourceVersion of an object."""
    typed: Any = getattr(obj, "metadata", None)
    if typed is not None:
        return str(typed.resource_version)
    return str((cast("Mapping[str, Any]", obj).get("metadata") or {}).get("resourceVersion") or "")


def uid_of(obj: object) -> str:
    """Return the uid of an object."""
    typed: Any = getattr(obj, "metadata", None)
    if typed is not None:
        return str(typed.uid)
    return str((cast("Mapping[str, Any]", obj).get("metadata") or {}).get("uid") or "")


def strip_managed_fields(obj: T) -> T:
    """Return an object without its managedFields, which are half of many objects.

    For caches whose readers do not need them. An update without them leaves them as they are.
    """
    value: Any = obj
    if _is_plain(obj):
        metadata = dict(obj.get("metadata") or {})
        managed = metadata.pop("managedFields", None)
        return cast("T", {**obj, "metadata": metadata}) if managed else value
    if not getattr(value.metadata, "managed_fields", ()):
        return obj
    stripped = msgspec.structs.replace(value.metadata, managed_fields=())
    return cast("T", msgspec.structs.replace(value, metadata=stripped))


def to_body(kind: Kind[Any], obj: object) -> dict[str, Any]:
    """Return an object as a new dict with kind and apiVersion."""
    plain: dict[str, Any]
    if _is_plain(obj):
        plain = copy(dict(obj))
    else:
        # Through JSON and back is faster than a walk, and shares nothing.
        plain = from_json(to_json(obj))
        rewrite = rewriter(cast("Any", type(obj)))
        plain = plain if rewrite is None else rewrite(plain)
    return {"apiVersion": kind.api_version, "kind": kind.kind} | plain


def from_body(kind: Kind[T], obj: Mapping[str, Any]) -> T:
    """Read a plain object as the type of the kind; a dict is copied."""
    if kind.untyped:
        return cast("T", copy(obj))
    if obj.get("kind") == "Status" and kind.kind != "Status":
        raise UnreadableError(
            f"{kind.plural}: the server answered with a Status; ask with kind.read_as(dict)"
        )
    try:
        return msgspec.convert(obj, kind.type)
    except msgspec.ValidationError as error:
        raise unreadable(kind, error, key_of(obj)) from error


def unreadable(kind: Kind[Any], error: Exception, key: Key | None = None) -> UnreadableError:
    """Return the error for an object that does not fit its type."""
    what = f"{kind.plural} {key}" if key and key.name else kind.plural
    return UnreadableError(f"{what} ({kind.api_version}) cannot be read: {error}")
