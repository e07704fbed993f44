"""Server-side apply: a client applies a configuration, and owns exactly its fields.

The applied configuration is merged into the object; fields that the client applied last time and no
longer applies are removed, unless another manager owns them too; changing a field of another
manager is a conflict unless forced. ownership/managed.py records other writes, pruning.py removes
fields, ownership/lastapplied.py helps clients that migrate from client-side apply.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from sully.machinery.errors import ApiError, BadRequest, Conflict
from sully.machinery.patch.checking import TypedError, check
from sully.machinery.patch.errors import check_depth
from sully.machinery.patch.merging import merge
from sully.machinery.patch.ownership.entries import (
    Entry,
    Holding,
    Managed,
    Owner,
    decode,
    encode,
    entries_of,
)
from sully.machinery.patch.ownership.fieldset import (
    FieldSet,
    Tree,
    difference,
    path_text,
    recursive_difference,
)
from sully.machinery.patch.ownership.lastapplied import allowed_conflicts, with_last_applied
from sully.machinery.patch.ownership.managed import (
    Write,
    changes_in,
    empty_of,
    loss,
    settle,
    stripped,
    take_over,
    without_reset,
)
from sully.machinery.patch.ownership.typed import Comparison, compare, to_field_set
from sully.machinery.patch.pruning import prune
from sully.machinery.patch.shapes import ElementError
from sully.machinery.serialization.gotext import quote

Obj = dict[str, Any]
Conflicts = dict[Owner, Tree]

# Owns what an object had before ownership was recorded.
BEFORE_FIRST_APPLY = "before-first-apply"


class Applied(msgspec.Struct, frozen=True):
    """Outcome of an apply.

    `object` holds no decision of decoding yet: it may contain nulls where something became empty.
    `changed` is False when neither the object nor the record differs from before.
    """

    object: Obj
    managed_fields: list[Entry]
    changed: bool


def apply(live: Obj | None, applied: Obj, write: Write, *, force: bool = False) -> Applied:
    """Lay a configuration over an object; `live` is None when apply creates it.

    Raises Conflict when others own what would change, BadRequest or ApiError when the
    configuration is not one.
    """
    _check(applied, write)
    try:
        return _apply(live, applied, write, force=force)
    except ElementError as error:
        # The configuration was checked, so it is the stored object that cannot be walked.
        subject = described(live or {}, write.api_version)
        raise ApiError(f"failed to create typed live object ({subject}): {error}") from None


def _apply(live: Obj | None, applied: Obj, write: Write, *, force: bool) -> Applied:
    old = live if live is not None else empty_of(write.schema)
    before = entries_of(live)
    managed = decode(before, trusted=True)
    if not managed:
        take_over(managed, empty_of(write.schema), old, replace(write, manager=BEFORE_FIRST_APPLY))

    merged = _configure(old, applied, managed, write)
    change = _Change(old, merged, write)
    conflicts = {} if force else change.conflicts(managed)
    refused = _not_allowed(conflicts, old, write) if conflicts else {}
    if refused:
        raise _conflict_error(refused)
    change.transfer_ownership(managed)
    result = with_last_applied(old if change.is_same else merged, applied, write.manager)
    entries = encode(managed, before)
    changed = live is None or result is not old or entries != before
    return Applied(result, entries if changed else before, changed)


def _check(applied: Obj, write: Write) -> None:
    check_depth(applied)
    check_unmanaged(applied)
    try:
        check(applied, write.schema)
    except TypedError as error:
        # Kubernetes answers with a plain 500, and so do we: clients know the text.
        subject = described(applied, write.api_version)
        raise ApiError(f"failed to create typed patch object ({subject}): {error}") from None


def check_unmanaged(applied: Obj) -> None:
    """Reject managed fields; a value that cannot be any is left to the check of all fields."""
    metadata = applied.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    if isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries):
        raise BadRequest("metadata.managedFields must be nil")


def described(obj: Obj, api_version: str) -> str:
    """Name an object as Kubernetes does in these errors: namespace/name; group/version, Kind=…"""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    group = "" if "/" in api_version else "/"
    names = (metadata.get("namespace"), metadata.get("name"))
    name = "/".join(text if isinstance(text, str) else "" for text in names)
    return f"{name}; {group}{api_version}, Kind={obj.get('kind') or ''}"


def _configure(old: Obj, applied: Obj, managed: Managed, write: Write) -> Obj:
    """Return the merged object, and record the fields of the applier."""
    owner = write.owner("Apply")
    last = managed.get(owner)
    fields = recursive_difference(to_field_set(applied, write.schema).tree, write.reset.tree)
    managed[owner] = Holding(fields, write.api_version, last.time if last else "")
    merged = merge(old, applied, write.schema)
    return merged if last is None else prune(merged, last, managed, write)


def _not_allowed(conflicts: Conflicts, live: Obj, write: Write) -> Conflicts:
    """Return the remaining conflicts, without those with the client's own client-side apply."""
    allowed = allowed_conflicts(live, write)
    left = {owner: difference(fields, allowed) for owner, fields in conflicts.items()}
    return {owner: fields for owner, fields in left.items() if fields}


class _Change:
    """What an apply does to the object, in every version that has a record of ownership."""

    def __init__(self, old: Obj, new: Obj, write: Write) -> None:
        self._old, self._new, self._write = old, new, write
        self._owner = write.owner("Apply")
        comparison = compare(old, new, write.schema)
        self.is_same = comparison.is_same
        self._seen = {write.api_version: without_reset(comparison, write)}

    def conflicts(self, managed: Managed) -> Conflicts:
        """Return what would change of the fields that others own."""
        conflicts: Conflicts = {}
        for owner, holding in managed.items():
            change = None if owner == self._owner else self._in(holding)
            lost = loss(holding, change) if change is not None else {}
            if lost:
                conflicts[owner] = lost
        return conflicts

    def transfer_ownership(self, managed: Managed) -> None:
        """Remove what changed from other owners, and update the applier's own entry."""
        for owner, holding in list(managed.items()):
            if owner == self._owner:
                continue
            change = self._in(holding)
            if change is None:
                del managed[owner]
            else:
                settle(managed, owner, loss(holding, change), change.removed)
        _sign(managed, self._owner, "" if self.is_same else self._write.time)

    def _in(self, holding: Holding) -> Comparison | None:
        return changes_in(holding.api_version, self._old, self._new, self._seen, self._write)


def _sign(managed: Managed, owner: Owner, time: str) -> None:
    """Update the applier's own entry; its time is that of the last change of the object."""
    holding = managed[owner]
    fields = stripped(holding.fields)
    if fields:
        managed[owner] = holding._replace(fields=fields, time=time or holding.time)
    else:
        del managed[owner]


# -- conflicts; the texts are those of Kubernetes --------------------------------------------------


def _conflict_error(conflicts: Conflicts) -> Conflict:
    """Return the error with the owner of each field, as Kubernetes does."""
    fields = list(_conflicting_fields(conflicts))
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {subject}", "field": path}
        for subject, path in fields
    ]
    return Conflict(_conflict_text(fields), details={"causes": causes})


def _conflicting_fields(conflicts: Conflicts) -> Iterator[tuple[str, str]]:
    for owner in sorted(conflicts):
        for path in FieldSet(conflicts[owner]).paths():
            yield _manager_text(owner), path_text(path)


def _conflict_text(fields: list[tuple[str, str]]) -> str:
    if len(fields) == 1:
        return f"Apply failed with 1 conflict: conflict with {fields[0][0]}: {fields[0][1]}"
    lines: list[str] = []
    last = None
    for subject, path in fields:
        if subject != last:
            lines.append(f"conflicts with {subject}:")
        lines.append(f"- {path}")
        last = subject
    return f"Apply failed with {len(fields)} conflicts: " + "\n".join(lines)


def _manager_text(owner: Owner) -> str:
    name = quote(owner.manager)
    if owner.subresource:
        name += f" with subresource {quote(owner.subresource)}"
    return f"{name} using {owner.api_version}" if owner.operation == "Update" else name
