"""Strategic merge patch: a merge patch that knows which lists merge, and by what key.

This is what `kubectl patch`, `edit` and client-side `apply` send. Besides values a patch carries
directives: `$patch` on a map or list item, `$retainKeys` on a map, and beside a list
`$deleteFromPrimitiveList/name` and `$setElementOrder/name`. Texts and the order of results are
Kubernetes'; listorder.py has the order.
"""

from typing import Any

from sully.machinery.patch.errors import (
    FailedPatchError,
    MalformedPatchError,
    PatchError,
    UnmergeablePatchError,
    check_depth,
)
from sully.machinery.patch.gotext import plain, type_name
from sully.machinery.patch.listorder import (
    check_order,
    has_directive,
    in_patch_order,
    merge_key_of,
    positions,
    token,
)
from sully.machinery.patch.merge_patch import go_kind
from sully.machinery.schema import Field, ListOf, MapOf, ObjectType, Type

Obj = dict[str, Any]

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList"
SET_ORDER = "$setElementOrder"


def apply_strategic_merge_patch(document: Obj, patch: Any, schema: ObjectType) -> Obj:
    """Return the patched document; parts that do not change are shared with the old one."""
    patch = {} if patch is None else patch
    if not isinstance(patch, dict):
        raise MalformedPatchError(
            f"json: cannot unmarshal {go_kind(patch)} "
            "into Go value of type map[string]interface {}"
        )
    check_depth(patch)
    return _merge_map(document, patch, schema)


def _merge_map(original: Obj, patch: Obj, kind: Type | None) -> Obj:
    if DIRECTIVE in patch:
        return _directed(patch)
    result = _retain(original, patch)
    done = {RETAIN_KEYS}
    for key, order in patch.items():
        if key.startswith(SET_ORDER):
            name = _listed_name(key, SET_ORDER)
            done.update((key, name))
            _merge_ordered(result, patch, name, order, kind)
    for key, value in patch.items():
        if key in done:
            continue
        if key.startswith(DELETE_FROM):
            _delete_from(result, _listed_name(key, DELETE_FROM), value)
        elif value is None or (has_directive(value) and not isinstance(result.get(key), dict)):
            result.pop(key, None)
        else:
            result[key] = _merge_value(result.get(key), value, _field(kind, key), _below(kind, key))
    return result


def _directed(patch: Obj) -> Obj:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != DIRECTIVE}
    if directive == "delete":
        return {}
    raise UnmergeablePatchError(f"unknown patch type: {plain(directive)} in map: {plain(patch)}")


def _retain(original: Obj, patch: Obj) -> Obj:
    """Copy the original, without the keys that a list of keys to keep leaves out."""
    if RETAIN_KEYS not in patch:
        return dict(original)
    keep = patch[RETAIN_KEYS]
    if not isinstance(keep, list):
        raise _bad_format("retainKeys")
    retained = {name for name in keep if isinstance(name, str)}
    for name, value in patch.items():
        is_list_directive = name.startswith((DELETE_FROM, SET_ORDER))
        if (
            name != RETAIN_KEYS
            and value is not None
            and not is_list_directive
            and name not in retained
        ):
            raise _bad_format("retainKeys")
    return {name: value for name, value in original.items() if name in retained}


def _listed_name(key: str, directive: str) -> str:
    prefix, slash, name = key.partition("/")
    if prefix != directive or not slash:
        raise _bad_format(_LISTS[directive])
    return name


_LISTS = {DELETE_FROM: "primitive list", SET_ORDER: "setElementOrder list"}


def _bad_format(what: str) -> MalformedPatchError:
    return MalformedPatchError(f"invalid patch format of {what}")


def _merge_value(original: Any, value: Any, field: Field | None, kind: Type | None) -> Any:
    if isinstance(value, dict):
        if isinstance(original, dict) and field is not None and field.replace:
            return value
        if isinstance(original, dict):
            return _merge_map(original, value, kind)
        return _plain_value(value)
    if isinstance(value, list):
        if isinstance(original, list) and field is not None and field.merge:
            return _merge_list(original, value, field, kind)
        # A list that is replaced is taken as it is, with directives and all.
        return value if isinstance(original, list) else _plain_value(value)
    return value


def _plain_value(value: Any) -> Any:
    """Return a value nothing is there to merge with: without nulls and directives."""
    if isinstance(value, dict):
        return {
            name: _plain_value(item)
            for name, item in value.items()
            if item is not None
            and not has_directive(item)
            and not name.startswith((DIRECTIVE, RETAIN_KEYS, *_LISTS))
        }
    if isinstance(value, list):
        return [_plain_value(item) for item in value if not has_directive(item)]
    return value


def merged_patch(original: Any, patch: Any) -> Any:
    """Return a patch as errors quote it: without nulls where nothing is there to merge with."""
    if isinstance(patch, dict) and isinstance(original, dict):
        return {name: merged_patch(original.get(name), item) for name, item in patch.items()}
    if isinstance(patch, list) and isinstance(original, list):
        return patch
    return _without_nulls(patch)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _merge_list(
    original: list[Any], patch: list[Any], field: Field, kind: Type | None
) -> list[Any]:
    """Merge two lists with patchStrategy merge."""
    if not original and not patch:
        return original
    if not _holds_maps(original, patch):
        merged = list(original)
        known = {token(item) for item in original}
        for item in patch:
            if token(item) not in known:
                known.add(token(item))
                merged.append(item)
        return in_patch_order(merged, patch, original, "")
    if not field.merge_key:
        raise UnmergeablePatchError("cannot merge lists without merge key for type map")
    original, patch = _special_items(original, patch, field.merge_key)
    merged = _merge_items(original, patch, field.merge_key, kind)
    return in_patch_order(merged, patch, original, field.merge_key)


def _holds_maps(*lists: list[Any]) -> bool:
    kinds = {type_name(item) for items in lists for item in items}
    if "[]interface {}" in kinds:
        # Kubernetes keeps this one to itself, behind the general text.
        raise FailedPatchError("lists of lists are not supported")
    if len(kinds) > 1 and "map[string]interface {}" in kinds:
        raise UnmergeablePatchError(f"list element types are not identical: {plain(list(lists))}")
    return "map[string]interface {}" in kinds


def _special_items(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Carry out the directives among list items; return what is left to merge."""
    rest: list[Any] = []
    replaces = False
    deletions = set()
    for item in patch:
        if DIRECTIVE not in item:
            rest.append(item)
            continue
        directive = item[DIRECTIVE]
        if directive == "delete":
            deletions.add(token(merge_key_of(item, key)))
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise UnmergeablePatchError("merging lists cannot yet be specified in the patch")
        else:
            raise UnmergeablePatchError(
                f"unknown patch type: {plain(directive)} in map: {plain(item)}"
            )
    left = [known for known in original if token(known.get(key)) not in deletions]
    return (rest, []) if replaces else (left, rest)


def _merge_items(original: list[Any], patch: list[Any], key: str, kind: Type | None) -> list[Any]:
    merged = list(original)
    inner = kind.item if isinstance(kind, ListOf) else None
    places = positions(merged, key)
    for item in patch:
        name = token(merge_key_of(item, key))
        at = places.get(name)
        if at is None:
            places[name] = len(merged)
            merged.append(_plain_value(item))
        else:
            merged[at] = _merge_map(merged[at], item, inner)
    return merged


def _merge_ordered(result: Obj, patch: Obj, name: str, order: Any, kind: Type | None) -> None:
    """Merge one list and put it in the order the patch asks for."""
    if not isinstance(order, list):
        raise _bad_type(order)
    field = _field(kind, name)
    if field is None and isinstance(kind, ObjectType):
        raise UnmergeablePatchError(
            f'unable to find api field in struct {kind.name} for the json field "{name}"'
        )
    key = field.merge_key if field is not None else ""
    original, patch_list = result.get(name), patch.get(name)
    for value in (original, patch_list):
        if value is not None and not isinstance(value, list):
            raise _bad_type(value)
    if patch_list is None and (original is None or name in patch):
        result.pop(name, None)
        return
    check_order(patch_list or [], order, key)
    merged: list[Any] = original or []
    if patch_list is not None:
        merged = _merge_value(original, patch_list, field, _below(kind, name))
    result[name] = in_patch_order(merged, order, original or [], key)


def _bad_type(value: Any) -> PatchError:
    return UnmergeablePatchError(f"expected a []interface {{}}, but received a {type_name(value)}")


def _delete_from(result: Obj, name: str, deletions: Any) -> None:
    """Remove values from a list of scalars."""
    known = result.get(name)
    if isinstance(known, list) and isinstance(deletions, list):
        tokens = {token(value) for value in deletions}
        result[name] = [value for value in known if token(value) not in tokens]


def _field(kind: Type | None, name: str) -> Field | None:
    return kind.fields.get(name) if isinstance(kind, ObjectType) else None


def _below(kind: Type | None, name: str) -> Type | None:
    if isinstance(kind, MapOf):
        return kind.value
    field = _field(kind, name)
    return field.type if field is not None else None
