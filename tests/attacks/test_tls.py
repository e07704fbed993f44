"""A user without credentials, who sends TLS records with nothing in them."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hostile.target import Target
from hostile.tls_records import DATA, Records, connected, lengths
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.slow
TICKETS = 2
"""Records of the server after each handshake."""
UPDATE = 22
"""Bytes in a record with a key update."""
CLOSE = b"\x17\x03\x03\x00\x13"
"""The beginning of the record that closes a connection."""

WITHOUT_DATA: dict[str, Callable[[Records], bytes]] = {
    "key updates": lambda records: records.key_update(answered=False),
    "key updates that are answered": lambda records: records.key_update(answered=True),
    "records of one byte": lambda records: records.record(DATA, b"\n"),
}


@pytest.mark.parametrize(("count", "answers"), [(100, 1), (10_000, 0)])
@pytest.mark.parametrize("record", WITHOUT_DATA.values(), ids=WITHOUT_DATA)
def test_sends_records_without_data(
    target: Target, tmp_path: Path, record: Callable[[Records], bytes], count: int, answers: int
) -> None:
    request = target.anonymous.head("GET", "/healthz", {"connection": "close"}) + b"\r\n"
    with connected(target, tmp_path) as (below, records):
        lot = [*(record(records) for _ in range(count)), records.record(DATA, request)]
        with suppress(ConnectionError):
            below.sendall(b"".join(lot))
        received = lengths(everything(below))

    assert sum(length > UPDATE for length in received) == TICKETS + answers


def everything(below: socket.socket) -> bytes:
    """Receive until the server closes the connection, in TLS or below it."""
    below.settimeout(PATIENCE)
    received = b""
    with suppress(ConnectionError):
        while CLOSE not in received[-24:] and (more := below.recv(1 << 16)):
            received += more
    return received
