"""The formats of strings that Kubernetes knows in the schemas of custom resources.

Others are ignored, as Kubernetes does.
"""

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from typing import Final
from urllib.parse import urlsplit

from sully.machinery.formats.addresses import is_cidr
from sully.machinery.formats.timestamps import TimeError, parse_time

NUMERIC: Final = frozenset(("int32", "int64", "float", "double"))
_BASE64: Final = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_LABEL: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_HOST: Final = r"[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,62})(\.[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,62}))*\.?"
_DURATION: Final = (
    r"(\d+(\.\d*)?|\.\d+)\s*(ns|nanoseconds?|nanos?|us|µs|μs|microseconds?|micros?|ms"
    r"|milliseconds?|millis?|s|seconds?|secs?|m|minutes?|mins?|h|hours?|hrs?|d|days?|w|weeks?|wks?)"
)


def is_formatted(value: str, name: str) -> bool:
    """Report whether a string has a format; true for formats that are not known."""
    check = _CHECKS.get(name)
    return check is None or check(value)


def _matching(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda value: compiled.fullmatch(value) is not None


def _uuid(version: str = "[0-9a-fA-F]") -> Callable[[str], bool]:
    digits = "[0-9a-fA-F]"
    return _matching(
        f"{digits}{{8}}-?{digits}{{4}}-?{version}{digits}{{3}}-?{digits}{{4}}-?{digits}{{12}}"
    )


def _is_time(value: str) -> bool:
    try:
        parse_time(value)
    except TimeError:
        return False
    return "," not in value


def _is_date(value: str) -> bool:
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _is_address(version: int) -> Callable[[str], bool]:
    def check(value: str) -> bool:
        try:
            return ipaddress.ip_address(value).version == version
        except ValueError:
            return False

    return check


def _is_uri(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return value.startswith("/") or bool(parts.scheme)


def _isbn10(value: str) -> bool:
    digits = value.replace("-", "").replace(" ", "")
    if not re.fullmatch(r"\d{9}[\dX]", digits, re.ASCII):
        return False
    weights = enumerate(digits, 1)
    return sum(place * (10 if digit == "X" else int(digit)) for place, digit in weights) % 11 == 0


def _isbn13(value: str) -> bool:
    digits = value.replace("-", "").replace(" ", "")
    if not re.fullmatch(r"\d{13}", digits, re.ASCII):
        return False
    return sum(int(digit) * (1, 3)[place % 2] for place, digit in enumerate(digits)) % 10 == 0


def _is_card(value: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", value)
    if not 13 <= len(digits) <= 19:
        return False
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


_CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matching("[0-9a-fA-F]{24}"),
    "byte": _matching(_BASE64),
    "cidr": is_cidr,
    "creditcard": _is_card,
    "date": _is_date,
    "date-time": _is_time,
    "datetime": _is_time,
    "duration": _matching(rf"[-+]?({_DURATION}\s*)+|0"),
    "email": _matching(r"[^@\s<>,;]+@[^@\s<>,;]+"),
    "hexcolor": _matching("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": lambda value: len(value) <= 255 and _matching(_HOST)(value),
    "ipv4": _is_address(4),
    "ipv6": _is_address(6),
    "isbn": lambda value: _isbn10(value) or _isbn13(value),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "k8s-long-name": lambda value: (
        len(value) <= 253 and _matching(rf"{_LABEL}(\.{_LABEL})*")(value)
    ),
    "k8s-short-name": _matching(_LABEL),
    "mac": _matching(
        r"([0-9a-fA-F]{2}([:-]))([0-9a-fA-F]{2}\2){4}([0-9a-fA-F]{2}\2){0,2}[0-9a-fA-F]{2}"
    ),
    "password": lambda _: True,
    "rgbcolor": _matching(
        r"rgb\(\s*(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])"
        r"\s*,\s*(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])\s*\)"
    ),
    "ssn": _matching(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": _is_uri,
    "uuid": _uuid(),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4"),
    "uuid5": _uuid("5"),
}
KNOWN: Final = frozenset(_CHECKS) | NUMERIC
