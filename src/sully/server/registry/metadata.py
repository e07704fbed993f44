"""Metadata of all kinds: names, uids, finalizers, owner references."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from sully.api.core.checks import annotations, labels
from sully.machinery.declared import declared
from sully.machinery.errors import BadRequest
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import (
    dns_label_problems,
    label_key_problems,
    path_segment_problems,
)
from sully.machinery.meta import owner_in_order
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import Obj, Strategy
from sully.server.requests import Target

META = Path("metadata")
_REPEATED_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in"
    " 1.20+, and may reject such requests as early as 1.24; please fix your requests;"
    " duplicate UID(s) observed: "
)
MAX_GENERATED_BASE = 58  # 63 less the five random characters
# Finalizers without a domain that the API itself defines.
_SYSTEM_FIELDS = (
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "uid",
    "creationTimestamp",
)


def generated_name(base: str, suffix: str) -> str:
    """Make a name from generateName."""
    return base[:MAX_GENERATED_BASE] + suffix


_ETCD_FOLDERS = {
    "endpoints": "services/endpoints",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}
"""Where Kubernetes keeps kinds that it does not keep under their own name."""


def etcd_key(target: Target) -> str:
    """Return where Kubernetes would have an object in etcd, for error texts."""
    resource = target.resource
    version = resource.version(target.version)
    group = f"/{resource.group}" if version is not None and version.custom else ""
    folder = (
        resource.plural if resource.group else _ETCD_FOLDERS.get(resource.plural, resource.plural)
    )
    place = f"{target.namespace}/{target.name}" if target.namespace else target.name
    return f"/registry{group}/{folder}/{place}"


def check_namespace(target: Target, obj: Obj) -> None:
    """Reject a body whose namespace is not the one in the URL."""
    if obj["metadata"].get("namespace") not in (None, "", target.namespace):
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def settle_namespace(target: Target, obj: Obj) -> None:
    """Give a body the namespace of the URL; reject another one."""
    if target.resource.namespaced:
        check_namespace(target, obj)
        obj["metadata"]["namespace"] = target.namespace
    else:
        obj["metadata"].pop("namespace", None)


def clear_system_fields(obj: Obj) -> None:
    """Remove what only the server sets, on create."""
    for name in _SYSTEM_FIELDS:
        obj["metadata"].pop(name, None)


def merge_owners(obj: Obj) -> list[str]:
    """Remove owner references that are repeated; return a warning about them."""
    metadata = obj["metadata"]
    owners, remaining, repeated = metadata.get("ownerReferences") or [], [], []
    for owner in owners:
        if owner not in remaining:
            remaining.append(owner)
        elif owner.get("uid", "") not in repeated:
            repeated.append(owner.get("uid", ""))
    if not repeated:
        return []
    metadata["ownerReferences"] = remaining
    return [_REPEATED_OWNERS + ", ".join(repeated)]


def validate_metadata(obj: Obj, strategy: Strategy, *, namespaced: bool) -> Iterator[FieldError]:
    """Yield what is wrong with the metadata of a new object."""
    metadata = obj["metadata"]
    generate = metadata.get("generateName", "")
    if generate and not strategy.declares_name:
        # A generated name ends in random characters: a trailing dash is fine.
        for problem in strategy.validate_name(
            generate.rstrip("-") + "a" if generate.endswith("-") else generate
        ):
            yield META.child("generateName").invalid(generate, problem)
    yield from _validate_name(metadata, strategy)
    yield from _validate_namespace(metadata, namespaced=namespaced)
    if (generation := metadata.get("generation", 0)) < 0:
        yield META.child("generation").invalid(generation, "must be greater than or equal to 0")
    yield from validate_common(metadata)
    yield from _validate_standard_finalizers(metadata, strategy)


def _validate_name(metadata: Obj, strategy: Strategy) -> Iterator[FieldError]:
    name = metadata.get("name", "")
    if not name:
        yield META.child("name").required("name or generateName is required")
        return
    problems = strategy.validate_name(name) or path_segment_problems(name)
    errors = (META.child("name").invalid(name, problem) for problem in problems)
    yield from declared(errors) if strategy.declares_name else errors


def _validate_namespace(metadata: Obj, *, namespaced: bool) -> Iterator[FieldError]:
    namespace = metadata.get("namespace", "")
    if namespaced and not namespace:
        yield META.child("namespace").required("")
    elif namespaced:
        for problem in dns_label_problems(namespace):
            yield META.child("namespace").invalid(namespace, problem)
    elif namespace:
        yield META.child("namespace").forbidden("not allowed on this type")


def validate_common(metadata: Obj, before: Obj | None = None) -> Iterator[FieldError]:
    """Yield what is wrong with labels, annotations, owners and finalizers.

    Unchanged parts were validated before, and most updates change none of these.
    """
    before = before or {}
    for part, validate in _COMMON.items():
        field_value = metadata.get(part)
        if field_value and field_value != before.get(part):
            yield from validate(field_value)
    finalizers = metadata.get("finalizers")
    if finalizers and finalizers != before.get("finalizers"):
        yield from _validate_finalizers(finalizers)


def _validate_owners(owners: Sequence[Obj]) -> Iterator[FieldError]:
    at = META.child("ownerReferences")
    controller = ""
    for index, owner in enumerate(owners):
        here = at.index(index)
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield here.child(name).required("must not be empty")
            elif name == "apiVersion" and not _GROUP_VERSION.fullmatch(owner[name]):
                yield here.child(name).invalid(
                    owner[name], "must be <group>/<version> or <version>"
                )
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            # Events expire, and their dependents would be deleted.
            yield here.invalid(
                owner_in_order(owner), "/v1, Kind=Event is disallowed from being an owner"
            )
        if owner.get("controller"):
            if controller:
                yield at.invalid(
                    [owner_in_order(one) for one in owners],
                    "Only one reference can have Controller set to true. Found"
                    f' "true" in references for {controller} and {owner["kind"]}/{owner["name"]}',
                )
            else:
                controller = f"{owner['kind']}/{owner['name']}"


def _validate_finalizers(finalizers: Sequence[str]) -> Iterator[FieldError]:
    at = META.child("finalizers")
    for finalizer in finalizers:
        for problem in label_key_problems(finalizer):
            yield at.invalid(finalizer, problem)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        yield at.invalid(
            list(finalizers),
            "finalizer orphan and foregroundDeletion cannot be both set",
        )


def _validate_standard_finalizers(metadata: Obj, strategy: Strategy) -> Iterator[FieldError]:
    at, finalizers = META.child("finalizers"), metadata.get("finalizers") or ()
    for index, finalizer in enumerate(finalizers):
        for problem in strategy.validate_finalizer(finalizer):
            yield at.index(index).invalid(finalizer, problem)


_COMMON: dict[str, Callable[[Any], Iterator[FieldError]]] = {
    "labels": partial(labels, at=META.child("labels")),
    "annotations": partial(annotations, at=META.child("annotations")),
    "ownerReferences": _validate_owners,
}


def carry_over(obj: Obj, old: Obj) -> None:
    """Copy what an update may omit: timestamps and identity."""
    new, before = obj["metadata"], old["metadata"]
    for name in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid"):
        if name in before and (name not in new or name == "creationTimestamp"):
            new[name] = before[name]
    new.pop("selfLink", None)


def validate_metadata_update(obj: Obj, old: Obj, strategy: Strategy) -> Iterator[FieldError]:
    """Yield what an update may not do to metadata."""
    new, before = obj["metadata"], old["metadata"]
    yield from validate_common(new, before)
    known = set(before.get("finalizers", []))
    added = [name for name in new.get("finalizers", []) if name not in known]
    if before.get("deletionTimestamp") and added:
        quoted = ", ".join(quote(name) for name in sorted(added))
        yield META.child("finalizers").forbidden(
            "no new finalizers can be added if the object is being deleted,"
            f" found new finalizers []string{{{quoted}}}"
        )
    for name in _IDENTITY:
        if new.get(name) != before.get(name):
            yield META.child(name).invalid(new.get(name), "field is immutable")
    if new.get("generation", 0) < before.get("generation", 0):
        yield META.child("generation").invalid(new.get("generation", 0), "must not be decremented")
    if new.get("finalizers") != before.get("finalizers"):
        yield from _validate_standard_finalizers(new, strategy)


_IDENTITY = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_DIGITS = re.compile(r"\d+")
_GROUP_VERSION = re.compile(r"[^/]*/?[^/]+")


def is_version(text: Any) -> bool:
    """Report whether a text can be a resourceVersion."""
    return isinstance(text, str) and _DIGITS.fullmatch(text) is not None
