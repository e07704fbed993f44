"""Which manager owns which field: the managedFields of an object after a write.

Every create, update and patch records which fields it changed; apply.py adds what apply does with
the record. The walk over objects is typed.py's. Kubernetes' rules, and where they show:

- a writer owns what it added or changed; all others lose those fields;
- removed fields have no owner, and an entry without fields is dropped;
- a write that changes nothing leaves the record and its times alone;
- at most ten entries come from updates: the oldest are folded into `ancient-changes`.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from sully.machinery.errors import ApiError
from sully.machinery.memo import Memo
from sully.machinery.patch.ownership.entries import (
    Entry,
    Holding,
    Managed,
    ManagedFieldsError,
    Owner,
    decode,
    encode,
    entries_of,
)
from sully.machinery.patch.ownership.fieldset import (
    MAX_SHARED,
    FieldSet,
    Tree,
    difference,
    encoded,
    in_order,
    intersection,
    recursive_difference,
    union,
)
from sully.machinery.patch.ownership.typed import Comparison, compare_new, compare_shapes
from sully.machinery.patch.shapes import ElementError, shape_of
from sully.machinery.schema import ObjectType
from sully.machinery.serialization.decode import DecodeError, empty_object
from sully.machinery.serialization.decode import decode as normal_form

Obj = dict[str, Any]
# (object, its apiVersion, another) → the object in that other version with its type; None: not
# served any more.
Convert = Callable[[Obj, str, str], tuple[Obj, ObjectType] | None]

MAX_UPDATERS = 10
ANCIENT = "ancient-changes"

# Controllers write the same fields of thousands of objects.
_OWNED: Memo[tuple[bytes, FieldSet], Tree] = Memo(1024)

# What the server itself maintains; these have no owner.
_SERVER_FIELDS = FieldSet.of(
    ("apiVersion",),
    ("kind",),
    ("metadata",),
    *(
        ("metadata", name)
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
).tree


class Write(msgspec.Struct, frozen=True):
    """One write as field management sees it.

    time: of the write, as the wire has it (whole seconds). reset: fields this endpoint does not
    own, such as status on the object itself. convert: None where all versions have one shape.
    """

    manager: str
    api_version: str
    schema: ObjectType
    time: str
    subresource: str = ""
    reset: FieldSet = msgspec.field(default_factory=FieldSet)
    convert: Convert | None = None

    def owner(self, operation: str) -> Owner:
        """Return the name under which this write's fields are recorded."""
        version = "" if operation == "Apply" else self.api_version
        return Owner(self.manager or "unknown", operation, version, self.subresource)


def track_update(live: Obj | None, new: Obj, write: Write) -> list[Entry]:
    """Return the managedFields of an object after a create, update or patch.

    `live` is None on create. `new` is the decoded and defaulted object before anything else
    changes it: what admission and strategies fill in has no owner.
    """
    before = entries_of(live)
    if live is None and not entries_of(new):
        return _first_entries(new, write)
    recorded = read(live, new, subresource=write.subresource)
    if not recorded and live is not None:
        # Ownership was cleared: only apply starts a new record.
        return []
    old = live if live is not None else empty_of(write.schema)
    managed = dict(recorded)
    try:
        take_over(managed, old, new, write)
    except ElementError:
        return before
    sent = entries_of(new)
    if managed == recorded and before and (not sent or sent == before):
        return before
    cap_updaters(managed)
    return encode(managed, before)


def _first_entries(new: Obj, write: Write) -> list[Entry]:
    """Return the managedFields of an object that a client creates without any."""
    managed: Managed = {}
    try:
        comparison = compare_new(empty_of(write.schema), new, write.schema)
    except ElementError:
        return []
    add_owned(managed, comparison, write)
    return encode(managed)


def read(live: Obj | None, new: Obj, *, subresource: str) -> Managed:
    """Choose between the record of the live object and one the client sent along.

    A client may rewrite the record (not through a subresource); `[{}]` clears it. Clients that
    send none, or one that cannot be read, leave it alone.
    """
    known, sent = entries_of(live), entries_of(new)
    if not subresource and sent and sent != known:
        if sent == [{}]:
            return {}
        try:
            return decode(sent, trusted=False)
        except ManagedFieldsError:
            pass
    return decode(known, trusted=True)


def take_over(managed: Managed, old: Obj, new: Obj, write: Write) -> None:
    """Add what changed to the writer's fields, and remove it from all others."""
    comparison = compare_shapes(old, new, shape_of(write.schema))
    if comparison.is_same:
        return
    if managed:
        reassign(managed, old, new, comparison, write)
    add_owned(managed, comparison, write)


def add_owned(managed: Managed, comparison: Comparison, write: Write) -> None:
    """Add what was written to the fields of the writer."""
    fields = owned_fields(comparison, write.reset)
    if fields:
        owner = write.owner("Update")
        known = managed.get(owner)
        if known is not None:
            fields = in_order(union(fields, known.fields))
        managed[owner] = Holding(fields, write.api_version, write.time, is_ordered=True)


def owned_fields(comparison: Comparison, reset: FieldSet) -> Tree:
    """Return which of the fields that it wrote a writer owns, in the order of the wire."""
    key = (encoded(comparison), reset)
    known = _OWNED.get(key)
    if known is None:
        written = difference(comparison.written, comparison.removed)
        known = in_order(stripped(recursive_difference(written, reset.tree)))
        if len(key[0]) <= MAX_SHARED:
            _OWNED.keep(key, known)
    return known


def reassign(managed: Managed, old: Obj, new: Obj, comparison: Comparison, write: Write) -> None:
    """Remove what a write changed or removed from every owner."""
    seen = {write.api_version: without_reset(comparison, write)}
    for owner, holding in list(managed.items()):
        change = changes_in(holding.api_version, old, new, seen, write)
        if change is None:
            # The fields can no longer be determined.
            del managed[owner]
            continue
        settle(managed, owner, loss(holding, change), change.removed)


def settle(managed: Managed, owner: Owner, lost: Tree, removed: Tree) -> None:
    """Remove fields from one owner; an owner without fields has no entry."""
    holding = managed[owner]
    rest = difference(holding.fields, lost) if lost else holding.fields
    if removed:
        rest = difference(rest, removed)
    if not rest:
        del managed[owner]
    elif rest != holding.fields:
        managed[owner] = holding._replace(fields=rest, is_ordered=False)


def loss(holding: Holding, change: Comparison) -> Tree:
    """Return what an owner holds of the fields that were written."""
    written = change.written
    return intersection(holding.fields, written) if written else {}


def changes_in(
    version: str, old: Obj, new: Obj, seen: dict[str, Comparison], write: Write
) -> Comparison | None:
    """Return what a write changed as another version of the API shows it."""
    if version not in seen:
        if write.convert is None:
            if version.rpartition("/")[0] != write.api_version.rpartition("/")[0]:
                # Another group's view of the object: only events have one.
                return None
            seen[version] = seen[write.api_version]
        else:
            here = (write.schema, write.api_version)
            before = in_version(old, *here, version, write)
            after = in_version(new, *here, version, write)
            if before is None or after is None:
                return None
            comparison = compare_shapes(before[0], after[0], shape_of(after[1]))
            seen[version] = without_reset(comparison, write)
    return seen[version]


def in_version(
    obj: Obj, schema: ObjectType, version: str, target_version: str, write: Write
) -> tuple[Obj, ObjectType] | None:
    """Return an object of one version as another shows it, None where that is not served."""
    if version == target_version or write.convert is None:
        return obj, schema
    try:
        # Converters expect what decoding yields, and a merged object is not there yet.
        return write.convert(normal_form(obj, schema, []), version, target_version)
    except DecodeError as error:
        raise ApiError(f"failed to convert object to {target_version}: {error}") from None


def without_reset(comparison: Comparison, write: Write) -> Comparison:
    """Leave out what the endpoint does not own."""
    reset = write.reset.tree
    if not reset:
        return comparison
    return Comparison(
        recursive_difference(comparison.added, reset),
        recursive_difference(comparison.modified, reset),
        recursive_difference(comparison.removed, reset),
    )


def stripped(fields: Tree) -> Tree:
    """Leave out what the server keeps."""
    return difference(fields, _SERVER_FIELDS)


def cap_updaters(managed: Managed) -> None:
    """Fold the oldest entries of updaters into one a version, until ten are left."""
    if len(managed) <= MAX_UPDATERS:
        return
    updaters = sorted(
        (owner for owner in managed if owner.operation == "Update"),
        key=lambda owner: (managed[owner].time, owner),
    )
    surplus = len(updaters) - MAX_UPDATERS
    oldest: dict[str, Owner] = {}
    for owner in updaters:
        if surplus <= 0:
            return
        version = managed[owner].api_version
        older = oldest.setdefault(version, owner)
        if older != owner:
            oldest[version] = _fold(managed, older, owner)
            surplus -= 1


def _fold(managed: Managed, older: Owner, newer: Owner) -> Owner:
    """Make two entries one; return which entry later ones of this version are folded with."""
    holding = managed[newer]
    bucket = Owner(ANCIENT, "Update", holding.api_version, "")
    pair = (older, newer)
    if bucket in managed and bucket not in pair:
        pair = (bucket, newer)
    fields = union(managed.pop(pair[0]).fields, managed.pop(pair[1]).fields)
    managed[bucket] = Holding(fields, holding.api_version, holding.time)
    return older if older in managed else bucket


_EMPTY: dict[ObjectType, Obj] = {}


def empty_of(schema: ObjectType) -> Obj:
    """Return the object before its creation: what is always written, and nothing else."""
    if schema.structural:
        # These come and go with their definitions, and cost nothing.
        return empty_object(schema)
    known = _EMPTY.get(schema)
    if known is None:
        known = _EMPTY[schema] = empty_object(schema)
    return known
