"""JSON Patch (RFC 6902): a list of operations on places in a document.

The document that comes in is never changed: the containers on the way to a place are copied once,
by the first operation on it, and shared otherwise. The neighbour merge_patch.py is the
simpler format.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from sully.machinery.patch.errors import (
    MAX_DEPTH,
    FailedPatchError,
    MalformedPatchError,
    TooManyOperationsError,
    TooManyValuesError,
    check_depth,
)
from sully.machinery.patch.merge_patch import go_kind
from sully.machinery.serialization.codec import (
    MAX_VALUES,
    copy,
    count_values,
    has_more_values,
    to_json,
)

MAX_OPERATIONS = 10_000
# `copy` can double a document with every operation; this bounds what all copies add together.
MAX_COPIED_BYTES = 3 * 1024 * 1024

_INDEX = re.compile(r"[+-]?[0-9]{1,9}")

Change = Callable[[Any, str, Any], None]  # changes a container at its last token


def apply_json_patch(document: Any, operations: Any) -> Any:
    """Return the document after all operations, or raise and have done nothing."""
    operations = [] if operations is None else operations
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
    patched = _Patched(document)
    for operation in operations:
        patched.run(operation or {})
    if has_more_values(patched.document, MAX_VALUES):
        # Copies of a list multiply what it holds.
        raise TooManyValuesError(f"the patched object has more than {MAX_VALUES} values")
    # Moves can stack what was flat.
    check_depth(patched.document)
    return patched.document


class _Patched:
    """A document on its way through a patch."""

    def __init__(self, document: Any) -> None:
        self.document = document
        # Containers that were copied here, and so may be changed; by identity.
        self._ours: dict[int, Any] = {}
        self._copied = 0
        self._copied_values = 0

    def run(self, operation: dict[str, Any]) -> None:
        """Carry out one operation; what it lacks is read when it is needed, as in Kubernetes."""
        match operation.get("op"):
            case "add":
                self._put(_tokens(operation, "path"), _add, operation.get("value"))
            case "remove":
                self._put(_tokens(operation, "path"), _remove, None)
            case "replace":
                self._replace(operation)
            case "move":
                self._move(operation)
            case "copy":
                value = self._copy(self._get(_tokens(operation, "from")))
                self._put(_tokens(operation, "path"), _add, value)
            case "test":
                path = _path(operation, "path")
                value = self._get(_tokens(operation, "path")) if path else self.document
                if not same_json(value, operation.get("value")):
                    raise FailedPatchError("a tested value differs")
            case other:
                raise FailedPatchError(f"Unexpected kind: {other}")

    def _replace(self, operation: dict[str, Any]) -> None:
        """Replace a value; one that an object does not have is added."""
        if _path(operation, "path"):
            self._put(_tokens(operation, "path"), _set, operation.get("value"))
            return
        if not isinstance(operation.get("value"), dict):
            raise FailedPatchError("an object cannot be replaced by anything else")
        self.document = operation["value"]

    def _get(self, tokens: list[str]) -> Any:
        """Return a value, None for one that an object does not have."""
        container = _walk(self.document, tokens[:-1])
        if isinstance(container, dict):
            return container.get(tokens[-1])
        return container[_position(container, tokens[-1])]

    def _copy(self, value: Any) -> Any:
        """Copy a value whole, so that no container has two places."""
        self._copied_values += count_values(value, MAX_VALUES)
        if self._copied_values > MAX_VALUES:
            raise TooManyValuesError(f"the copies of the patch have more than {MAX_VALUES} values")
        check_depth(value)
        self._copied += len(to_json(value))
        if self._copied > MAX_COPIED_BYTES:
            raise FailedPatchError(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied}, exceeding the limit {MAX_COPIED_BYTES}"
            )
        return copy(value)

    def _move(self, operation: dict[str, Any]) -> None:
        source = _tokens(operation, "from")
        value = self._get(source)
        self._put(source, _remove, None)
        self._put(_tokens(operation, "path"), _add, value)

    def _put(self, tokens: list[str], change: Change, value: Any) -> None:
        """Change the container that holds the last token."""
        container = self.document = self._own(self.document)
        for token in tokens[:-1]:
            inner = self._own(_walk(container, (token,)))
            key = token if isinstance(container, dict) else _position(container, token)
            container[key] = inner
            container = inner
        change(container, tokens[-1], value)

    def _own(self, container: Any) -> Any:
        """Return a container that may be changed; others than containers as they are."""
        if id(container) in self._ours or not isinstance(container, dict | list):
            return container
        copied = container.copy()
        self._ours[id(copied)] = copied
        return copied


def _check_shape(operation: Any) -> None:
    if operation is None:
        return
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


def unknown_fields(operations: Any) -> tuple[str, ...]:
    """Return the paths of what the operations of a patch have and the format does not."""
    return tuple(
        f"[{index}].{name}"
        for index, operation in enumerate(operations if isinstance(operations, list) else ())
        for name in (operation if isinstance(operation, dict) else ())
        if name not in ("op", "path", "from", "value")
    )


def _path(operation: dict[str, Any], name: str) -> str:
    pointer = operation.get(name)
    if pointer is None:
        raise FailedPatchError(f"operation has no {name!r}")
    return str(pointer)


def _tokens(operation: dict[str, Any], name: str) -> list[str]:
    """Split a path; what is before its first slash does not count."""
    parts = _path(operation, name).split("/")[1:]
    if not parts:
        raise FailedPatchError("the whole object has no container")
    if len(parts) > MAX_DEPTH:
        raise FailedPatchError(f"a path is longer than {MAX_DEPTH} steps")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def _walk(document: Any, tokens: Sequence[str]) -> Any:
    """Return the container at a path."""
    for token in tokens:
        if isinstance(document, dict):
            document = document.get(token)
        else:
            document = document[_position(document, token)]
        if not isinstance(document, dict | list):
            raise FailedPatchError(f"there is no {token!r} on the way")
    return document


def _position(items: Any, token: str, *, end: int = 0) -> int:
    """Read a list index, which may count from the end; `end` is 1 where one more place counts."""
    if not isinstance(items, list) or not _INDEX.fullmatch(token):
        raise FailedPatchError(f"{token!r} is not an index")
    size = len(items) + end
    index = int(token) + (size if token.startswith("-") else 0)
    if not 0 <= index < size:
        raise FailedPatchError(f"index {token} is out of range")
    return index


def _add(container: Any, token: str, value: Any) -> None:
    if isinstance(container, dict):
        container[token] = value
    else:
        at = len(container) if token == "-" else _position(container, token, end=1)
        container.insert(at, value)


def _set(container: Any, token: str, value: Any) -> None:
    container[token if isinstance(container, dict) else _position(container, token)] = value


def _remove(container: Any, token: str, _: Any) -> None:
    if isinstance(container, dict) and token not in container:
        raise FailedPatchError(f"there is no {token!r} to remove")
    del container[token if isinstance(container, dict) else _position(container, token)]


def same_json(left: Any, right: Any) -> bool:
    """Report whether two documents are equal as JSON: numbers by value, true is not 1."""
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
