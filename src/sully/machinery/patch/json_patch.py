"""JSON Patch (RFC 6902): a list of operations on places in a document.

The document is never changed: each operation copies the containers on the way to its place and
shares everything else. The neighbour merge_patch.py is the simpler format.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from sully.machinery.patch.errors import (
    MAX_DEPTH,
    FailedPatchError,
    MalformedPatchError,
    TooManyOperationsError,
    check_depth,
)
from sully.machinery.patch.merge_patch import go_kind

MAX_OPERATIONS = 10_000
# `copy` can double a document with every operation; this bounds what all copies add together.
MAX_COPIED_BYTES = 3 * 1024 * 1024

_INDEX = re.compile(r"0|[1-9][0-9]*")
_BAD_ESCAPE = re.compile(r"~(?![01])")

Change = Callable[[Any, str], Any]  # (container, last token) → the changed container


def apply_json_patch(document: Any, operations: Any) -> Any:
    """Return the document after all operations, or raise and have done nothing."""
    if not isinstance(operations, list):
        raise MalformedPatchError(
            f"error decoding patch: json: cannot unmarshal {go_kind(operations)} "
            "into Go value of type []handlers.jsonPatchOp"
        )
    if len(operations) > MAX_OPERATIONS:
        raise TooManyOperationsError(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
            f"got {len(operations)}"
        )
    for operation in operations:
        _check_shape(operation)
    check_depth(operations)
    document = _run_all(document, operations)
    # Moves can stack what was flat.
    check_depth(document)
    return document


def _run_all(document: Any, operations: list[dict[str, Any]]) -> Any:
    copied = 0
    for operation in operations:
        if operation.get("op") == "copy":
            copied += _size(_get(document, _tokens(operation, "from")))
            if copied > MAX_COPIED_BYTES:
                raise FailedPatchError(
                    "Unable to complete the copy, the accumulated size increase of copy is "
                    f"{copied}, exceeding the limit {MAX_COPIED_BYTES}"
                )
        document = _run(document, operation)
    return document


def _check_shape(operation: Any) -> None:
    if not isinstance(operation, dict):
        raise MalformedPatchError(
            f"error decoding patch: json: cannot unmarshal {go_kind(operation)} "
            "into Go value of type handlers.jsonPatchOp"
        )
    for name in ("op", "path", "from"):
        value = operation.get(name)
        if value is not None and not isinstance(value, str):
            raise MalformedPatchError(
                f"error decoding patch: json: cannot unmarshal {go_kind(value)} "
                f"into Go struct field jsonPatchOp.{name} of type string"
            )


def _run(document: Any, operation: dict[str, Any]) -> Any:
    path = _tokens(operation, "path")
    match operation.get("op"):
        case "add":
            return _change(document, path, _adding(_value(operation)), _value(operation))
        case "remove":
            return _change(document, path, _remove, None)
        case "replace":
            return _change(document, path, _replacing(_value(operation)), _value(operation))
        case "move":
            return _move(document, _tokens(operation, "from"), path)
        case "copy":
            value = _get(document, _tokens(operation, "from"))
            return _change(document, path, _adding(value), value)
        case "test":
            return _test(document, path, _value(operation))
        case other:
            raise FailedPatchError(f"Unexpected kind: {other}")


def _tokens(operation: dict[str, Any], name: str) -> list[str]:
    pointer = operation.get(name)
    if pointer is None:
        raise FailedPatchError(f"operation has no {name!r}")
    if pointer == "":
        return []
    if not pointer.startswith("/") or _BAD_ESCAPE.search(pointer):
        raise FailedPatchError(f"{pointer!r} is not a JSON pointer")
    tokens = [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]
    if len(tokens) > MAX_DEPTH:
        raise FailedPatchError(f"{pointer!r} is longer than {MAX_DEPTH} steps")
    return tokens


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise FailedPatchError("operation has no 'value'")
    return operation["value"]


def _get(document: Any, tokens: Sequence[str]) -> Any:
    for token in tokens:
        if isinstance(document, dict) and token in document:
            document = document[token]
        elif isinstance(document, list):
            document = document[_position(document, token)]
        else:
            raise FailedPatchError(f"there is no {token!r} on the way")
    return document


def _position(items: list[Any], token: str, *, end: int = 0) -> int:
    """Read a list index; `end` is 1 where the place after the last item counts too."""
    if not _INDEX.fullmatch(token) or len(token) > 9:
        raise FailedPatchError(f"{token!r} is not an index")
    if int(token) >= len(items) + end:
        raise FailedPatchError(f"index {token} is out of range")
    return int(token)


def _change(document: Any, tokens: list[str], change: Change, whole: Any) -> Any:
    """Change the container that holds the last token; the empty path stands for `whole`."""
    if not tokens:
        return whole
    containers = [document]
    for token in tokens[:-1]:
        containers.append(_get(containers[-1], (token,)))
    changed = change(containers[-1], tokens[-1])
    for container, token in zip(reversed(containers[:-1]), reversed(tokens[:-1]), strict=True):
        if isinstance(container, dict):
            changed = {**container, token: changed}
        else:
            copy = list(container)
            copy[int(token)] = changed
            changed = copy
    return changed


def _adding(value: Any) -> Change:
    def add(container: Any, token: str) -> Any:
        if isinstance(container, dict):
            return {**container, token: value}
        if isinstance(container, list):
            at = len(container) if token == "-" else _position(container, token, end=1)
            return [*container[:at], value, *container[at:]]
        raise FailedPatchError(f"{token!r} cannot be added to a scalar")

    return add


def _replacing(value: Any) -> Change:
    def replace(container: Any, token: str) -> Any:
        _get(container, (token,))
        if isinstance(container, dict):
            return {**container, token: value}
        copy = list(container)
        copy[int(token)] = value
        return copy

    return replace


def _remove(container: Any, token: str) -> Any:
    _get(container, (token,))
    if isinstance(container, dict):
        return {name: value for name, value in container.items() if name != token}
    at = int(token)
    return [*container[:at], *container[at + 1 :]]


def _move(document: Any, source: list[str], target: list[str]) -> Any:
    if source == target[: len(source)] and len(target) > len(source):
        raise FailedPatchError("a value cannot move into itself")
    value = _get(document, source)
    if source == target:
        return document
    return _change(_change(document, source, _remove, None), target, _adding(value), value)


def _test(document: Any, tokens: list[str], value: Any) -> Any:
    if not same_json(_get(document, tokens), value):
        raise FailedPatchError("a tested value differs")
    return document


def same_json(left: Any, right: Any) -> bool:
    """Say whether two documents are equal as JSON: numbers by value, true is not 1."""
    if left is right:
        return True
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            same_json(value, right[name]) for name, value in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


def _size(value: Any) -> int:
    check_depth(value)
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
