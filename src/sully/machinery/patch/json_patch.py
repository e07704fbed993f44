"""JSON Patch (RFC 6902): a list of operations on places in a document.

The document that comes in is never changed: the containers on the way to a place are copied once,
by the first operation that goes there, and shared otherwise. The neighbour merge_patch.py is the
simpler format.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from sully.machinery.codec import MAX_VALUES, copy, count_values, has_more_values, to_json
from sully.machinery.patch.errors import (
    MAX_DEPTH,
    FailedPatchError,
    MalformedPatchError,
    TooManyOperationsError,
    TooManyValuesError,
    check_depth,
)
from sully.machinery.patch.merge_patch import go_kind

MAX_OPERATIONS = 10_000
# `copy` can double a document with every operation; this bounds what all copies add together.
MAX_COPIED_BYTES = 3 * 1024 * 1024

_INDEX = re.compile(r"0|[1-9][0-9]*")
_BAD_ESCAPE = re.compile(r"~(?![01])")

Change = Callable[[Any, str, Any], None]  # changes a container at its last token


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
    patched = _Patched(document)
    for operation in operations:
        patched.run(operation)
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
        """Carry out one operation."""
        if operation.get("op") == "copy":
            # Before the path is looked at, as Kubernetes.
            value = self._copy(_get(self.document, _tokens(operation, "from")))
            self._put(_tokens(operation, "path"), _add, value)
            return
        path = _tokens(operation, "path")
        match operation.get("op"):
            case "add":
                self._put(path, _add, _value(operation))
            case "remove":
                self._put(path, _remove, None)
            case "replace":
                self._put(path, _replace, _value(operation))
            case "move":
                self._move(_tokens(operation, "from"), path)
            case "test":
                if not same_json(_get(self.document, path), _value(operation)):
                    raise FailedPatchError("a tested value differs")
            case other:
                raise FailedPatchError(f"Unexpected kind: {other}")

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

    def _move(self, source: list[str], target: list[str]) -> None:
        if source == target[: len(source)] and len(target) > len(source):
            raise FailedPatchError("a value cannot move into itself")
        value = _get(self.document, source)
        if source != target:
            self._put(source, _remove, None)
            self._put(target, _add, value)

    def _put(self, tokens: list[str], change: Change, value: Any) -> None:
        """Change the container that holds the last token; the empty path is the whole document."""
        if not tokens:
            self.document = value
            return
        container = self.document = self._own(self.document)
        for token in tokens[:-1]:
            inner = self._own(_get(container, (token,)))
            container[token if isinstance(container, dict) else int(token)] = inner
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


def _add(container: Any, token: str, value: Any) -> None:
    if isinstance(container, dict):
        container[token] = value
    elif isinstance(container, list):
        at = len(container) if token == "-" else _position(container, token, end=1)
        container.insert(at, value)
    else:
        raise FailedPatchError(f"{token!r} cannot be added to a scalar")


def _replace(container: Any, token: str, value: Any) -> None:
    _get(container, (token,))
    container[token if isinstance(container, dict) else int(token)] = value


def _remove(container: Any, token: str, _: Any) -> None:
    _get(container, (token,))
    del container[token if isinstance(container, dict) else int(token)]


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
