"""The order of the items of a merged list after a strategic merge patch.

Three orders meet: the one the patch asks for, the one of its items, and the live one. Items of
the patch keep the patch's order, the others keep theirs, and the two rows are zipped by the live
order; so an item that is new stands before those the server alone knows.
"""

from collections.abc import Hashable
from typing import Any

from sully.machinery.patch.errors import MalformedPatchError, UnmergeablePatchError
from sully.machinery.patch.gotext import plain, type_name
from sully.machinery.serialization.codec import to_json


def in_patch_order(
    merged: list[Any], patch_order: list[Any], live: list[Any], merge_key: str
) -> list[Any]:
    """Order the items of a merged list; an empty merge key compares items by value."""
    patch_positions = _positions(patch_order, merge_key)
    live_at = _positions(live, merge_key)
    named = [(_name(item, merge_key), item) for item in merged]
    ours = sorted(
        (pair for pair in named if pair[0] in patch_positions), key=lambda p: patch_positions[p[0]]
    )
    theirs = [pair for pair in named if pair[0] not in patch_positions]
    result: list[Any] = []
    for name, item in ours:
        while theirs and _is_before(theirs[0][0], name, live_at):
            result.append(theirs.pop(0)[1])
        result.append(item)
    result.extend(item for _, item in theirs)
    return result


def check_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """Reject a patch whose items are in another order than its $setElementOrder."""
    if not order or not patch:
        return
    ordered = iter([_name(item, merge_key) for item in order])
    for item in patch:
        if not has_directive(item) and _name(item, merge_key) not in ordered:
            raise UnmergeablePatchError(
                f"The order in patch list:\n{plain(patch)}\n doesn't match "
                f"$setElementOrder list:\n{plain(order)}\n"
            )


def merge_key_of(item: Any, merge_key: str) -> Any:
    """Return what names an item of a list that merges by key."""
    if not isinstance(item, dict):
        raise UnmergeablePatchError(
            f"expected a map[string]interface {{}}, but received a {type_name(item)}"
        )
    if merge_key not in item:
        raise UnmergeablePatchError(
            f"map: {plain(item)} does not contain declared merge key: {merge_key}"
        )
    return item[merge_key]


def has_directive(item: Any) -> bool:
    """Report whether a list item is an order to the merge instead of a value."""
    return isinstance(item, dict) and "$patch" in item


def positions(items: list[Any], merge_key: str) -> dict[Hashable, int]:
    """Return where the items are that have a merge key; of several with one, the first."""
    positions_by_name: dict[Hashable, int] = {}
    for at, item in enumerate(items):
        if isinstance(item, dict) and merge_key in item:
            positions_by_name.setdefault(token(item[merge_key]), at)
    return positions_by_name


def token(value: Any) -> Hashable:
    """Return a hashable key of a value: patches may be too long for linear search."""
    if isinstance(value, dict | list):
        return to_json(value)
    # True equals 1 in Python, but not in JSON.
    return (type(value) is bool, value)


def _name(item: Any, merge_key: str) -> Any:
    name = merge_key_of(item, merge_key) if merge_key else item
    if isinstance(name, dict | list):
        raise MalformedPatchError("invalid patch format of setElementOrder list")
    return token(name)


def _positions(items: list[Any], merge_key: str) -> dict[Any, int]:
    positions_by_name: dict[Any, int] = {}
    for at, item in enumerate(items):
        positions_by_name.setdefault(_name(item, merge_key), at)
    return positions_by_name


def _is_before(left: Any, right: Any, live_at: dict[Any, int]) -> bool:
    return left in live_at and right in live_at and live_at[left] < live_at[right]
