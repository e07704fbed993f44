"""A parsed request body, and how large it may be."""

from collections.abc import Callable
from typing import Any

import msgspec

from sully.machinery.errors import RequestEntityTooLarge
from sully.machinery.serialization.codec import has_more_values
from sully.machinery.strategy import ResourceType

MANAGED_FIELDS_FACTOR = 2
"""How many times as much as the object itself its managedFields may hold."""


class Body(msgspec.Struct):
    """A parsed body: a JSON value, the paths of repeated keys, and the bytes for error texts."""

    value: Any
    repeated: list[str] = msgspec.field(default_factory=list)
    raw: bytes = b""
    is_json: bool = False
    """Whether the bytes are JSON, in which objects under a repeated key are merged."""

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
