"""Where and why a text is not valid JSON, as Go's scanner reports it.

Python's decoder stops at other places, such as the start of a string with a bad escape. This reads
a body a second time, token by token, only after it could not be decoded (codec.py).
"""

import re

from sully.machinery.serialization.gotext import quote

END = "unexpected end of JSON input"
MAX_DEPTH = 10_000
_SPACE = re.compile(rb"[ \t\r\n]*")
_IN_STRING = re.compile(rb'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')
_HEX = re.compile(rb"[0-9a-fA-F]{0,4}")
_DIGITS = re.compile(rb"[0-9]*")
_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}


class _Problem(Exception):  # noqa: N818 - the text is what counts
    """What is wrong, as Go reports it."""


def syntax_problem(body: bytes) -> str:
    """Return what Go reports of a body that is not valid JSON; empty if it is."""
    try:
        _Scanner(body).document()
    except _Problem as problem:
        return str(problem)
    return ""


class _Scanner:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def document(self) -> None:
        """Read one value, and nothing after it; containers are on a stack, not in calls."""
        open_containers: list[bytes] = []
        while True:
            opened = self._value_start(open_containers)
            if opened:
                continue
            if not self._after_value(open_containers):
                return

    def _value_start(self, open_containers: list[bytes]) -> bool:
        """Read a value, or the start of a container; True if another value has to follow."""
        char = self._next()
        if char in b"[{":
            open_containers.append(char)
            if len(open_containers) > MAX_DEPTH:
                raise _Problem("exceeded max depth")
            closing = b"]" if char == b"[" else b"}"
            if self._peek() == closing:
                return False
            if char == b"{":
                self._key()
            return True
        self._scalar(char)
        return False

    def _after_value(self, open_containers: list[bytes]) -> bool:
        """Read what follows a value; False at the end of the document."""
        while open_containers:
            in_list = open_containers[-1] == b"["
            where = "after array element" if in_list else "after object key:value pair"
            char = self._next()
            if char == b",":
                if not in_list:
                    self._key()
                return True
            if char != (b"]" if in_list else b"}"):
                raise self._bad(where)
            open_containers.pop()
        if self._peek():
            self._at += 1
            raise self._bad("after top-level value")
        return False

    def _key(self) -> None:
        if self._next() != b'"':
            raise self._bad("looking for beginning of object key string")
        self._string()
        if self._next() != b":":
            raise self._bad("after object key")

    def _scalar(self, char: bytes) -> None:
        if char == b'"':
            self._string()
        elif char in _LITERALS:
            self._literal(_LITERALS[char])
        elif char == b"-" or char.isdigit():
            self._number(char)
        else:
            raise self._bad("looking for beginning of value")

    def _string(self) -> None:
        self._skip(_IN_STRING)
        if self._byte() == b'"':
            return
        if self._body[self._at - 1 : self._at] != b"\\":
            raise self._bad("in string literal")
        if self._byte() != b"u":
            raise self._bad("in string escape code")
        self._skip(_HEX)
        self._byte()
        raise self._bad("in \\u hexadecimal character escape")

    def _literal(self, word: bytes) -> None:
        for expected in word[1:]:
            if self._byte() != bytes([expected]):
                raise self._bad(f"in literal {word.decode()} (expecting '{chr(expected)}')")

    def _number(self, first: bytes) -> None:
        if first == b"-":
            first = self._digit("in numeric literal")
        if first != b"0":
            self._skip(_DIGITS)
        if self._rest(1) == b".":
            self._at += 1
            self._digit("after decimal point in numeric literal")
            self._skip(_DIGITS)
        if self._rest(1) in (b"e", b"E"):
            self._at += 1
            if self._rest(1) in (b"+", b"-"):
                self._at += 1
            self._digit("in exponent of numeric literal")
            self._skip(_DIGITS)

    def _digit(self, where: str) -> bytes:
        char = self._byte()
        if not char.isdigit():
            raise self._bad(where)
        return char

    # -- bytes ------------------------------------------------------------------------------------

    def _rest(self, length: int) -> bytes:
        return self._body[self._at : self._at + length]

    def _skip(self, pattern: re.Pattern[bytes]) -> None:
        match = pattern.match(self._body, self._at)
        self._at = match.end() if match else self._at

    def _byte(self) -> bytes:
        char = self._rest(1)
        if not char:
            raise _Problem(END)
        self._at += 1
        return char

    def _peek(self) -> bytes:
        self._skip(_SPACE)
        return self._rest(1)

    def _next(self) -> bytes:
        self._skip(_SPACE)
        return self._byte()

    def _bad(self, where: str) -> _Problem:
        """Return the problem with the byte that was read last."""
        char = chr(self._body[self._at - 1])
        shown = {"'": "\\'", '"': '"'}.get(char) or quote(char)[1:-1]
        return _Problem(f"invalid character '{shown}' {where}")
