"""Garbage collection: which finalizer waits, which owners count, which objects are deleted.

Deleting an owner does nothing to its dependents in the same moment. With the policy Foreground or
Orphan the server sets a finalizer on the owner, and the garbage collector acts before it removes
that finalizer; with Background the dependents are deleted after their owner. The graph of
who owns whom is in controllers/garbagecollection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum, auto
from typing import Any, Literal, Protocol

import msgspec

from sully.machinery.meta import ObjectIdentity, OwnerReference, Wire

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"

Policy = Literal["Background", "Foreground", "Orphan"]
_FINALIZERS = {"Orphan": ORPHAN, "Foreground": FOREGROUND}


def deletion_finalizers(
    finalizers: Sequence[str], options: Mapping[str, Any], default: Policy = "Background"
) -> list[str]:
    """Return the finalizers of an object whose deletion is requested.

    The request decides; if it has no policy, a finalizer that is there already does, and
    then the default of the kind.
    """
    policy = _requested_policy(options) or next(
        (name for name, finalizer in _FINALIZERS.items() if finalizer in finalizers), default
    )
    requested = _FINALIZERS.get(policy, "")
    if {name for name in finalizers if name in _FINALIZERS.values()} == {requested} - {""}:
        return list(finalizers)
    others = [name for name in finalizers if name not in _FINALIZERS.values()]
    return [*others, requested] if requested else others


def _requested_policy(options: Mapping[str, Any]) -> str:
    orphan = options.get("orphanDependents")
    if orphan is not None:
        return "Orphan" if orphan else "Background"
    return options.get("propagationPolicy") or ""


class OwnedMetadata(ObjectIdentity, frozen=True, kw_only=True):
    """The part of metadata that matters for garbage collection."""

    deletion_timestamp: datetime | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


def shows_ownership(type_: type) -> bool:
    """Report whether objects of a type show what matters for garbage collection: `Ownable`."""
    if not issubclass(type_, msgspec.Struct):
        return False
    metadata = next((x.type for x in msgspec.structs.fields(type_) if x.name == "metadata"), None)
    return (
        isinstance(metadata, type)
        and issubclass(metadata, msgspec.Struct)
        and set(OwnedMetadata.__struct_fields__) <= set(metadata.__struct_fields__)
    )


class Metadata(Protocol):
    """Metadata that has what matters for garbage collection, and more."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...
    @property
    def deletion_timestamp(self) -> datetime | None: ...
    @property
    def owner_references(self) -> tuple[OwnerReference, ...]: ...
    @property
    def finalizers(self) -> tuple[str, ...]: ...


class Ownable(Protocol):
    """An object of any type that can own and be owned."""

    @property
    def metadata(self) -> Metadata: ...


class Owned(Wire, frozen=True, kw_only=True):
    """Any object, as the garbage collector sees it."""

    metadata: OwnedMetadata = msgspec.field(default_factory=OwnedMetadata)

    @property
    def uid(self) -> str:
        """Return which object it is."""
        return self.metadata.uid

    @property
    def owners(self) -> tuple[OwnerReference, ...]:
        """Return whom it belongs to."""
        return self.metadata.owner_references

    @property
    def is_terminating(self) -> bool:
        """Report whether it has a deletion timestamp."""
        return self.metadata.deletion_timestamp is not None

    @property
    def orphaning(self) -> bool:
        """Report whether it is deleted once its dependents are orphaned."""
        return self.is_terminating and ORPHAN in self.metadata.finalizers

    @property
    def awaiting(self) -> bool:
        """Report whether it is deleted once the dependents that block it are."""
        return self.is_terminating and FOREGROUND in self.metadata.finalizers

    def blocks(self, owner: str) -> bool:
        """Report whether an owner that awaits its dependents must await this one."""
        return any(ref.uid == owner and ref.block_owner_deletion for ref in self.owners)


def owned(obj: Ownable) -> Owned:
    """Return an object as the garbage collector sees it."""
    metadata = obj.metadata
    return Owned(
        metadata=OwnedMetadata(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
            deletion_timestamp=metadata.deletion_timestamp,
            owner_references=metadata.owner_references,
            finalizers=metadata.finalizers,
        )
    )


def same_ownership(obj: Ownable, other: Ownable) -> bool:
    """Report whether two states of an object are the same to the garbage collector."""
    metadata, before = obj.metadata, other.metadata
    return (
        metadata.owner_references == before.owner_references
        and metadata.finalizers == before.finalizers
        and metadata.deletion_timestamp == before.deletion_timestamp
    )


class Standing(Enum):
    """What an owner is to its dependent."""

    SOLID = auto()
    """It exists, and does not take the dependent with it yet."""
    AWAITING = auto()
    """It is being deleted and waits for its dependents to go first."""
    ABSENT = auto()
    """There is no such object, or another one has its name."""


class Keep(msgspec.Struct, frozen=True):
    """The object still has an owner."""


class Disown(msgspec.Struct, frozen=True):
    """Another owner exists, but these are deleted or wait for the object."""

    owners: tuple[str, ...]


class Collect(msgspec.Struct, frozen=True):
    """The object has no owner any more: delete it."""

    policy: Policy
    unblock: bool = False
    """First let its owners go: it waits for one that waits for it."""


Verdict = Keep | Disown | Collect
KEEP = Keep()


def judge(
    obj: Owned, owners: Mapping[OwnerReference, Standing], dependents: Iterable[Owned]
) -> Verdict:
    """Decide about an object that is not being deleted, from the state of its owners."""
    gone = tuple(ref.uid for ref, state in owners.items() if state is not Standing.SOLID)
    if len(gone) < len(owners):
        return Disown(gone) if gone else KEEP
    if not owners:
        return KEEP
    held = list(dependents)
    if Standing.AWAITING in owners.values() and held:
        # An owner that waits for this object waits for all below it too.
        return Collect("Foreground", unblock=any(dependent.awaiting for dependent in held))
    if ORPHAN in obj.metadata.finalizers:
        return Collect("Orphan")
    return Collect("Foreground" if FOREGROUND in obj.metadata.finalizers else "Background")
