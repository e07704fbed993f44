"""Laying an applied configuration over an object, and taking fields out of one.

The rules are the table's: structs and maps merge by name, lists with keys by their keys, sets by
value, everything else is replaced. Neighbours: ownership/typed.py compares fields, apply.py decides
what to merge and what to remove.
"""

from typing import Any

from sully.machinery.patch.ownership.fieldset import Tree, is_member
from sully.machinery.patch.shapes import MAP, SCALAR, STRUCT, Shape, deduced, element, shape_of
from sully.machinery.schema import ObjectType

Obj = dict[str, Any]


def merge(live: Obj, applied: Obj, schema: ObjectType) -> Obj:
    """Return the live object with the applied fields laid over it."""
    merged: Obj = _merge(live, applied, shape_of(schema))
    return merged


def remove(obj: Obj, fields: Tree, schema: ObjectType) -> Obj:
    """Return the object without the members of a set.

    What becomes empty on the way is left as null; decoding the result drops it.
    """
    return _remove(obj, fields, shape_of(schema)) or {}


def _merge(old: Any, new: Any, shape: Shape) -> Any:
    shape = deduced(shape, old, new)
    if shape.leaf or not (old or new):
        return new
    # Null in the applied configuration does not own what is below.
    if not new:
        return old
    if not old:
        return new
    if shape.kind not in (STRUCT, MAP):
        return _merge_items(old, new, shape)
    result = dict(old)
    for name, value in new.items():
        inner = shape.below(name)
        if name in old and inner is not None:
            value = _merge(old[name], value, inner)
        result[name] = value
    return result


def _merge_items(old: list[Any], new: list[Any], shape: Shape) -> list[Any]:
    """Merge two lists by element; the applied order wins among what both have.

    Items only the live list has stay beside their neighbours; new items come where the applied
    list has them.
    """
    old_names = [element(shape, item) for item in old]
    new_names = [element(shape, item) for item in new]
    known = _index(old, old_names)
    applied_items = dict(zip(new_names, new, strict=True))
    shared = [name for name in new_names if name in known]
    result: list[Any] = []
    done: set[str] = set()
    position = turn = left = 0

    while left < len(old) or position < len(new):
        name = old_names[left] if left < len(old) else None
        here = new_names[position] if position < len(new) else None
        awaited = shared[turn] if turn < len(shared) else None
        if name is not None and name not in applied_items:
            result.append(old[left])
            left += 1
            continue
        if name is not None and name != here:
            if here is not None and awaited is not None and name != awaited:
                # The applied list has this item elsewhere.
                left += 1
                continue
            left += name in done
        if here is not None:
            both = here in known
            result.append(
                _merge(known[here], applied_items[here], shape.inner)
                if both
                else applied_items[here]
            )
            done.add(here)
            position += 1
            turn += here == awaited
            left += name == here
    return result


def _index(items: list[Any], names: list[str]) -> dict[str, Any]:
    by_name: dict[str, Any] = {}
    for name, item in zip(names, items, strict=True):
        # Items that share a name cannot be merged with: the applied one replaces them.
        by_name[name] = None if name in by_name else item
    return by_name


def _remove(value: Any, fields: Tree, shape: Shape) -> Any:
    """Return what is left of a value, None when nothing is."""
    shape = deduced(shape, value)
    if shape.leaf:
        # A part of an atomic value cannot be removed, only the whole value.
        return value if shape.kind == SCALAR else None
    if not value:
        return None
    if shape.kind in (STRUCT, MAP):
        return _remove_fields(value, fields, shape) or None
    rest = []
    for item in value:
        node = fields.get(element(shape, item))
        if node is None:
            rest.append(item)
        elif not is_member(node):
            rest.append(_remove(item, node, shape.inner))
    return rest or None


def _remove_fields(value: Obj, fields: Tree, shape: Shape) -> Obj:
    rest: Obj = {}
    for name, field_value in value.items():
        node, inner = fields.get(f"f:{name}"), shape.below(name)
        if node is None or inner is None:
            rest[name] = field_value
        elif not is_member(node):
            rest[name] = _remove(field_value, node, inner)
    return rest
