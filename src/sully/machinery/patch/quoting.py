"""The text of a patched object as errors quote it: the order of keys shows where the patch went.

Kubernetes patches the bytes of an object and reads only the parts it has to. Parts that no
operation entered stay as they were written, in the order of Go's structs (schema.py);
containers on the way to a change become maps, which Go writes sorted; what a JSON patch brings
stays as it was sent. The formats are json_patch.py and merge_patch.py.
"""

from typing import Any

from sully.machinery.schema import ListOf, MapOf, ObjectType, Type
from sully.machinery.serialization.gotext import compact_json

_Entered = dict[str, Any]
"""Containers that a patch entered, by the steps to them; at the end of a way a mark."""
_SENT = "as sent"
_READ = "read through and through"


def merge_patched(obj: Any, kind: ObjectType, patch: Any) -> str:
    """Return the text of the result of a merge patch."""
    return compact_json(_arrange(obj, kind, _merged_ways(patch)))


def json_patched(obj: Any, kind: ObjectType, operations: Any) -> str:
    """Return the text of the result of a JSON patch."""
    entered: _Entered = {}
    for operation in operations:
        for name in ("from", "path"):
            if isinstance(pointer := operation.get(name), str):
                _enter(entered, pointer, _READ if operation["op"] == "test" else _SENT)
    return compact_json(_arrange(obj, kind, entered))


def in_struct_order(obj: Any, kind: ObjectType) -> Any:
    """Return an object with its keys in the order of Go's structs."""
    return _arrange(obj, kind, None)


def _merged_ways(patch: Any) -> Any:
    """Return what a merge patch changes; what it replaces is searched for nulls."""
    if not isinstance(patch, dict):
        return _READ
    return {name: _merged_ways(value) for name, value in patch.items()}


def _enter(entered: _Entered, pointer: str, mark: str) -> None:
    *way, last = pointer.split("/")[1:] or [""]
    for step in way:
        inner = entered.setdefault(_plain(step), {})
        if inner is _READ:
            return
        if inner is _SENT:
            inner = entered[_plain(step)] = {}
        entered = inner
    entered.setdefault(_plain(last), mark)


def _plain(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _arrange(value: Any, kind: Type | None, entered: Any) -> Any:
    """Return an equal value with its keys in order; `entered` is None where no patch was."""
    if entered is _SENT:
        return value
    if isinstance(value, list):
        item = kind.item if isinstance(kind, ListOf) else None
        return [_arrange(below, item, _inside(entered, str(at))) for at, below in enumerate(value)]
    if not isinstance(value, dict):
        return value
    return {
        name: _arrange(value[name], _type_of(kind, name), _inside(entered, name))
        for name in _names(value, kind, entered)
    }


def _names(value: dict[str, Any], kind: Type | None, entered: Any) -> list[str]:
    if entered is None and isinstance(kind, ObjectType) and (known := kind.go_order):
        ranks = {name: rank for rank, name in enumerate(known)}
        return sorted(value, key=lambda name: (ranks.get(name, len(ranks)), name))
    if entered is None and not isinstance(kind, ObjectType | MapOf):
        return list(value)  # any JSON, kept as it came
    return sorted(value)


def _inside(entered: Any, step: str) -> Any:
    return entered.get(step) if isinstance(entered, dict) else entered


def _type_of(kind: Type | None, name: str) -> Type | None:
    if isinstance(kind, MapOf):
        return kind.value
    if isinstance(kind, ObjectType) and name in kind.fields:
        return kind.fields[name].type
    return None
