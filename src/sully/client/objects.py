"""Objects ↔ what goes over a transport, for Structs and dicts alike."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar, cast

import msgspec

from sully.client.transport import Key, Kind, UnreadableError
from sully.machinery.codec import copy
from sully.machinery.timestamps import format_micro_time

T = TypeVar("T")


def key_of(obj: object) -> Key:
    """Return the namespace and name of an object."""
    if isinstance(obj, Mapping):
        metadata = obj.get("metadata") or {}
        return Key(metadata.get("namespace") or "", metadata.get("name") or "")
    metadata = cast("Any", obj).metadata
    return Key(metadata.namespace, metadata.name)


def version_of(obj: object) -> str:
    """Return the resourceVersion of an object."""
    if isinstance(obj, Mapping):
        return str((obj.get("metadata") or {}).get("resourceVersion") or "")
    return str(cast("Any", obj).metadata.resource_version)


def uid_of(obj: object) -> str:
    """Return the uid of an object."""
    if isinstance(obj, Mapping):
        return str((obj.get("metadata") or {}).get("uid") or "")
    return str(cast("Any", obj).metadata.uid)


def to_body(kind: Kind[Any], obj: object) -> dict[str, Any]:
    """Return an object as a fresh dict that says what it is."""
    plain: dict[str, Any]
    if isinstance(obj, Mapping):
        plain = copy(dict(obj))
    else:
        plain = _plain(msgspec.to_builtins(obj, builtin_types=(datetime,)))
    return {"apiVersion": kind.api_version, "kind": kind.kind} | plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    # Six digits are read as a Time and as a MicroTime; the server keeps what the field keeps.
    return format_micro_time(value) if isinstance(value, datetime) else value


def from_body(kind: Kind[T], obj: Mapping[str, Any]) -> T:
    """Read a plain object as the type that the kind asks for; a dict is copied."""
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
    """Say which object does not fit its type, and where."""
    what = f"{kind.plural} {key}" if key and key.name else kind.plural
    return UnreadableError(f"{what} ({kind.api_version}) cannot be read: {error}")
