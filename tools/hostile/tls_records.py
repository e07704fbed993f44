"""TLS records that the library of a client never sends: encrypted here, with the client's secrets.

TLS 1.3 only: records are numbered from 0 after the handshake, so nothing else may be sent before.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from hostile.target import Target

HANDSHAKE, DATA = 22, 23
_HEAD = 5
_SUITE = "TLS_AES_256_GCM_SHA384"
_SECRET = "CLIENT_TRAFFIC_SECRET_0 "


class Records:
    """Encrypts the records of one connection."""

    def __init__(self, secret: bytes) -> None:
        self._use(secret)

    def record(self, kind: int, content: bytes) -> bytes:
        """Return a record."""
        head = struct.pack("!BHH", DATA, 0x0303, len(content) + 17)
        nonce = (self._vector ^ self._number).to_bytes(12, "big")
        self._number += 1
        return head + self._key.encrypt(nonce, content + bytes([kind]), head)

    def key_update(self, *, answered: bool) -> bytes:
        """Return a record after which the next key is used; the server may have to do so, too."""
        record = self.record(HANDSHAKE, b"\x18\x00\x00\x01" + bytes([answered]))
        self._use(_expanded(self._secret, b"traffic upd", 48))
        return record

    def _use(self, secret: bytes) -> None:
        self._secret = secret
        self._key = AESGCM(_expanded(secret, b"key", 32))
        self._vector = int.from_bytes(_expanded(secret, b"iv", 12), "big")
        self._number = 0


def _expanded(secret: bytes, label: bytes, length: int) -> bytes:
    name = b"tls13 " + label
    info = struct.pack("!HB", length, len(name)) + name + b"\0"
    return HKDFExpand(SHA384(), length, info).derive(secret)


def lengths(received: bytes) -> list[int]:
    """Return the length of each record that a server has sent."""
    found = []
    while len(received) > _HEAD:
        found.append(int.from_bytes(received[3:_HEAD], "big"))
        received = received[_HEAD + found[-1] :]
    return found


@contextmanager
def connected(target: Target, scratch: Path) -> Iterator[tuple[socket.socket, Records]]:
    """Connect without credentials; yield the socket below TLS."""
    address = urlsplit(target.url)
    context = target.trusting()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    secrets = scratch / "secrets"
    context.keylog_filename = os.fspath(secrets)
    plain = socket.create_connection((address.hostname, address.port or 443))
    with context.wrap_socket(plain, server_hostname=address.hostname) as connection:
        cipher = connection.cipher()
        assert cipher is not None
        assert cipher[0] == _SUITE
        (line,) = [line for line in secrets.read_text().splitlines() if line.startswith(_SECRET)]
        records = Records(bytes.fromhex(line.rpartition(" ")[2]))
        with socket.socket(fileno=os.dup(connection.fileno())) as below:
            yield below, records
