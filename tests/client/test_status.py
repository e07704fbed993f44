"""Status objects back into errors: all that our server writes, and what others may write."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import pytest

from sully.client.http.status import retry_after, to_error
from sully.machinery import errors
from sully.machinery.errors import ApiError, Conflict, Gone, InternalError, NotFound


def _tree(root: type[ApiError]) -> Iterator[type[ApiError]]:
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            yield child
            yield from _tree(child)


@pytest.mark.parametrize("kind", sorted(_tree(ApiError), key=attrgetter("__name__")))
def test_round_trip(kind: type[ApiError]) -> None:
    made = kind("what happened", details={"name": "a", "causes": [{"field": "x"}]})
    result = to_error(made.to_status())

    assert type(result) is kind
    assert result.to_status() == made.to_status()


FOREIGN = {
    "reason unknown to us": (
        {"reason": "Teapot", "code": 409, "message": "m"},
        Conflict,
        (409, "Teapot", "m"),
    ),
    "known reason, other code": (
        {"reason": "InternalError", "code": 502, "message": "m"},
        InternalError,
        (502, "InternalError", "m"),
    ),
    "no reason": ({"code": 404, "message": "m"}, NotFound, (404, "NotFound", "m")),
    "the general one of a code": ({"code": 410, "message": "m"}, Gone, (410, "Gone", "m")),
    "nothing at all": (
        {},
        InternalError,
        (500, "InternalError", "the server answered with code 500"),
    ),
    "code unknown to us": ({"code": 418, "message": "m"}, ApiError, (418, "", "m")),
}


@pytest.mark.parametrize(("status", "kind", "want"), FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign(status: dict[str, Any], kind: type[ApiError], want: tuple[int, str, str]) -> None:
    error = to_error(status)

    assert isinstance(error, kind)
    assert (error.code, error.reason, error.message) == want


WAITS = {
    "header": ({"retry-after": "3"}, None, 3.0),
    "details": ({}, {"retryAfterSeconds": 7}, 7.0),
    "header first": ({"Retry-After": "3"}, {"retryAfterSeconds": 7}, 3.0),
    "neither": ({"Date": "x"}, {}, None),
    "a date": ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, None, None),
}


@pytest.mark.parametrize(("headers", "details", "want"), WAITS.values(), ids=WAITS.keys())
def test_retry_after(
    headers: dict[str, str], details: dict[str, Any] | None, want: float | None
) -> None:
    status = {"reason": "TooManyRequests", "code": 429, "details": details}

    assert retry_after(to_error(status, headers=headers)) == want
