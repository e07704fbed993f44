"""The managedFields of an object, read into owners with their fields and written back.

managed.py and apply.py work on what is read here.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sully.machinery.patch.ownership.fieldset import FieldSet, FieldSetError, Tree, in_order

Obj = dict[str, Any]
Entry = dict[str, Any]


class ManagedFieldsError(ValueError):
    """A list of managedFields that cannot be read."""


class Owner(NamedTuple):
    """What distinguishes entries. Appliers keep their entry when they change versions."""

    manager: str
    operation: str
    api_version: str
    subresource: str


class Holding(NamedTuple):
    """The fields of one owner; `time` is empty when the owner never changed the object."""

    fields: Tree
    api_version: str
    time: str
    is_ordered: bool = False
    """Whether the fields are known to be in the order of the wire."""


Managed = dict[Owner, Holding]


def entries_of(obj: Obj | None) -> list[Entry]:
    """Return the managedFields an object carries."""
    if obj is None:
        return []
    return (obj.get("metadata") or {}).get("managedFields") or []


def decode(entries: Sequence[Entry], *, trusted: bool) -> Managed:
    """Read entries; those of the server's own objects are trusted to be canonical."""
    managed: Managed = {}
    for index, entry in enumerate(entries):
        if not trusted:
            _check_entry(index, entry)
        fields = entry.get("fieldsV1") or {}
        if not trusted:
            try:
                fields = FieldSet.parse(fields).tree
            except FieldSetError as error:
                raise ManagedFieldsError(
                    f"error decoding set from entry {index}: {error}"
                ) from None
        version, operation = entry["apiVersion"], entry["operation"]
        owner = Owner(
            entry.get("manager", ""),
            operation,
            "" if operation == "Apply" else version,
            entry.get("subresource", ""),
        )
        managed[owner] = Holding(fields, version, entry.get("time") or "")
    return managed


def _check_entry(index: int, entry: Entry) -> None:
    if entry.get("operation") not in ("Apply", "Update"):
        raise ManagedFieldsError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise ManagedFieldsError("apiVersion must not be empty")
    kind = entry.get("fieldsType")
    if not kind:
        raise ManagedFieldsError(f"missing fieldsType in managed fields entry {index}")
    if kind != "FieldsV1":
        raise ManagedFieldsError(f'invalid fieldsType "{kind}" in managed fields entry {index}')


def encode(managed: Managed, before: Sequence[Entry] = ()) -> list[Entry]:
    """Write entries: appliers first, then by time and name.

    Of those that were read from `before` and did not change, the entry itself is taken again.
    """
    ordered = sorted(managed.items(), key=_order) if len(managed) > 1 else managed.items()
    known = {id(entry.get("fieldsV1")): entry for entry in before}
    return [
        _same(owner, holding, known.get(id(holding.fields))) or _entry(owner, holding)
        for owner, holding in ordered
    ]


def _order(item: tuple[Owner, Holding]) -> tuple[str, str, str, str, str]:
    owner, holding = item
    return owner.operation, holding.time, owner.manager, holding.api_version, owner.subresource


def _same(owner: Owner, holding: Holding, entry: Entry | None) -> Entry | None:
    """Return an entry with the same fields if it is as it would be written."""
    if entry is None or entry.get("time", "") != holding.time:
        return None
    stored = (entry.get("manager", ""), entry["operation"], entry.get("subresource", ""))
    now = (owner.manager, owner.operation, owner.subresource)
    return entry if stored == now and entry["apiVersion"] == holding.api_version else None


def _entry(owner: Owner, holding: Holding) -> Entry:
    entry: Entry = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": holding.api_version,
    }
    if holding.time:
        entry["time"] = holding.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = holding.fields if holding.is_ordered else in_order(holding.fields)
    if owner.subresource:
        entry["subresource"] = owner.subresource
    return entry


def settle_times(old: Obj, new: Obj) -> Obj:
    """Undo a change of times where nothing else changed, so that nothing has to be stored.

    Runs last, on the object as it would be stored: defaulting and strategies may have undone what
    the client wanted to change.
    """
    before, after = entries_of(old), entries_of(new)
    if not after or before == after or len(before) != len(after):
        return new
    # By time alone entries change places; only their content counts.
    known = [_timeless(entry) for entry in before]
    if any(_timeless(entry) not in known for entry in after):
        return new
    settled = {**new, "metadata": {**new["metadata"], "managedFields": before}}
    return settled if settled == old else new


def _timeless(entry: Entry) -> Entry:
    return {name: value for name, value in entry.items() if name != "time"}
