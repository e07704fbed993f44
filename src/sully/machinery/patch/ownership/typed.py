"""Which fields an object has, and which differ between two objects.

Objects are plain dicts in the form serialization/decode.py gives them; the type shows where
ownership is field by field and where it is all or nothing. Sets are the trees of fieldset.py.
Kubernetes' rules: a field that was added or removed counts with everything below it, and so does
the map, list or struct itself; a changed value counts alone; an empty map or list counts as one
value.
"""

from typing import Any

import msgspec

from sully.machinery.memo import LONGEST_VALUE, Memo
from sully.machinery.patch.json_patch import same_json
from sully.machinery.patch.ownership.fieldset import SELF, FieldSet, Tree, union
from sully.machinery.patch.shapes import ITEMS, MAP, SET, STRUCT, Shape, deduced, element, shape_of
from sully.machinery.schema import ObjectType
from sully.machinery.serialization.codec import to_json

Obj = dict[str, Any]
_MAX_SPECS = 128


class Comparison(msgspec.Struct):
    """What lies between two objects, as trees of fields."""

    added: Tree
    modified: Tree
    removed: Tree

    @property
    def is_same(self) -> bool:
        """Report whether nothing differs."""
        return not (self.added or self.modified or self.removed)

    @property
    def written(self) -> Tree:
        """Return what is new or changed."""
        return union(self.modified, self.added)


_SPECS: Memo[tuple[ObjectType, bytes], Comparison] = Memo(_MAX_SPECS)


def compare(old: Obj, new: Obj, schema: ObjectType) -> Comparison:
    """Find what was added, modified and removed."""
    return compare_shapes(old, new, shape_of(schema))


def compare_shapes(old: Obj, new: Obj, shape: Shape) -> Comparison:
    """Find what differs between two objects of a compiled type."""
    comparison = Comparison({}, {}, {})
    _compare_fields(old, new, shape, comparison)
    return comparison


def compare_new(empty: Obj, new: Obj, schema: ObjectType) -> Comparison:
    """Find what a new object has and an empty one has not.

    The specs of one template are equal, by thousands: such a one is compared once.
    """
    shape, spec = shape_of(schema), new.get("spec")
    if not spec or "spec" not in empty:
        return compare_shapes(empty, new, shape)
    before = {"spec": empty["spec"]}
    comparison = compare_shapes(empty, new | before, shape)
    key = (schema, to_json(spec))
    known = _SPECS.get(key)
    if known is None:
        known = compare_shapes(before, {"spec": spec}, shape)
        if len(key[1]) <= LONGEST_VALUE:
            _SPECS.keep(key, known)
    comparison.added |= known.added
    comparison.modified |= known.modified
    comparison.removed |= known.removed
    return comparison


def is_same(old: Any, new: Any) -> bool:
    """Report whether two equal values are also encoded alike: to Python True and 1 are equal.

    Values whose fields are in another order may differ: a walk decides.
    """
    return to_json(old) == to_json(new)


def to_field_set(obj: Obj, schema: ObjectType) -> FieldSet:
    """Return the fields that an applied configuration sets."""
    tree: Tree = {}
    _collect(obj, shape_of(schema), tree)
    return FieldSet(tree)


def _compare(old: Any, new: Any, shape: Shape, at: str, out: Comparison) -> None:
    """Compare two values that are both there and note what differs under `at`."""
    if old == new and (not shape.mixed or is_same(old, new)):
        return
    shape = deduced(shape, old, new)
    if shape.leaf or not (old or new):
        if old != new or (shape.raw and not same_json(old, new)):
            out.modified[at] = {}
        return
    comparison = Comparison({}, {}, {})
    if shape.kind == STRUCT or shape.kind == MAP:
        _compare_fields(old or {}, new or {}, shape, comparison)
    else:
        _compare_items(old or [], new or [], shape, comparison)
    if comparison.added:
        out.added[at] = comparison.added
    if comparison.modified:
        out.modified[at] = comparison.modified
    if comparison.removed:
        out.removed[at] = comparison.removed


def _compare_fields(old: Obj, new: Obj, shape: Shape, out: Comparison) -> None:
    fields = shape.fields if shape.kind == STRUCT else None
    for name, value in new.items():
        if fields is None:
            at, below = f"f:{name}", shape.inner
        elif name in fields:
            at, below = fields[name]
        elif shape.rest is not None:
            at, below = f"f:{name}", shape.rest
        else:
            continue
        if name not in old:
            out.added[at] = {} if below.leaf else _whole(value, below)
            continue
        known = old[name]
        if known is value or (known == value and (not below.mixed or is_same(known, value))):
            continue
        if not below.leaf:
            _compare(known, value, below, at, out)
        elif known != value or (below.raw and not same_json(known, value)):
            out.modified[at] = {}
    for name, value in old.items():
        if name not in new:
            _note_removed(name, value, shape, out)


def _note_removed(name: str, value: Any, shape: Shape, out: Comparison) -> None:
    below = shape.below(name)
    if below is not None:
        out.removed[f"f:{name}"] = _whole(value, below)


def _compare_items(old: list[Any], new: list[Any], shape: Shape, out: Comparison) -> None:
    before, after = _by_element(old, shape), _by_element(new, shape)
    for at in before | after:
        old_items, new_items = before.get(at, ()), after.get(at, ())
        if len(old_items) <= 1 and len(new_items) <= 1:
            _compare_item(old_items, new_items, shape.inner, at, out)
        elif len(old_items) > 1 and len(new_items) > 1:
            # Items that share a name are owned together, as one value.
            if not same_json(old_items, new_items):
                out.modified[at] = {}
        elif len(old_items) > 1:
            if new_items:
                out.added[at] = _whole(new_items[0], shape.inner)
            out.removed[at] = {}
        else:
            if old_items:
                out.removed[at] = _whole(old_items[0], shape.inner)
            out.added[at] = {}


def _compare_item(old_items: Any, new_items: Any, inner: Shape, at: str, out: Comparison) -> None:
    if not old_items:
        out.added[at] = _whole(new_items[0], inner)
    elif not new_items:
        out.removed[at] = _whole(old_items[0], inner)
    else:
        _compare(old_items[0], new_items[0], inner, at, out)


def _by_element(items: list[Any], shape: Shape) -> dict[str, list[Any]]:
    by_element: dict[str, list[Any]] = {}
    for item in items:
        by_element.setdefault(element(shape, item), []).append(item)
    return by_element


def _whole(value: Any, shape: Shape) -> Tree:
    """Return the node of a value that is there on one side only: itself and all below."""
    shape = deduced(shape, value)
    if shape.leaf or not value:
        return {}
    tree: Tree = {SELF: {}}
    if shape.kind == STRUCT:
        fields = shape.fields
        for name, below in value.items():
            known = fields.get(name)
            if known is not None:
                tree[known[0]] = {} if known[1].leaf else _whole(below, known[1])
            elif shape.rest is not None:
                tree[f"f:{name}"] = _whole(below, shape.rest)
    elif shape.kind == MAP:
        inner = shape.inner
        for name, below in value.items():
            tree[f"f:{name}"] = _whole(below, inner)
    else:
        for at, items in _by_element(value, shape).items():
            # A repeated element is only recorded, without its fields.
            tree[at] = _whole(items[0], shape.inner) if len(items) == 1 else {}
    return tree


def _collect(value: Any, shape: Shape, tree: Tree) -> None:
    """Add the fields below one value to a tree, as apply counts them."""
    if not value:
        return
    if shape.kind in (SET, ITEMS):
        for at, items in _by_element(value, shape).items():
            below: Tree = {}
            inner = deduced(shape.inner, items[0])
            if len(items) == 1 and not inner.leaf:
                _collect(items[0], inner, below)
            tree[at] = {SELF: {}, **below} if below else below
        return
    for name, field_value in value.items():
        below_name = shape.below(name)
        if below_name is not None:
            _collect_field(name, field_value, deduced(below_name, field_value), shape, tree)


def _collect_field(name: str, field_value: Any, inner: Shape, shape: Shape, tree: Tree) -> None:
    below: Tree = {}
    if not inner.leaf:
        _collect(field_value, inner, below)
    # Entries of a map are members themselves; fields of a struct only as leaves.
    is_entry = shape.kind == MAP or name not in shape.fields
    if below:
        tree[f"f:{name}"] = {SELF: {}, **below} if is_entry else below
    elif inner.leaf or field_value is None or field_value == {} or is_entry:
        tree[f"f:{name}"] = {}


def with_named_fields(tree: Tree, shape: Shape | None) -> Tree:
    """Make every struct field on the way to a member a member too, as removal needs it."""
    result: Tree = {}
    for at, node in tree.items():
        if at == SELF or not node:
            result[at] = node
            continue
        inner = _shape_at(at, shape)
        below = with_named_fields(node, inner)
        named = inner is not None and shape is not None and shape.kind == STRUCT
        result[at] = {SELF: {}, **below} if named and SELF not in below else below
    return result


def _shape_at(at: str, shape: Shape | None) -> Shape | None:
    if shape is None or shape.leaf:
        return None
    if at.startswith("f:"):
        return shape.below(at[2:])
    return shape.item if shape.kind == ITEMS and at.startswith("k:") else None
