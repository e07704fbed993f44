"""Taking out what an applier gave up: what it applied before, does not name now, and shares with
nobody.

Ownership may be recorded in another version of the API than the one applied now; each step
looks at the object as the version of the record shows it. Neighbour: apply.py.
"""

from typing import Any

from sully.machinery.patch.merging import remove
from sully.machinery.patch.ownership.entries import Holding, Managed
from sully.machinery.patch.ownership.fieldset import Tree, difference, intersection, union
from sully.machinery.patch.ownership.managed import Write, in_version
from sully.machinery.patch.ownership.typed import to_field_set, with_named_fields
from sully.machinery.patch.shapes import shape_of
from sully.machinery.schema import ObjectType

Obj = dict[str, Any]


def prune(merged: Obj, last: Holding, managed: Managed, write: Write) -> Obj:
    """Return the merged object without what its applier gave up.

    `last` is what the applier owned before; `managed` already has what it owns now.
    """
    version = last.api_version
    now = managed[write.owner("Apply")]
    if version == write.api_version and not difference(last.fields, now.fields):
        return merged
    converted = in_version(merged, write.schema, write.api_version, version, write)
    if converted is None:
        return merged
    seen, schema = converted
    without = remove(seen, _named(last.fields, schema), schema)
    without = _add_back_owned(seen, without, schema, version, managed, write)
    # Nothing else may go than what the applier owned.
    removed = difference(_fields(seen, schema), _fields(without, schema))
    removed = intersection(removed, _named(last.fields, schema))
    if not removed:
        return merged
    converted_back = in_version(
        remove(seen, removed, schema), schema, version, write.api_version, write
    )
    return merged if converted_back is None else converted_back[0]


def _add_back_owned(
    seen: Obj, without: Obj, schema: ObjectType, version: str, managed: Managed, write: Write
) -> Obj:
    """Restore what a manager owns, including the applier by its new configuration."""
    owned: dict[str, Tree] = {}
    for holding in managed.values():
        owned[holding.api_version] = union(owned.get(holding.api_version, {}), holding.fields)
    # The version at hand first: others may need what it puts back to be converted at all.
    for owner_version in sorted(owned, key=lambda name: (name != version, name)):
        full = in_version(seen, schema, version, owner_version, write)
        part = in_version(without, schema, version, owner_version, write)
        if full is None or part is None:
            continue
        retained = union(_fields(*part), _named(owned[owner_version], full[1]))
        rest = remove(full[0], difference(_fields(*full), retained), full[1])
        converted_back = in_version(rest, full[1], owner_version, version, write)
        without = without if converted_back is None else converted_back[0]
    return without


def _fields(obj: Obj, schema: ObjectType) -> Tree:
    return _named(to_field_set(obj, schema).tree, schema)


def _named(fields: Tree, schema: ObjectType) -> Tree:
    return with_named_fields(fields, shape_of(schema))
