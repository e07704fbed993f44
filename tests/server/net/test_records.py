"""TLS records: which a connection accepts, and when there are too many without data."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

import pytest

from sully.server.net.tls import self_signed_context

NOW = datetime(2026, 11, 19, tzinfo=UTC)
LARGEST = 1 << 14
"""Bytes of data in the largest record."""
TINY = 500
"""Records of one byte that a connection accepts in a row."""


class Pipe:
    """A client and a server of TLS in memory."""

    def __init__(self) -> None:
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        context = self_signed_context("sully", NOW)
        self.client = trusting.wrap_bio(to_client, to_server)
        self.server = context.wrap_bio(to_server, to_client, server_side=True)
        while not (self._shaken(self.client) & self._shaken(self.server)):
            pass

    @staticmethod
    def _shaken(side: ssl.SSLObject) -> bool:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def received(self) -> bytes:
        """Return all data that the server can read."""
        received = b""
        try:
            while data := self.server.read(1 << 18):
                received += data
        except ssl.SSLWantReadError:
            pass
        return received


@pytest.fixture
def pipe() -> Pipe:
    return Pipe()


MESSAGES: dict[str, list[list[int]]] = {
    "tiny": [[1] * TINY],
    "large": [[LARGEST] * 20],
    "large after tiny": [[*[1] * TINY, *[LARGEST] * 20]],
    "large that arrive after tiny": [[1] * TINY, [LARGEST] * 20],
    "chunks of HTTP": [[6, LARGEST, 2] * 100],
    "chunks of HTTP, one by one": [[6], [LARGEST], [2]] * 100,
    "small": [[11] * 5000],
}
"""Sizes of the data in records, by what arrives together."""


@pytest.mark.parametrize("messages", MESSAGES.values(), ids=MESSAGES)
def test_data_is_received(pipe: Pipe, messages: list[list[int]]) -> None:
    sent = received = b""

    for message in messages:
        for size in message:
            data = bytes([len(sent) % 251]) * size
            pipe.client.write(data)
            sent += data
        received += pipe.received()

    assert received == sent


def test_records_with_too_little_data_are_refused(pipe: Pipe) -> None:
    for _ in range(10 * TINY):
        pipe.client.write(b"\n")

    with pytest.raises(ssl.SSLError, match="too many records without data"):
        pipe.received()
