"""The string formats of the Kubernetes API, as values: `format.dns1123Label().validate(s)`.

`validate` gives an optional list of problems; nothing means that the text has the format.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final

from sully.machinery.cel import temporal, types
from sully.machinery.cel.declarations import Library, library
from sully.machinery.cel.errors import EvaluationError
from sully.machinery.cel.library.standard import Row
from sully.machinery.cel.library.urls import Url
from sully.machinery.cel.values import NONE, Optional, register

FORMAT: Final = types.opaque("kubernetes.NamedFormat")
Check = Callable[[str], list[str]]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_TEXTS: Final = {
    "label": (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-',"
        " and must start and end with an alphanumeric character"
        f" (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
    ),
    "subdomain": (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
        " '.', and must start and end with an alphanumeric character"
        f" (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
    ),
    "label1035": (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
        " alphabetic character, and end with an alphanumeric character"
        f" (e.g. 'my-name',  or 'abc-123', regex used for validation is '{_LABEL_1035}')"
    ),
    "name": (
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end"
        " with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used"
        f" for validation is '{_NAME}')"
    ),
    "value": (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or"
        " '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or"
        f" 'my_value',  or '12345', regex used for validation is '(({_NAME[1:]})')"
    ),
}


class NamedFormat:
    """A format and how it is checked."""

    __slots__ = ("check", "name")

    def __init__(self, name: str, check: Check) -> None:
        self.name = name
        self.check = check

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedFormat) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


register(NamedFormat, FORMAT)


def _matched(text: str, pattern: str, limit: int, problem: str) -> list[str]:
    problems = []
    if len(text.encode()) > limit:
        problems.append(f"must be no more than {limit} bytes")
    if not re.fullmatch(pattern, text, re.ASCII):
        problems.append(problem)
    return problems


def _label(text: str) -> list[str]:
    return _matched(text, _LABEL, 63, _TEXTS["label"])


def _subdomain(text: str) -> list[str]:
    return _matched(text, _SUBDOMAIN, 253, _TEXTS["subdomain"])


def _label_1035(text: str) -> list[str]:
    return _matched(text, _LABEL_1035, 63, _TEXTS["label1035"])


def _prefix(check: Check) -> Check:
    """Return the check for the start of a generated name, which may end in a dash."""
    return lambda text: check(f"{text[:-1]}a" if text.endswith("-") else text)


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if not slash:
        return _matched(text, _NAME, 63, _TEXTS["name"])
    if not prefix or "/" in prefix:
        shape = "a qualified name must consist of a name with an optional DNS subdomain prefix"
        return ["prefix part must be non-empty"] if "/" not in prefix else [shape]
    problems = [f"prefix part {problem}" for problem in _subdomain(prefix)]
    return problems + _matched(name, _NAME, 63, _TEXTS["name"])


def _label_value(text: str) -> list[str]:
    return _matched(text, f"({_NAME})?", 63, _TEXTS["value"])


def _read(reader: Callable[[str], object], problem: str) -> Check:
    def check(text: str) -> list[str]:
        try:
            reader(text)
        except (EvaluationError, ValueError):
            return [problem]
        return []

    return check


def _base64(text: str) -> None:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError from error


def _date(text: str) -> None:
    temporal.parse_timestamp(f"{text}T00:00:00Z")


def _uuid(text: str) -> None:
    if not re.fullmatch(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}", text):
        raise ValueError


_FORMATS: Final = {
    named.name: named
    for named in (
        NamedFormat("dns1123Label", _label),
        NamedFormat("dns1123Subdomain", _subdomain),
        NamedFormat("dns1035Label", _label_1035),
        NamedFormat("qualifiedName", _qualified_name),
        NamedFormat("dns1123LabelPrefix", _prefix(_label)),
        NamedFormat("dns1123SubdomainPrefix", _prefix(_subdomain)),
        NamedFormat("dns1035LabelPrefix", _prefix(_label_1035)),
        NamedFormat("labelValue", _label_value),
        NamedFormat("uri", _read(Url, "invalid URL")),
        NamedFormat("uuid", _read(_uuid, "does not match the UUID format")),
        NamedFormat("byte", _read(_base64, "invalid base64")),
        NamedFormat("date", _read(_date, "invalid date")),
        NamedFormat("datetime", _read(temporal.parse_timestamp, "invalid datetime")),
    )
}


def _named(name: str) -> Optional:
    named_format = _FORMATS.get(name)
    return NONE if named_format is None else Optional(named_format)


def _validate(named: NamedFormat, text: str) -> Optional:
    problems = named.check(text)
    return Optional(problems) if problems else NONE


def _rows() -> Iterator[Row]:
    name = FORMAT.name
    yield "format-named", f"format.named(string) -> optional_type({name})", _named
    yield (
        "format-validate",
        f"{name}:validate(string) -> optional_type(list(string))",
        _validate,
    )
    for named in _FORMATS.values():
        yield (
            f"format-{named.name}",
            f"format.{named.name}() -> {name}",
            lambda one=named: one,
        )


def named_formats() -> Library:
    return library(_rows(), {FORMAT.name: FORMAT})
