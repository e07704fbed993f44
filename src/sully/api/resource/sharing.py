"""Devices that are alike share what they have in common.

A fleet consists of few kinds of devices, and attributes and capacity are most of what a device
weighs. `Device` is generated (tools/generate_types.py); this is what it does beside holding fields.
"""

from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import force_setattr

from sully.machinery.memo import Memo
from sully.machinery.serialization.wire import Wire

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceAttribute, DeviceCapacity

V = TypeVar("V")

_MOST_KINDS = 8192
"""Kinds of devices that are recognised."""
_attributes: Memo[tuple[tuple[str, Any], ...], Any] = Memo(_MOST_KINDS)
_capacity: Memo[tuple[tuple[str, Any], ...], Any] = Memo(_MOST_KINDS)


def _shared(
    value: dict[str, V], known: Memo[tuple[tuple[str, V], ...], dict[str, V]]
) -> dict[str, V]:
    key = tuple(value.items())
    same = known.get(key)
    return same if same is not None else known.keep(key, value)


class SharedContent(Wire, frozen=True, kw_only=True):
    """A device whose attributes and capacity are those of an equal one that was read before."""

    if TYPE_CHECKING:

        @property
        def attributes(self) -> "dict[str, DeviceAttribute]": ...
        @property
        def capacity(self) -> "dict[str, DeviceCapacity]": ...

    def __post_init__(self) -> None:
        """Replace both by those of an equal device."""
        force_setattr(self, "attributes", _shared(self.attributes, _attributes))
        force_setattr(self, "capacity", _shared(self.capacity, _capacity))
