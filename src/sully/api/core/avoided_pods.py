"""The annotation by which a node asks not to get pods of some controllers.

No scheduler reads it any more; Kubernetes still validates it.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from sully.machinery.fields import FieldError, Path
from sully.machinery.serialization.codec import BodyError, parse_json

Obj = dict[str, Any]


class _Owner(msgspec.Struct, frozen=True):
    controller: bool | None = None


class _Signature(msgspec.Struct, frozen=True):
    owner: _Owner | None = msgspec.field(default=None, name="podController")


class _Entry(msgspec.Struct, frozen=True):
    signature: _Signature | None = msgspec.field(default=None, name="podSignature")


class _AvoidPods(msgspec.Struct, frozen=True):
    entries: list[_Entry] | None = msgspec.field(default=None, name="preferAvoidPods")


ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"


def validate_avoided_pods(node: Obj) -> Iterator[FieldError]:
    """Check that every entry names a controller."""
    text = (node["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not text:
        return
    at = Path("metadata.annotations")
    try:
        avoided = msgspec.convert(parse_json(text.encode())[0] or {}, _AvoidPods)
    except (BodyError, msgspec.ValidationError) as error:
        yield at.child("AvoidPods").invalid(ANNOTATION, str(error))
        return
    for position, entry in enumerate(avoided.entries or ()):
        here = at.child(ANNOTATION).index(position).child("PodSignature")
        owner = entry.signature.owner if entry.signature is not None else None
        if owner is None:
            yield here.required()
        elif not owner.controller:
            text = "must point to a controller"
            yield here.child("PodController", "Controller").invalid(False, text)
