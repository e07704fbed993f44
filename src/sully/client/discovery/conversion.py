"""Converts kinds that an older server has in another shape.

Above the transport there is one shape, that of `v1`. Servers before 1.33 have devices only as
`v1beta1`, where the content of a device is one level deeper and that of a request one level
higher. The conversions are those of Sully's server (`api.resource.conversion`), which serves the
old version too. `capabilities.py` decides which version is used.

A patch that is a custom resource has our shape, but its amounts are kept as they were sent, numbers
too, while Sully's server writes all of them as strings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from sully.api.resource.conversion import (
    claim_from_v1,
    claim_to_v1,
    slice_from_v1,
    slice_to_v1,
    template_from_v1,
    template_to_v1,
)
from sully.client.calls import Call
from sully.client.objects import from_body
from sully.client.transport import Kind, Page, ResourceRef, UnreadableError, WatchEvent
from sully.machinery.errors import BadRequest

T = TypeVar("T")
Obj = dict[str, Any]

_WHOLE = frozenset(("create", "update", "apply"))
"""Verbs whose body is an object; that of a patch is a part of one."""


class KindConverter(msgspec.Struct, frozen=True):
    """Converts between the versions of a server and ours."""

    to_ours: Callable[[Obj], Obj]
    from_ours: Callable[[Obj], Obj]
    within: tuple[str, ...]
    """The field below which the shapes differ; none: what is sent has the same shape."""

    def read(self, kind: Kind[T], body: Obj) -> T:
        """Return an object of the server in the requested type."""
        if body.get("kind") == "Status":
            return from_body(kind, body)
        try:
            ours = self.to_ours(body)
        except (KeyError, TypeError, AttributeError) as error:
            text = f"{kind.plural} of the server have an unknown shape: {error!r}"
            raise UnreadableError(text) from error
        return from_body(kind, {**ours, "apiVersion": kind.api_version, "kind": kind.kind})

    def page(self, kind: Kind[T], served: Page[Obj]) -> Page[T]:
        """Return a list of the server as one of such objects."""
        items = [self.read(kind, item) for item in served.items]
        return Page(items, served.resource_version, served.continue_token, served.remaining)

    def event(self, kind: Kind[T], served: WatchEvent[Obj]) -> WatchEvent[T]:
        """Return an event of the server as one about such an object."""
        obj = None if served.object is None else self.read(kind, served.object)
        return WatchEvent(served.type, obj, served.resource_version)

    def sent(self, call: Call) -> Call:
        """Return a call with the body that the server takes."""
        if call.verb in _WHOLE:
            body = self.from_ours(call.body) if "spec" in call.body else call.body
            return msgspec.structs.replace(call, body=body)
        if call.verb == "patch" and self.within and self._reaches(call.body):
            # Half an object cannot be converted, and sent as it is it would be dropped.
            where = f"{call.ref.group}/{call.ref.version}"
            raise BadRequest(
                f"{call.ref.plural}: {'.'.join(self.within)} has another shape in {where}, which is"
                " all that the server has; replace the whole object"
            )
        return call

    def _reaches(self, patch: Any) -> bool:
        if isinstance(patch, Mapping):
            part: Any = patch
            for name in self.within:
                part = part.get(name) if isinstance(part, Mapping) else None
            return part is not None
        at = "/" + "/".join(self.within)
        return any(_overlaps(str(step.get(name) or ""), at) for step in patch for name in _POINTERS)


_POINTERS = ("path", "from")


def _overlaps(pointer: str, at: str) -> bool:
    """Report whether a path of a JSON patch is at, above or below another."""
    return bool(pointer) and (
        f"{pointer}/".startswith(f"{at}/") or f"{at}/".startswith(f"{pointer}/")
    )


def patch_to_ours(obj: Obj) -> Obj:
    """Write the amounts of a patch as text."""
    devices = (obj.get("spec") or {}).get("devices") or {}
    if not devices.get("capacity"):
        return obj
    capacity = {name: _as_text(item) for name, item in devices["capacity"].items()}
    return obj | {"spec": obj["spec"] | {"devices": devices | {"capacity": capacity}}}


def _as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_text(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    # Every number in a capacity is an amount.
    return str(value) if isinstance(value, int) else value


def _as_it_is(obj: Obj) -> Obj:
    return obj


_OLD: Mapping[tuple[str, str, str], KindConverter] = {
    ("resource.k8s.io", "v1beta1", plural): converter
    for plural, converter in {
        "resourceslices": KindConverter(slice_to_v1, slice_from_v1, ("spec", "devices")),
        "resourceclaims": KindConverter(
            claim_to_v1, claim_from_v1, ("spec", "devices", "requests")
        ),
        "resourceclaimtemplates": KindConverter(
            template_to_v1, template_from_v1, ("spec", "spec", "devices", "requests")
        ),
    }.items()
}
CONVERTERS: Mapping[tuple[str, str, str], KindConverter] = {
    **_OLD,
    ("sully.dev", "v1alpha1", "resourceslicepatches"): KindConverter(patch_to_ours, _as_it_is, ()),
}
"""The kinds with another shape, by group, version and plural name."""


def converter_for(ref: ResourceRef) -> KindConverter | None:
    """Return how what a call is about looks on the wire; None: as above the transport."""
    if ref.subresource not in ("", "status"):
        return None
    return CONVERTERS.get((ref.group, ref.version, ref.plural))
