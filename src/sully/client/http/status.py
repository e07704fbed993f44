"""Converts Status objects to errors.

`sully.machinery.errors` writes them; a foreign server may use reasons and codes that our tree does
not have, and those are kept too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sully.machinery.errors import STRICT_DECODING, ApiError


def to_error(
    status: Mapping[str, Any], *, code: int = 0, headers: Mapping[str, str] | None = None
) -> ApiError:
    """Return the error that a Status describes; `code` is the HTTP status, if there is one."""
    reason = str(status.get("reason") or "")
    error = _class_of(reason, int(status.get("code") or code or 500))
    message = str(status.get("message") or "") or f"the server answered with code {error.code}"
    retry_after = {
        name: text for name, text in (headers or {}).items() if name.lower() == "retry-after"
    }
    result = error(message, details=status.get("details"), headers=retry_after)
    result.strict_errors = _strict_errors(message)
    return result


def _strict_errors(message: str) -> Sequence[str]:
    """Read the unknown and duplicate fields from a message: a Status has them nowhere else.

    For a patch, the message also has the whole object before them.
    """
    fields = message.partition(STRICT_DECODING)[2]
    return (fields,) if fields else ()


def retry_after(error: ApiError) -> float | None:
    """Return Retry-After in seconds, if the server sent it."""
    seconds = next((v for k, v in error.headers.items() if k.lower() == "retry-after"), None)
    if seconds is None:
        seconds = (error.details or {}).get("retryAfterSeconds")
    try:
        return max(float(seconds), 0.0) if seconds is not None else None
    except ValueError:
        # The header may also be a date; no API server sends one.
        return None


@cache
def _class_of(reason: str, code: int) -> type[ApiError]:
    classes = {error.reason: error for error in _tree(ApiError)}
    error_class = classes.get(reason)
    if error_class is None:
        error_class = next((error for error in _tree(ApiError) if error.code == code), ApiError)
    if error_class.code == code and reason in (error_class.reason, ""):
        return error_class
    # The server's own reason and code are kept, on the class that callers recognize.
    return type(error_class.__name__, (error_class,), {"code": code, "reason": reason})


def _tree(root: type[ApiError]) -> Iterator[type[ApiError]]:
    for child in root.__subclasses__():
        if child.__module__ == ApiError.__module__:
            yield child
            yield from _tree(child)
