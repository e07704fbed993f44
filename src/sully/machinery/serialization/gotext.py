"""How Go prints values: error texts on the wire quote and format the way Go does."""

import json
import re
from typing import Any

_PLAIN = re.compile(r"[ !#-\[\]-~]*")

_SHORT = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quote(text: str) -> str:
    """Quote a string as Go's strconv.Quote does."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join(_escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char == " " or char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def show(value: Any) -> str:
    """Print a value inside a field error: strings quoted, scalars bare, the rest as JSON."""
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "null"
    return compact_json(value)


_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def compact_json(value: Any) -> str:
    """Encode as Go's json.Marshal does: no spaces, HTML characters escaped."""
    text = _compact.encode(value)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
