"""Responses of servers that never end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import repeat

import pytest

from sully.client.http.json_answers import Responses
from sully.client.transport import UnreadableError


async def chunks(*sent: bytes) -> AsyncIterator[bytes]:
    for chunk in sent:
        yield chunk


async def endless() -> AsyncIterator[bytes]:
    for chunk in repeat(b"x" * 100):
        yield chunk


@pytest.mark.parametrize("sent", [(), (b"abc",), (b"a", b"", b"bc")])
async def test_a_response_is_read_to_its_end(sent: tuple[bytes, ...]) -> None:
    responses = Responses(3)

    # What was read before does not count.
    for _ in range(2):
        assert await responses.read(chunks(*sent)) == b"".join(sent)


async def test_a_response_without_end_is_refused() -> None:
    responses = Responses(1000)

    with pytest.raises(UnreadableError, match="more than 1000 bytes"):
        await responses.read(endless())
    assert await responses.read(chunks(b"x" * 1000)) == b"x" * 1000
