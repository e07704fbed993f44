"""Writes protobuf for tests: only bytes, no knowledge of kinds."""

import json
from pathlib import Path
from typing import Any

RECORDED = [
    json.loads(line)
    for line in Path(__file__).with_name("kubectl.jsonl").read_text(encoding="utf-8").splitlines()
]
"""What kubectl 1.33 sent in protobuf, with what 1.31 sent in JSON for the same command.

The CustomResourceDefinition is what Kubernetes 1.37 responds, in both forms.
"""


def varint(value: int) -> bytes:
    """Write a number; a negative one takes ten bytes."""
    value &= 2**64 - 1
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(written) + bytes([value])


def chunk(number: int, data: bytes | str) -> bytes:
    """Write text, bytes or a message as a field."""
    raw = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def whole(number: int, value: int) -> bytes:
    """Write a number as a field."""
    return varint(number << 3) + varint(value)


def entry(number: int, key: str, value: bytes) -> bytes:
    """Write one entry of a map; the value is a field 2."""
    return chunk(number, chunk(1, key) + value)


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """Write an object as Go clients send it."""
    names = chunk(1, api_version) + chunk(2, kind)
    return b"k8s\x00" + chunk(1, names) + chunk(2, message) + chunk(3, b"") + chunk(4, b"")


def metadata(**texts: str) -> bytes:
    """Write the metadata of an object as its field 1."""
    numbers = {"name": 1, "generateName": 2, "namespace": 3, "uid": 5}
    return chunk(1, b"".join(chunk(numbers[name], text) for name, text in texts.items()))


def short(record: Any) -> str:
    """Name a recorded command."""
    return "-".join(word for word in record["command"].split()[:4] if not word.startswith("-"))
